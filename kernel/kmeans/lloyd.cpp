// Weighted Lloyd: assign, move centroids to the means, reseed empty clusters.
#include "kmeans/lloyd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kmeans/cluster_sums.hpp"
#include "kmeans/hamerly.hpp"
#include "kmeans/sphere.hpp"
#include "parallel/interruption.hpp"

namespace kmeander {
namespace {

constexpr double kLastDigits = 16.0 * std::numeric_limits<double>::epsilon();

double operations_per_pass(const std::vector<WorkingBatch> &batches, std::size_t k) {
    double operations = 0.0;
    for (const WorkingBatch &batch : batches)
        operations += 1.0 * batch.rows.count * batch.rows.columns * k;
    return operations;
}

class LloydSolver {
public:
    LloydSolver(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
                const LloydLimits &limits)
        : batches_(batches),
          k_(k),
          d_(batches.front().rows.columns),
          centroids_(centroids),
          on_sphere_(limits.on_sphere),
          team_(worth_starting(limits.n_threads, operations_per_pass(batches, k))),
          assigner_(batches, k, limits.axes, team_),
          sums_(batches, k, team_),
          mean_(d_),
          reseeded_(k) {}

    // Give every point its nearest centroid; true if a label changed.
    bool assign() {
        const bool changed = assigner_.assign(centroids_);
        sums_.reassign(assigner_.reassigned());
        sums_.recompute_cancelled();
        return changed;
    }

    // Recompute the sums that moved rows have touched.
    void recompute_dirty() { sums_.recompute_dirty(); }

    // Move every centroid to the mean of its points; return the sum of squared shifts.
    double update() {
        reseed_empty();
        const std::vector<double> &masses = sums_.masses();
        double shift = 0.0;
        for (std::size_t c = 0; c < k_; ++c) {
            // Nothing to take, or nothing new: it stays where it is.
            if (masses[c] <= 0.0 || !sums_.has_changed(c)) continue;
            sums_.mean(c, mean_.data());
            if (on_sphere_ && !put_on_sphere(mean_.data(), d_)) continue;
            double *centroid = centroids_ + c * d_;
            for (std::size_t j = 0; j < d_; ++j) {
                // A mean may miss by its last digits. That is no move: a column in which all points
                // are equal must not set the clusters adrift, however large its values.
                const double moved = mean_[j] - centroid[j];
                if (std::fabs(moved) <= kLastDigits * std::fabs(mean_[j])) continue;
                shift += moved * moved;
                centroid[j] = mean_[j];
            }
        }
        return shift;
    }

    Errors errors() { return sums_.errors(centroids_); }

    void finish(LloydReport &report, double *masses) {
        assigner_.write_bounds();
        report.left_out = on_sphere_ ? sums_.error_left_out_on_sphere() : sums_.error_left_out();
        const std::vector<double> &found = sums_.masses();
        std::copy(found.begin(), found.end(), masses);
        report.n_distances = n_distances_ + assigner_.n_distances();
        report.axes_serve = assigner_.axes_serve();
        for (std::size_t c = 0; c < k_; ++c)
            if (reseeded_[c]) report.reseeded.push_back(static_cast<std::int32_t>(c));
    }

private:
    // Each cluster without mass takes the point that costs most where it is. That point's cost
    // becomes zero and the means of the others only improve, so the error falls. Points that are
    // all their cluster has, and equal, are left alone: their centroid goes there anyway.
    void reseed_empty() {
        std::vector<double> costs;
        for (;;) {
            const std::vector<double> &masses = sums_.masses();
            const auto found =
                std::find_if(masses.begin(), masses.end(), [](double mass) { return mass <= 0.0; });
            if (found == masses.end()) return;
            check_interruption();
            if (costs.empty()) costs = costs_of_points();
            spare_lone_points(costs);
            const auto dearest = std::max_element(costs.begin(), costs.end());
            if (*dearest <= 0.0) return;
            const std::size_t cluster = static_cast<std::size_t>(found - masses.begin());
            move_point(static_cast<std::size_t>(dearest - costs.begin()), cluster, costs);
            reseeded_[cluster] = true;
        }
    }

    // Whether a point lies at its centroid but for rounding: the mean of equal points may miss them
    // by the last digits of its decayed sums.
    bool is_at(const double *point, const double *centroid) const {
        constexpr double kRounding = 1e-13;
        for (std::size_t j = 0; j < d_; ++j)
            if (std::fabs(point[j] - centroid[j]) > kRounding * std::fabs(point[j])) return false;
        return true;
    }

    // What a squared distance holds that a centroid nearer to the point would save. On the sphere
    // a mean is short of every centroid by as much as it is short of length 1.
    double to_be_saved(double squared, const double *point) const {
        if (!on_sphere_) return squared;
        constexpr double kRounding = 1e-13;
        const double short_of = 1.0 - length_of(point, d_);
        const double saved = squared - short_of * short_of;
        return saved > kRounding * squared ? saved : 0.0;
    }

    // Decayed weight times squared distance to the own centroid, all points in window order.
    std::vector<double> costs_of_points() {
        std::vector<double> costs, point(d_);
        for (const WorkingBatch &batch : batches_) {
            for (std::size_t i = 0; i < batch.rows.count; ++i) {
                const double *centroid = centroids_ + batch.labels[i] * d_;
                double squared;
                set_.squared_to(batch.rows, i, i + 1, centroid, &squared);
                set_.widen(batch.rows, i, point.data());
                if (is_at(point.data(), centroid)) squared = 0.0;
                costs.push_back(batch.decay * weight_of(batch, i) *
                                to_be_saved(squared, point.data()));
            }
        }
        n_distances_ += static_cast<std::int64_t>(costs.size());
        return costs;
    }

    // Set the costs of a cluster's points to 0 where all that have weight are equal.
    void spare_lone_points(std::vector<double> &costs) const {
        std::vector<double> points(k_ * d_), point(d_);
        std::vector<std::uint8_t> seen(k_, 0), mixed(k_, 0);
        for (const WorkingBatch &batch : batches_) {
            for (std::size_t i = 0; i < batch.rows.count; ++i) {
                const std::size_t c = static_cast<std::size_t>(batch.labels[i]);
                if (mixed[c] || weight_of(batch, i) <= 0.0) continue;
                set_.widen(batch.rows, i, point.data());
                if (!seen[c]) std::copy(point.begin(), point.end(), points.begin() + c * d_);
                seen[c] = 1;
                mixed[c] = !std::equal(point.begin(), point.end(), points.begin() + c * d_);
            }
        }
        double *cost = costs.data();
        for (const WorkingBatch &batch : batches_)
            for (std::size_t i = 0; i < batch.rows.count; ++i, ++cost)
                if (!mixed[static_cast<std::size_t>(batch.labels[i])]) *cost = 0.0;
    }

    // Hand the point at `position` of the window to `cluster`, and lower the costs of the points
    // that will be nearer to it there: a second empty cluster must not take a twin.
    void move_point(std::size_t position, std::size_t cluster, std::vector<double> &costs) {
        std::size_t b = 0;
        while (position >= batches_[b].rows.count) position -= batches_[b++].rows.count;
        std::vector<double> place(d_), point(d_);
        set_.widen(batches_[b].rows, position, place.data());
        if (on_sphere_) put_on_sphere(place.data(), d_);
        const std::int32_t to = static_cast<std::int32_t>(cluster);
        sums_.reassign({{static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(position),
                         batches_[b].labels[position], to}});
        assigner_.reassign(b, position, to);
        sums_.recompute_cancelled();
        double *cost = costs.data();
        for (const WorkingBatch &batch : batches_) {
            for (std::size_t i = 0; i < batch.rows.count; ++i, ++cost) {
                double squared;
                set_.squared_to(batch.rows, i, i + 1, place.data(), &squared);
                if (on_sphere_) set_.widen(batch.rows, i, point.data());
                squared = to_be_saved(squared, point.data());
                *cost = std::min(*cost, batch.decay * weight_of(batch, i) * squared);
            }
        }
        n_distances_ += static_cast<std::int64_t>(costs.size());
    }

    std::vector<WorkingBatch> &batches_;
    const std::size_t k_, d_;
    double *centroids_;
    const bool on_sphere_;
    const InstructionSet &set_ = instruction_set();
    Team team_;
    HamerlyAssigner assigner_;
    ClusterSumsUpdater sums_;
    std::vector<double> mean_;
    std::vector<bool> reseeded_;
    std::int64_t n_distances_ = 0;
};

}  // namespace

LloydReport lloyd(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
                  const LloydLimits &limits, double *masses) {
    LloydSolver solver(batches, k, centroids, limits);
    LloydReport report;
    solver.assign();
    solver.recompute_dirty();
    report.first = solver.errors();
    for (std::size_t updates = 0; updates < limits.max_iter && !report.converged; ++updates) {
        check_interruption();
        const double shift = solver.update();
        // Where nothing moves, no pass would change a label.
        bool changed = shift > 0.0 && solver.assign();
        report.n_iter += shift > 0.0;
        if (!changed) {
            // The means came from sums that rows have been moved out of and into. Take them from
            // exact ones; should that change a label after all, go on.
            solver.recompute_dirty();
            changed = solver.update() > 0.0 && solver.assign();
            report.n_iter += changed;
        }
        report.converged = !changed || shift <= limits.shift;
    }
    solver.recompute_dirty();
    report.last = solver.errors();
    solver.finish(report, masses);
    return report;
}

}  // namespace kmeander
