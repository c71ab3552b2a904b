#include "lloyd.hpp"

#include <algorithm>

#include "assignment.hpp"

namespace kmeander {
namespace {

struct Chunk {
    std::size_t batch, begin, end;
};

double weight_of(const Batch &batch, std::size_t i) {
    return batch.weights == nullptr ? 1.0 : batch.weights[i];
}

double operations_per_pass(const std::vector<Batch> &batches, std::size_t k) {
    double operations = 0.0;
    for (const Batch &batch : batches) operations += 1.0 * batch.rows.count * batch.rows.columns * k;
    return operations;
}

class Solver {
public:
    Solver(std::vector<Batch> &batches, std::size_t k, double *centroids, std::size_t n_threads)
        : batches_(batches),
          k_(k),
          d_(batches.front().rows.columns),
          centroids_(centroids),
          set_(instruction_set()),
          team_(worth_starting(n_threads, operations_per_pass(batches, k))),
          scratch_(team_.size(), d_),
          packed_(k, d_),
          total_mass_(k),
          mean_(d_) {
        for (std::size_t b = 0; b < batches.size(); ++b)
            for (std::size_t i = 0; i < batches[b].rows.count; i += kChunkRows)
                chunks_.push_back({b, i, std::min(i + kChunkRows, batches[b].rows.count)});
        chunk_errors_.resize(chunks_.size());
        chunk_changed_.resize(chunks_.size());
    }

    // Give every point its nearest centroid; true if a label changed.
    bool assign(double *errors) {
        packed_.pack(centroids_);
        team_.run(chunks_.size(), [&](std::size_t item, std::size_t worker) {
            assign_chunk(item, worker);
        });
        std::fill(errors, errors + batches_.size(), 0.0);
        bool changed = false;
        for (std::size_t item = 0; item < chunks_.size(); ++item) {
            Batch &batch = batches_[chunks_[item].batch];
            errors[chunks_[item].batch] += chunk_errors_[item];
            batch.summed = batch.summed && !chunk_changed_[item];
            changed = changed || chunk_changed_[item];
        }
        for (const Batch &batch : batches_)
            report.n_distances += static_cast<std::int64_t>(batch.rows.count * k_);
        ++report.n_iter;
        sum_up();
        return changed;
    }

    // Move every centroid to the mean of its points; return the sum of squared shifts.
    double update(std::uint8_t *reseeded) {
        add_masses();
        reseed_empty(reseeded);
        double shift = 0.0;
        for (std::size_t c = 0; c < k_; ++c) {
            if (total_mass_[c] <= 0.0) continue;  // nothing to take: it stays where it is
            std::fill(mean_.begin(), mean_.end(), 0.0);
            for (const Batch &batch : batches_) {
                const double *sum = batch.sums + c * d_;
                for (std::size_t j = 0; j < d_; ++j) mean_[j] += batch.decay * sum[j];
            }
            double *centroid = centroids_ + c * d_;
            for (std::size_t j = 0; j < d_; ++j) {
                const double moved = mean_[j] / total_mass_[c] - centroid[j];
                centroid[j] = mean_[j] / total_mass_[c];
                shift += moved * moved;
            }
        }
        return shift;
    }

    LloydReport report;

private:
    void assign_chunk(std::size_t item, std::size_t worker) {
        const Chunk &chunk = chunks_[item];
        Batch &batch = batches_[chunk.batch];
        std::int32_t labels[kChunkRows];
        double squared[kChunkRows];
        set_.nearest(batch.rows, chunk.begin, chunk.end, packed_.blocks(), packed_.n_blocks(),
                     scratch_.of(worker), labels, squared);
        double error = 0.0;
        bool changed = false;
        for (std::size_t i = chunk.begin; i < chunk.end; ++i) {
            error += weight_of(batch, i) * squared[i - chunk.begin];
            changed = changed || batch.labels[i] != labels[i - chunk.begin];
            batch.labels[i] = labels[i - chunk.begin];
        }
        chunk_errors_[item] = error;
        chunk_changed_[item] = changed;
    }

    // Bring masses and sums up to date. They are a function of rows, weights and labels alone:
    // each sum takes its rows in order, whatever happened before and whoever adds.
    void sum_up() {
        std::vector<std::size_t> stale;
        for (std::size_t b = 0; b < batches_.size(); ++b)
            if (!batches_[b].summed) stale.push_back(b);
        const std::size_t slices = std::min(team_.size(), d_);
        team_.run(stale.size() * slices, [&](std::size_t item, std::size_t) {
            const std::size_t slice = item % slices;
            sum_batch(batches_[stale[item / slices]], slice * d_ / slices,
                      (slice + 1) * d_ / slices);
        });
        for (const std::size_t b : stale) batches_[b].summed = true;
    }

    void sum_batch(Batch &batch, std::size_t first, std::size_t last) const {
        for (std::size_t c = 0; c < k_; ++c)
            std::fill(batch.sums + c * d_ + first, batch.sums + c * d_ + last, 0.0);
        set_.add_rows(batch.rows, 0, batch.rows.count, first, last, batch.weights, batch.labels,
                      batch.sums);
        if (first != 0) return;  // one slice counts for all
        std::fill(batch.masses, batch.masses + k_, 0.0);
        for (std::size_t i = 0; i < batch.rows.count; ++i)
            batch.masses[batch.labels[i]] += weight_of(batch, i);
    }

    void add_masses() {
        std::fill(total_mass_.begin(), total_mass_.end(), 0.0);
        for (const Batch &batch : batches_)
            for (std::size_t c = 0; c < k_; ++c) total_mass_[c] += batch.decay * batch.masses[c];
    }

    // Each cluster without mass takes the point that costs most where it is. That point's cost
    // becomes zero and the means of the others only improve, so the error falls.
    void reseed_empty(std::uint8_t *reseeded) {
        std::vector<double> costs;
        for (;;) {
            const auto found = std::find_if(total_mass_.begin(), total_mass_.end(),
                                            [](double mass) { return mass <= 0.0; });
            if (found == total_mass_.end()) return;
            if (costs.empty()) costs = costs_of_points();
            const auto dearest = std::max_element(costs.begin(), costs.end());
            if (*dearest <= 0.0) return;
            const std::size_t cluster = static_cast<std::size_t>(found - total_mass_.begin());
            move_point(static_cast<std::size_t>(dearest - costs.begin()), cluster, costs);
            reseeded[cluster] = 1;
            add_masses();
        }
    }

    // Decayed weight times squared distance to the own centroid, all points in window order.
    std::vector<double> costs_of_points() {
        // A mean of equal points may miss them by rounding: that is no distance worth a cluster.
        constexpr double kRounding = 1e-13;
        const std::vector<double> origin(d_);
        std::vector<double> costs;
        for (const Batch &batch : batches_) {
            for (std::size_t i = 0; i < batch.rows.count; ++i) {
                double squared, length;
                set_.squared_to(batch.rows, i, i + 1, centroids_ + batch.labels[i] * d_, &squared);
                set_.squared_to(batch.rows, i, i + 1, origin.data(), &length);
                if (squared <= kRounding * kRounding * length) squared = 0.0;
                costs.push_back(batch.decay * weight_of(batch, i) * squared);
            }
        }
        report.n_distances += static_cast<std::int64_t>(costs.size());
        return costs;
    }

    // Hand the point at `position` of the window to `cluster`, and lower the costs of the points
    // that will be nearer to it there: a second empty cluster must not take a twin.
    void move_point(std::size_t position, std::size_t cluster, std::vector<double> &costs) {
        std::size_t b = 0;
        while (position >= batches_[b].rows.count) position -= batches_[b++].rows.count;
        std::vector<double> point(d_);
        copy_row(batches_[b].rows, position, point.data());
        batches_[b].labels[position] = static_cast<std::int32_t>(cluster);
        sum_batch(batches_[b], 0, d_);
        double *cost = costs.data();
        for (const Batch &batch : batches_) {
            for (std::size_t i = 0; i < batch.rows.count; ++i, ++cost) {
                double squared;
                set_.squared_to(batch.rows, i, i + 1, point.data(), &squared);
                *cost = std::min(*cost, batch.decay * weight_of(batch, i) * squared);
            }
        }
        report.n_distances += static_cast<std::int64_t>(costs.size());
    }

    std::vector<Batch> &batches_;
    const std::size_t k_, d_;
    double *centroids_;
    const InstructionSet &set_;
    Team team_;
    Scratch scratch_;
    PackedCentroids packed_;
    std::vector<double> total_mass_, mean_;
    std::vector<Chunk> chunks_;
    std::vector<double> chunk_errors_;
    std::vector<std::uint8_t> chunk_changed_;
};

}  // namespace

LloydReport lloyd(std::vector<Batch> &batches, std::size_t k, double *centroids,
                  const LloydLimits &limits, double *first_errors, double *last_errors,
                  std::uint8_t *reseeded) {
    std::fill(reseeded, reseeded + k, std::uint8_t{0});
    Solver solver(batches, k, centroids, limits.n_threads);
    LloydReport &report = solver.report;
    solver.assign(last_errors);
    std::copy(last_errors, last_errors + batches.size(), first_errors);
    for (std::size_t updates = 0; updates < limits.max_iter; ++updates) {
        const double shift = solver.update(reseeded);
        if (shift == 0.0) {  // the centroids already were the means: no pass would change a label
            report.converged = true;
            return report;
        }
        const bool changed = solver.assign(last_errors);
        if (!changed || shift <= limits.shift) {
            report.converged = true;
            return report;
        }
    }
    return report;
}

}  // namespace kmeander
