// Hamerly's assignment: sweep over the active set for undecided points and nearer centroids.
#include <algorithm>
#include <limits>
#include <utility>

#include "kmeans/hamerly.hpp"
#include "simd/rounding.hpp"

namespace kmeander {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A row is prefetched this many points before it is measured.
constexpr std::size_t kAhead = 64;

}  // namespace

// Find the active points that their limits leave undecided, and check them.
void HamerlyAssigner::sweep(const double *centroids) {
    if (chunks_.size() < n_sweep_chunks()) chunks_.resize(n_sweep_chunks());
    const double n_members = static_cast<double>(active_.size());
    const double n_looks =
        n_sweeps_ > 0 ? static_cast<double>(n_found_) : costs::kShareChecked * n_members;
    const double operations = costs::kPerScannedPoint * n_members +
                              (costs::kPerCheckedPoint + static_cast<double>(k_ * d_)) * n_looks;
    team_.run(n_sweep_chunks(), operations, [&](std::size_t s, std::size_t worker) {
        sweep(s * costs::kSweptPoints, end_of_chunk(s), chunks_[s], scratch_[worker], centroids);
    });
    ++n_sweeps_;
    n_found_ = 0;
    reassigned_.clear();
    for (std::size_t s = 0; s < n_sweep_chunks(); ++s) {
        n_found_ += chunks_[s].n_found;
        reassigned_.insert(reassigned_.end(), chunks_[s].reassigned.begin(),
                           chunks_[s].reassigned.end());
        counted_ += chunks_[s].counted;
    }
    // In the order of the window, so that sums do not depend on the active set.
    std::sort(reassigned_.begin(), reassigned_.end(), is_earlier);
}

void HamerlyAssigner::sweep(std::size_t begin, std::size_t end, SweepChunk &chunk,
                            SweepScratch &scratch, const double *centroids) {
    chunk.reassigned.clear();
    chunk.counted = {};
    chunk.n_found = 0;
    scratch.found.resize(costs::kSweptPoints + kSpare);
    const std::size_t n_found =
        set_.find_undecided(upper_.data() + begin, lower_.data() + begin, keys_.data() + begin,
                            displacement_.margin_limit(), displacement_.upper_limit(), end - begin,
                            scratch.found.data());
    chunk.n_found = n_found;
    if (n_found == 0) return;
    for (std::size_t f = 0; f < n_found; ++f) scratch.found[f] += static_cast<std::uint32_t>(begin);
    if (screen_) return screen(n_found, chunk, scratch);
    if (measures_all_) {
        std::size_t asked = 0;
        for (std::size_t f = 0; f < n_found; f += kGroupRows) {
            const std::size_t count = std::min(kGroupRows, n_found - f);
            for (; asked < std::min(f + count + kAhead, n_found); ++asked)
                prefetch(scratch.found[asked]);
            measure_all(scratch.found.data() + f, count, chunk, scratch);
        }
        return;
    }
    sort_by_key(scratch, n_found);
    // Points of one key are checked together, undecided points of one cluster measured together.
    const std::uint32_t *sorted = scratch.sorted.data();
    std::size_t asked = 0;  // rows that have been prefetched
    for (std::size_t first = 0, last = 0; first < n_found; first = last) {
        const std::uint32_t key = keys_[sorted[first]];
        while (last < n_found && last - first < kSameKeyPoints && keys_[sorted[last]] == key)
            ++last;
        for (; asked < std::min(last + kAhead, n_found); ++asked) prefetch(sorted[asked]);
        tighten_or_queue(sorted + first, last - first, chunk, scratch, centroids);
        const bool is_last = last == n_found || Displacement::label_of(keys_[sorted[last]]) !=
                                                    Displacement::label_of(key);
        if (is_last) measure_undecided(Displacement::label_of(key), chunk, scratch);
    }
}

// Undecided rows lie here and there, which no processor foresees.
void HamerlyAssigner::prefetch(std::size_t at) const {
    kmeander::prefetch(batches_[active_[at].batch].rows, active_[at].row);
}

// Sort the points found by key, within a key in the order of the list.
void HamerlyAssigner::sort_by_key(SweepScratch &scratch, std::size_t n_found) const {
    scratch.counts.assign(k_ * Displacement::kMaxEpochs, 0);
    scratch.sorted.resize(costs::kSweptPoints);
    for (std::size_t f = 0; f < n_found; ++f) ++scratch.counts[keys_[scratch.found[f]]];
    std::uint32_t next = 0;
    for (std::uint32_t &count : scratch.counts) {
        const std::uint32_t size = count;
        count = next;
        next += size;
    }
    for (std::size_t f = 0; f < n_found; ++f)
        scratch.sorted[scratch.counts[keys_[scratch.found[f]]]++] = scratch.found[f];
}

// Check points of one cluster and epoch block by block. Where no block can hold a nearer centroid,
// by the bounds as they are or once the own distance is measured, they get bounds of the present
// epoch; all others are queued to be measured.
void HamerlyAssigner::tighten_or_queue(const std::uint32_t *found, std::size_t count,
                                       SweepChunk &chunk, SweepScratch &scratch,
                                       const double *centroids) {
    const std::uint32_t key = keys_[found[0]];
    const std::int32_t label = Displacement::label_of(key);
    const std::size_t cluster = static_cast<std::size_t>(label);
    const float *gaps = displacement_.block_gap(cluster),
                *moved = displacement_.block_displacement(key);
    // A margin that the next displacement would exhaust, were it like the last, is worth a
    // distance.
    const float enough =
        displacement_.margin_limit()[Displacement::key_of(cluster, displacement_.now() - 1)];
    const float wanted = 0.25F * displacement_.margin_limit()[key];
    float *upper = scratch.upper, *lower = scratch.lower, *others = scratch.others;
    for (std::size_t f = 0; f < count; ++f) {
        upper[f] = rounded_up(upper_[found[f]] + displacement_.own(key));
        lower[f] = lower_[found[f]];
    }
    set_.bound_others(gaps, moved, n_blocks_, lower, upper, count, others);
    std::size_t n_undecided_points = 0;
    for (std::size_t f = 0; f < count; ++f) {
        if (others[f] - upper[f] > enough) {
            set_bounds(found[f], label, upper[f], others[f]);
            continue;
        }
        scratch.at[n_undecided_points] = found[f];
        upper[n_undecided_points] = upper[f];
        lower[n_undecided_points++] = lower[f];
    }
    measure_own(scratch.at, n_undecided_points, centroids + cluster * d_, upper);
    chunk.counted.n_distances += static_cast<std::int64_t>(n_undecided_points);
    set_.bound_others(gaps, moved, n_blocks_, lower, upper, n_undecided_points, others);
    for (std::size_t f = 0; f < n_undecided_points; ++f) {
        if (others[f] > upper[f]) {
            set_bounds(scratch.at[f], label, upper[f], others[f]);
            continue;
        }
        // A block that could not be nearer, but soon might, is measured, too: a quarter of the
        // displacement since its epoch should not make the point undecided again.
        scratch.undecided[scratch.n_undecided++] = {scratch.at[f], upper[f], lower[f],
                                                    rounded_up(upper[f] + wanted), moved};
        if (scratch.n_undecided == kGroupRows) measure_undecided(label, chunk, scratch);
    }
}

// Bounds of the distances of points to `centroid`.
void HamerlyAssigner::measure_own(const std::uint32_t *found, std::size_t count,
                                  const double *centroid, float *upper) const {
    const void *points[kSameKeyPoints];
    double squared[kSameKeyPoints];
    const auto rows_of = [&](std::size_t f) -> const PointsView & {
        return batches_[active_[found[f]].batch].rows;
    };
    // Batches may differ in type: each run of rows of one type at once.
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
        const bool is_float32 = rows_of(begin).is_float32;
        for (; end < count && rows_of(end).is_float32 == is_float32; ++end)
            points[end] = row_at(rows_of(end), active_[found[end]].row);
        set_.squared_between(points + begin, is_float32, end - begin, d_, centroid,
                             squared + begin);
    }
    set_.bounds_above(squared, count, upper);
}

// Measure points against every centroid.
void HamerlyAssigner::measure_all(const std::uint32_t *at, std::size_t count, SweepChunk &chunk,
                                  SweepScratch &scratch) {
    std::fill(scratch.beyond, scratch.beyond + count, kInfinity);
    measure(at, count, displacement_.packed().all(), n_blocks_, k_, chunk, scratch);
}

// Measure the queued points, all of cluster `own`, against the blocks that one of them needs.
void HamerlyAssigner::measure_undecided(std::int32_t own, SweepChunk &chunk,
                                        SweepScratch &scratch) {
    const std::size_t count = scratch.n_undecided;
    if (count == 0) return;
    scratch.n_undecided = 0;
    const UndecidedPoint *undecided = scratch.undecided;
    const PackedCentroids &packed = displacement_.packed();
    const float *gaps = displacement_.block_gap(static_cast<std::size_t>(own));
    const std::size_t home = packed.block_of(static_cast<std::size_t>(own));
    std::size_t n_chosen = 0, n_measured = 0;
    std::fill(scratch.beyond, scratch.beyond + count, kInfinity);
    for (std::uint32_t b = 0; b < n_blocks_; ++b) {
        bool needed = b == home;
        for (std::size_t s = 0; s < count && !needed; ++s)
            needed = bound_of(undecided[s], gaps[b], b) <= undecided[s].wanted;
        if (needed) {
            scratch.chosen[n_chosen++] = b;
            n_measured += packed.size_of(b);
            continue;
        }
        for (std::size_t s = 0; s < count; ++s)
            scratch.beyond[s] = std::min(scratch.beyond[s], bound_of(undecided[s], gaps[b], b));
    }
    std::uint32_t at[kGroupRows];
    for (std::size_t s = 0; s < count; ++s) at[s] = undecided[s].at;
    measure(at, count, scratch.chosen.data(), n_chosen, n_measured, chunk, scratch);
}

// Find the nearest centroid of the blocks `chosen` for some points; nothing in the other blocks is
// nearer than `scratch.beyond`.
void HamerlyAssigner::measure(const std::uint32_t *at, std::size_t count,
                              const std::uint32_t *chosen, std::size_t n_chosen,
                              std::size_t n_centroids, SweepChunk &chunk, SweepScratch &scratch) {
    const double *points[kGroupRows] = {};
    for (std::size_t p = 0; p < count; ++p) {
        const ActivePoint &point = active_[at[p]];
        points[p] = point_at(batches_[point.batch].rows, point.row, scratch.points.data() + p * d_);
    }
    std::int32_t labels[kGroupRows];
    float upper[kGroupRows], lower[kGroupRows];
    const std::size_t n_again =
        find_nearest(points, count, d_, displacement_.packed(), chosen, n_chosen,
                     scratch.narrowed.data(), labels, upper, lower);
    chunk.counted.n_distances += static_cast<std::int64_t>((count + n_again) * n_centroids);
    for (std::size_t p = 0; p < count; ++p) {
        const std::int32_t own = Displacement::label_of(keys_[at[p]]);
        set_bounds(at[p], labels[p], upper[p], std::min(lower[p], rounded_down(scratch.beyond[p])));
        if (labels[p] == own) continue;
        const ActivePoint &point = active_[at[p]];
        chunk.reassigned.push_back({point.batch, point.row, own, labels[p]});
        batches_[point.batch].labels[point.row] = labels[p];
    }
}

// By how much the bounds of a point should be apart: what it takes to outlast passes like the last.
float HamerlyAssigner::margin_wanted(std::size_t cluster) const {
    if (displacement_.now() == 0) return 0.0F;
    return costs::kPassesWanted *
           displacement_.margin_limit()[Displacement::key_of(cluster, displacement_.now() - 1)];
}

bool HamerlyAssigner::is_of_last_pass(std::uint32_t key) const {
    return key % Displacement::kMaxEpochs + 1 == displacement_.now();
}

// Find the nearest centroids of the points found, by leading coordinates: together those for which
// about as many centroids are in question.
void HamerlyAssigner::screen(std::size_t n_found, SweepChunk &chunk, SweepScratch &scratch) {
    const std::size_t k = screen_->n_centroids();
    std::vector<std::uint32_t> &counts = scratch.leading.counts, &order = scratch.leading.order;
    const std::size_t width = (k + costs::kQuestionSizes - 1) / costs::kQuestionSizes;
    counts.assign(costs::kQuestionSizes + 1, 0);
    order.resize(n_found);
    for (std::size_t f = 0; f < n_found; ++f) {
        const std::uint32_t at = scratch.found[f], key = keys_[at];
        const std::size_t n_asked =
            is_of_last_pass(key)
                ? screen_->n_in_question(lower_[at], upper_[at] + displacement_.own(key))
                : k;
        order[f] = static_cast<std::uint32_t>(n_asked / width);
        ++counts[order[f]];
    }
    std::uint32_t next = 0;
    for (std::uint32_t &count : counts) next += std::exchange(count, next);
    scratch.sorted.resize(costs::kSweptPoints);
    for (std::size_t f = 0; f < n_found; ++f) scratch.sorted[counts[order[f]]++] = scratch.found[f];
    std::size_t asked = 0;
    for (std::size_t f = 0; f < n_found; f += kGroupRows) {
        const std::size_t count = std::min(kGroupRows, n_found - f);
        for (; asked < std::min(f + 2 * count, n_found); ++asked) prefetch(scratch.sorted[asked]);
        screen_group(scratch.sorted.data() + f, count, chunk, scratch);
    }
}

void HamerlyAssigner::screen_group(const std::uint32_t *at, std::size_t count, SweepChunk &chunk,
                                   SweepScratch &scratch) {
    LeadingScreen::Group group;
    std::int32_t labels[kGroupRows];
    float upper[kGroupRows], lower[kGroupRows];
    const auto point = [&](std::size_t f) -> const ActivePoint & { return active_[at[f]]; };
    // Batches may differ in type: each run of rows of one type at once.
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
        group.is_float32 = batches_[point(begin).batch].rows.is_float32;
        for (; end < count && batches_[point(end).batch].rows.is_float32 == group.is_float32;
             ++end) {
            const WorkingBatch &batch = batches_[point(end).batch];
            const std::size_t row = point(end).row, p = end - begin;
            group.points[p] = row_at(batch.rows, row);
            group.entries[p] = batch.leading + row * screen_->axes().stride();
            labels[p] = batch.labels[row];
            group.margins[p] = margin_wanted(static_cast<std::size_t>(labels[p]));
            const std::uint32_t key = keys_[at[end]];
            const bool is_known = is_of_last_pass(key);
            const float own = rounded_up(upper_[at[end]] + displacement_.own(key));
            group.others[p] = is_known ? lower_[at[end]] : -kInfinity;
            // One that has moved farther is measured again: the bound would grow too loose.
            const bool is_tight = displacement_.own(key) <= costs::kLooseOwn * own;
            group.own[p] = is_known && is_tight ? own : kInfinity;
        }
        group.count = end - begin;
        chunk.counted += screen_->find_nearest(group, scratch.leading, labels, upper, lower);
        for (std::size_t p = 0; p < group.count; ++p) {
            const ActivePoint &found = point(begin + p);
            std::int32_t &label = batches_[found.batch].labels[found.row];
            set_bounds(at[begin + p], labels[p], upper[p], lower[p]);
            if (labels[p] == label) continue;
            chunk.reassigned.push_back({found.batch, found.row, label, labels[p]});
            label = labels[p];
        }
    }
}

// The same for consecutive rows of a new batch.
void HamerlyAssigner::screen_rows(std::size_t b, std::size_t begin, std::size_t count,
                                  ScreenCount &counted, SweepScratch &scratch) {
    const WorkingBatch &batch = batches_[b];
    LeadingScreen::Group group;
    group.is_float32 = batch.rows.is_float32;
    group.count = count;
    for (std::size_t p = 0; p < count; ++p) {
        group.points[p] = row_at(batch.rows, begin + p);
        group.entries[p] = batch.leading + (begin + p) * screen_->axes().stride();
        group.margins[p] = 0.0F;
        group.own[p] = kInfinity;
        group.others[p] = -kInfinity;
        batch.labels[begin + p] = -1;
    }
    counted += screen_->find_nearest(group, scratch.leading, batch.labels + begin,
                                     batch.upper + begin, batch.lower + begin);
}

}  // namespace kmeander
