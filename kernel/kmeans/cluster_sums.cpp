// Sufficient statistics: moving rows from sum to sum, and summing again.
#include "kmeans/cluster_sums.hpp"

#include <algorithm>
#include <cmath>

#include "kmeans/points.hpp"
#include "kmeans/sphere.hpp"
#include "parallel/costs.hpp"

namespace kmeander {
namespace {

// Rows that move lie far apart: each is prefetched this many moves ahead.
constexpr std::size_t kRowsAhead = 4;

bool is_marked(const std::vector<std::uint8_t> &marks, std::uint8_t from_mark) {
    return *std::max_element(marks.begin(), marks.end()) >= from_mark;
}

}  // namespace

ClusterSumsUpdater::ClusterSumsUpdater(std::vector<WorkingBatch> &batches, std::size_t k,
                                       Team &team)
    : batches_(batches),
      k_(k),
      d_(batches.front().rows.columns),
      set_(instruction_set()),
      team_(team),
      changed_(k, 1),
      masses_(k),
      scratch_(team.size()),
      gaps_(batches.size() * k) {
    for (SumScratch &scratch : scratch_) {
        scratch.means.resize(k * d_);
        scratch.rests.resize(k * d_);
        scratch.quarters.resize(k * 4);
        scratch.point.resize(d_);
        scratch.stale.resize(k);
    }
    for (const WorkingBatch &batch : batches) {
        // Without bounds the labels themselves are about to be replaced.
        const bool known = batch.summed && batch.snapshot != nullptr;
        marks_.emplace_back(k, known ? kExact : kCancelled);
        cancelled_.emplace_back(k, 0.0);
        counted_.push_back(known);
    }
    scatter_marks_ = marks_;
}

void ClusterSumsUpdater::reassign(const std::vector<Reassignment> &reassigned) {
    if (reassigned.empty()) return;
    std::vector<std::size_t> first = {0};  // of each batch
    for (std::size_t m = 0; m < reassigned.size(); ++m) {
        changed_[static_cast<std::size_t>(reassigned[m].from)] = 1;
        changed_[static_cast<std::size_t>(reassigned[m].to)] = 1;
        if (m > 0 && reassigned[m].batch != reassigned[m - 1].batch) first.push_back(m);
    }
    first.push_back(reassigned.size());
    const double operations = costs::kPerMovedValue * static_cast<double>(reassigned.size() * d_);
    team_.run(first.size() - 1, operations, [&](std::size_t item, std::size_t worker) {
        for (std::size_t m = first[item]; m < first[item + 1]; ++m) {
            const std::size_t ahead = m + kRowsAhead;
            if (ahead < reassigned.size())
                prefetch(batches_[reassigned[ahead].batch].rows, reassigned[ahead].row);
            reassign(reassigned[m], scratch_[worker]);
        }
    });
}

void ClusterSumsUpdater::reassign(const Reassignment &reassign, SumScratch &scratch) {
    WorkingBatch &batch = batches_[reassign.batch];
    const std::size_t source = static_cast<std::size_t>(reassign.from);
    const std::size_t target = static_cast<std::size_t>(reassign.to);
    std::uint8_t *marks = marks_[reassign.batch].data();
    const double weight = weight_of(batch, reassign.row);
    const double *point = point_at(batch.rows, reassign.row, scratch.point.data());
    double *minus = batch.sums + source * d_, *plus = batch.sums + target * d_;
    for (std::size_t j = 0; j < d_; ++j) {
        minus[j] -= weight * point[j];
        plus[j] += weight * point[j];
    }
    batch.masses[source] -= weight;
    batch.masses[target] += weight;
    marks[target] = std::max<std::uint8_t>(marks[target], kDirty);
    marks[source] = std::max<std::uint8_t>(marks[source], kDirty);
    double &cancelled = cancelled_[reassign.batch][source];
    cancelled += weight;
    if (cancelled >= batch.masses[source]) marks[source] = kCancelled;
}

void ClusterSumsUpdater::recompute_cancelled() { recompute(kCancelled); }

void ClusterSumsUpdater::recompute_dirty() {
    recompute(kDirty);
    double operations = 0.0;
    for (std::size_t b = 0; b < batches_.size(); ++b)
        if (is_marked(scatter_marks_[b], kDirty))
            operations +=
                costs::kPerSquaredError * static_cast<double>(batches_[b].rows.count * d_);
    team_.run(batches_.size(), operations,
              [&](std::size_t b, std::size_t worker) { scatter(b, scratch_[worker]); });
}

void ClusterSumsUpdater::recompute(std::uint8_t from_mark) {
    std::vector<std::size_t> changed;
    std::size_t n_rows = 0, most_rows = 0;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
        if (!is_marked(marks_[b], from_mark)) continue;
        changed.push_back(b);
        n_rows += batches_[b].rows.count;
        most_rows = std::max(most_rows, batches_[b].rows.count);
    }
    const double operations = costs::kPerCompensatedAdd * static_cast<double>(n_rows * d_);
    // Threads share batches, or where one is too large each batch by clusters: a sum takes its rows
    // in order, whichever thread adds.
    const std::size_t slices = most_rows * team_.size() > n_rows ? std::min(team_.size(), k_) : 1;
    team_.run(changed.size() * slices, operations, [&](std::size_t item, std::size_t worker) {
        const std::size_t slice = item % slices;
        sum(changed[item / slices], from_mark, slice * k_ / slices, (slice + 1) * k_ / slices,
            scratch_[worker]);
    });
    for (const std::size_t b : changed) {
        counted_[b] = 1;
        for (std::size_t c = 0; c < k_; ++c) {
            if (marks_[b][c] < from_mark) continue;
            changed_[c] = 1;
            scatter_marks_[b][c] = kDirty;
            marks_[b][c] = kExact;
            cancelled_[b][c] = 0.0;
        }
    }
}

// List the rows of the clusters that are `stale`.
std::size_t ClusterSumsUpdater::list_stale_rows(const WorkingBatch &batch,
                                                SumScratch &scratch) const {
    scratch.stale_rows.resize(batch.rows.count + kSpare);
    return set_.list_marked(batch.labels, scratch.stale.data(), k_, batch.rows.count,
                            scratch.stale_rows.data());
}

void ClusterSumsUpdater::sum(std::size_t b, std::uint8_t from_mark, std::size_t first,
                             std::size_t last, SumScratch &scratch) {
    WorkingBatch &batch = batches_[b];
    double *rests = scratch.rests.data();
    std::fill(scratch.stale.begin(), scratch.stale.end(), 0.0F);
    for (std::size_t c = first; c < last; ++c) {
        if (marks_[b][c] < from_mark) continue;
        scratch.stale[c] = 1.0F;
        std::fill_n(batch.sums + c * d_, d_, 0.0);
        std::fill_n(rests + c * d_, d_, 0.0);
    }
    const std::size_t n_stale_rows = list_stale_rows(batch, scratch);
    set_.add_rows(batch.rows, batch.weights, batch.labels, scratch.stale_rows.data(), n_stale_rows,
                  batch.sums, rests);
    for (std::size_t c = first; c < last; ++c)
        if (scratch.stale[c] != 0.0F)
            for (std::size_t j = 0; j < d_; ++j) batch.sums[c * d_ + j] += rests[c * d_ + j];
    // Where every row weighs 1, rows that come and go leave an exact count behind.
    if (batch.weights != nullptr || !counted_[b]) weigh(batch, scratch, n_stale_rows);
}

void ClusterSumsUpdater::weigh(WorkingBatch &batch, const SumScratch &scratch,
                               std::size_t n_stale_rows) const {
    std::vector<double> rests(k_);
    for (std::size_t c = 0; c < k_; ++c)
        if (scratch.stale[c] != 0.0F) batch.masses[c] = 0.0;
    for (std::size_t m = 0; m < n_stale_rows; ++m) {
        const std::size_t i = scratch.stale_rows[m],
                          label = static_cast<std::size_t>(batch.labels[i]);
        const double weight = weight_of(batch, i), before = batch.masses[label];
        batch.masses[label] = before + weight;
        if (batch.weights == nullptr) continue;  // counts are exact
        const double added = batch.masses[label] - before;
        rests[label] += (before - (batch.masses[label] - added)) + (weight - added);
    }
    for (std::size_t c = 0; c < k_; ++c)
        if (scratch.stale[c] != 0.0F) batch.masses[c] += rests[c];
}

void ClusterSumsUpdater::scatter(std::size_t b, SumScratch &scratch) {
    WorkingBatch &batch = batches_[b];
    std::vector<std::uint8_t> &marks = scatter_marks_[b];
    if (!is_marked(marks, kDirty)) return;
    double *means = scratch.means.data(), *quarters = scratch.quarters.data();
    for (std::size_t c = 0; c < k_; ++c) {
        scratch.stale[c] = marks[c] >= kDirty;
        if (scratch.stale[c] == 0.0F) continue;
        std::fill_n(quarters + 4 * c, 4, 0.0);
        if (batch.masses[c] <= 0.0) continue;
        for (std::size_t j = 0; j < d_; ++j)
            means[c * d_ + j] = batch.sums[c * d_ + j] / batch.masses[c];
    }
    const std::size_t n_stale_rows = list_stale_rows(batch, scratch);
    set_.add_squares(batch.rows, batch.weights, batch.labels, scratch.stale_rows.data(),
                     n_stale_rows, means, quarters);
    for (std::size_t c = 0; c < k_; ++c) {
        const double *sums = quarters + 4 * c;
        if (scratch.stale[c] != 0.0F) batch.scatter[c] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    std::fill(marks.begin(), marks.end(), static_cast<std::uint8_t>(kExact));
}

Errors ClusterSumsUpdater::errors(const double *centroids) {
    Errors errors = {0.0, 0.0};
    double *gap = gaps_.data();
    for (const WorkingBatch &batch : batches_) {
        errors.newest = 0.0;
        // Scatter about the mean plus the mean's own distance: only sums of squares, so nothing
        // cancels however far from zero the points lie.
        set_.squared_to_means(batch.sums, batch.masses, k_, d_, centroids, gap);
        for (std::size_t c = 0; c < k_; ++c, ++gap)
            if (batch.masses[c] > 0.0) errors.newest += batch.scatter[c] + batch.masses[c] * *gap;
        errors.window += batch.decay * errors.newest;
    }
    return errors;
}

// A batch pulls each centroid towards its own mean; without it the centroid would be farther away
// by the factor mass / (mass - its share). Labels are taken to stay. Where hardly one row of the
// cluster would be left it is the rows that are left out, one at a time.
double ClusterSumsUpdater::error_left_out() {
    masses();
    double error = 0.0;
    const double *gap = gaps_.data();
    for (const WorkingBatch &batch : batches_) {
        double mass = 0.0, alone = 0.0;
        for (std::size_t c = 0; c < k_; ++c) mass += batch.masses[c];
        const double row = mass / static_cast<double>(batch.rows.count);
        for (std::size_t c = 0; c < k_; ++c) {
            const double share = batch.masses[c], squared = *gap++;
            if (share <= 0.0) continue;
            const double rest = masses_[c] - batch.decay * share;
            if (rest > batch.decay * row) {
                const double factor = masses_[c] / rest;
                alone += batch.scatter[c] + share * squared * factor * factor;
            } else {
                const double factor = share > row ? share / (share - row) : 1.0;
                alone += batch.scatter[c] * factor * factor + share * squared;
            }
        }
        error += batch.decay * alone;
    }
    return error;
}

// The same on the sphere, where the centroid without a batch is the direction of what is left of
// the sums. Where hardly one row would be left, each row's cosine with the sum of the others is
// taken to be that of rows which all have the mean cosine.
double ClusterSumsUpdater::error_left_out_on_sphere() {
    masses();
    std::vector<double> total(d_), rest(d_);
    double error = 0.0;
    for (std::size_t c = 0; c < k_; ++c) {
        if (masses_[c] <= 0.0) continue;
        mean(c, total.data());
        for (const WorkingBatch &batch : batches_) {
            const double share = batch.masses[c];
            if (share <= 0.0) continue;
            double mass = 0.0;
            for (std::size_t other = 0; other < k_; ++other) mass += batch.masses[other];
            const double row = mass / static_cast<double>(batch.rows.count);
            const double *sum = batch.sums + c * d_;
            const double length = length_of(sum, d_) / share;
            // Mean squared length of its points, of which the mean's own is a part.
            const double squared = batch.scatter[c] / share + length * length;
            double cosine = length;
            if (masses_[c] - batch.decay * share > batch.decay * row) {
                for (std::size_t j = 0; j < d_; ++j)
                    rest[j] = total[j] * masses_[c] - batch.decay * sum[j];
                if (put_on_sphere(rest.data(), d_)) {
                    cosine = 0.0;
                    for (std::size_t j = 0; j < d_; ++j) cosine += rest[j] * sum[j];
                    cosine /= share;
                }
            } else if (share > row) {
                const double rows = share / row, whole = rows * length;
                const double others = whole * whole - 2.0 * rows * length * length + squared;
                if (others > 0.0) cosine = (rows * length * length - squared) / std::sqrt(others);
            }
            error += batch.decay * share * std::max(0.0, squared - 2.0 * cosine + 1.0);
        }
    }
    return error;
}

const std::vector<double> &ClusterSumsUpdater::masses() {
    std::fill(masses_.begin(), masses_.end(), 0.0);
    for (const WorkingBatch &batch : batches_)
        for (std::size_t c = 0; c < k_; ++c) masses_[c] += batch.decay * batch.masses[c];
    return masses_;
}

void ClusterSumsUpdater::mean(std::size_t cluster, double *mean) const {
    std::fill(mean, mean + d_, 0.0);
    for (const WorkingBatch &batch : batches_) {
        const double *sum = batch.sums + cluster * d_;
        for (std::size_t j = 0; j < d_; ++j) mean[j] += batch.decay * sum[j];
    }
    for (std::size_t j = 0; j < d_; ++j) mean[j] /= masses_[cluster];
}

}  // namespace kmeander
