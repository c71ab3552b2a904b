// The points awake: who of them is in doubt, and who has a nearer centroid.
#include <algorithm>
#include <limits>

#include "kmeans/hamerly.hpp"
#include "simd/rounding.hpp"

namespace kmeander {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// About how many multiplications would take as long as to look at a point besides measuring it, and
// the share of the list that is looked at in the first sweep; in others, it is taken to be as in
// the last.
constexpr double kPerLook = 1000.0, kShareLookedAt = 0.1;

// How many points before it is measured a row is asked for.
constexpr std::size_t kAhead = 64;

}  // namespace

// Find the points of the list that their limits do not settle, and look at them closely.
void Partition::sweep(const double *centroids) {
    if (stretches_.size() < n_stretches()) stretches_.resize(n_stretches());
    const double n_members = static_cast<double>(members_.size());
    const double n_looks =
        n_sweeps_ > 0 ? static_cast<double>(n_found_) : kShareLookedAt * n_members;
    const double operations =
        kPerScanned * n_members + (kPerLook + static_cast<double>(k_ * d_)) * n_looks;
    team_.run(n_stretches(), operations, [&](std::size_t s, std::size_t worker) {
        sweep(s * kStretch, end_of_stretch(s), stretches_[s], benches_[worker], centroids);
    });
    ++n_sweeps_;
    n_found_ = 0;
    moves_.clear();
    for (std::size_t s = 0; s < n_stretches(); ++s) {
        n_found_ += stretches_[s].n_found;
        moves_.insert(moves_.end(), stretches_[s].moves.begin(), stretches_[s].moves.end());
        n_distances_ += stretches_[s].n_distances;
    }
    // In the order of the window, so that sums do not depend on who was awake.
    std::sort(moves_.begin(), moves_.end(), is_earlier);
}

void Partition::sweep(std::size_t begin, std::size_t end, Stretch &stretch, Bench &bench,
                      const double *centroids) {
    stretch.moves.clear();
    stretch.n_distances = 0;
    stretch.n_found = 0;
    bench.found.resize(kStretch + kSpare);
    const std::size_t n_found =
        set_.unsettled(upper_.data() + begin, lower_.data() + begin, keys_.data() + begin,
                       movement_.margin(), movement_.near(), end - begin, bench.found.data());
    stretch.n_found = n_found;
    if (n_found == 0) return;
    for (std::size_t f = 0; f < n_found; ++f) bench.found[f] += static_cast<std::uint32_t>(begin);
    if (measures_all_) {
        std::size_t asked = 0;
        for (std::size_t f = 0; f < n_found; f += kGroupRows) {
            const std::size_t count = std::min(kGroupRows, n_found - f);
            for (; asked < std::min(f + count + kAhead, n_found); ++asked)
                prefetch(bench.found[asked]);
            measure_all(bench.found.data() + f, count, stretch, bench);
        }
        return;
    }
    sort_by_key(bench, n_found);
    // Points of one key are looked at together, suspects of one cluster measured together.
    const std::uint32_t *sorted = bench.sorted.data();
    std::size_t asked = 0;  // rows that have been asked for
    for (std::size_t first = 0, last = 0; first < n_found; first = last) {
        const std::uint32_t key = keys_[sorted[first]];
        while (last < n_found && last - first < kTogether && keys_[sorted[last]] == key) ++last;
        for (; asked < std::min(last + kAhead, n_found); ++asked) prefetch(sorted[asked]);
        look_at(sorted + first, last - first, stretch, bench, centroids);
        const bool is_last =
            last == n_found || Movement::label_of(keys_[sorted[last]]) != Movement::label_of(key);
        if (is_last) measure_suspects(Movement::label_of(key), stretch, bench);
    }
}

// Rows are looked at here and there: ask for one before it is needed.
void Partition::prefetch(std::size_t at) const {
    kmeander::prefetch(batches_[members_[at].batch].rows, members_[at].row);
}

// Put the points found in order of their keys, and within a key in that of the list.
void Partition::sort_by_key(Bench &bench, std::size_t n_found) const {
    bench.counts.assign(k_ * Movement::kMaxEpochs, 0);
    bench.sorted.resize(kStretch);
    for (std::size_t f = 0; f < n_found; ++f) ++bench.counts[keys_[bench.found[f]]];
    std::uint32_t next = 0;
    for (std::uint32_t &count : bench.counts) {
        const std::uint32_t size = count;
        count = next;
        next += size;
    }
    for (std::size_t f = 0; f < n_found; ++f)
        bench.sorted[bench.counts[keys_[bench.found[f]]]++] = bench.found[f];
}

// Look at points of one cluster and epoch block by block. They get bounds of the present epoch
// where no block may hold a nearer centroid with the bounds that this gives, or those that
// measuring the own distance gives; otherwise they are suspects.
void Partition::look_at(const std::uint32_t *found, std::size_t count, Stretch &stretch,
                        Bench &bench, const double *centroids) {
    const std::uint32_t key = keys_[found[0]];
    const std::int32_t label = Movement::label_of(key);
    const std::size_t cluster = static_cast<std::size_t>(label);
    const float *apart = movement_.apart(cluster), *moved = movement_.moved(key);
    // A margin that the next movement would exhaust, were it like the last, is worth a distance.
    const float enough = movement_.margin()[Movement::key_of(cluster, movement_.now() - 1)];
    const float wanted = 0.25F * movement_.margin()[key];
    float *upper = bench.upper, *lower = bench.lower, *others = bench.others;
    for (std::size_t f = 0; f < count; ++f) {
        upper[f] = rounded_up(upper_[found[f]] + movement_.own(key));
        lower[f] = lower_[found[f]];
    }
    set_.bound_others(apart, moved, n_blocks_, lower, upper, count, others);
    std::size_t n_doubtful = 0;
    for (std::size_t f = 0; f < count; ++f) {
        if (others[f] - upper[f] > enough) {
            set_bounds(found[f], label, upper[f], others[f]);
            continue;
        }
        bench.at[n_doubtful] = found[f];
        upper[n_doubtful] = upper[f];
        lower[n_doubtful++] = lower[f];
    }
    measure_own(bench.at, n_doubtful, centroids + cluster * d_, upper);
    stretch.n_distances += static_cast<std::int64_t>(n_doubtful);
    set_.bound_others(apart, moved, n_blocks_, lower, upper, n_doubtful, others);
    for (std::size_t f = 0; f < n_doubtful; ++f) {
        if (others[f] > upper[f]) {
            set_bounds(bench.at[f], label, upper[f], others[f]);
            continue;
        }
        // A block that could not be nearer, but soon might, is measured, too: a quarter of the
        // movement that there has been since its epoch should not make it a suspect again.
        bench.suspects[bench.n_suspects++] = {bench.at[f], upper[f], lower[f],
                                              rounded_up(upper[f] + wanted), moved};
        if (bench.n_suspects == kGroupRows) measure_suspects(label, stretch, bench);
    }
}

// Bounds of the distances of points to `centroid`.
void Partition::measure_own(const std::uint32_t *found, std::size_t count, const double *centroid,
                            float *upper) const {
    const void *points[kTogether];
    double squared[kTogether];
    const auto rows_of = [&](std::size_t f) -> const Rows & {
        return batches_[members_[found[f]].batch].rows;
    };
    // Batches may differ in type: as many at once as have the same.
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
        const bool is_float32 = rows_of(begin).is_float32;
        for (; end < count && rows_of(end).is_float32 == is_float32; ++end)
            points[end] = row_at(rows_of(end), members_[found[end]].row);
        set_.squared_between(points + begin, is_float32, end - begin, d_, centroid,
                             squared + begin);
    }
    set_.bounds_above(squared, count, upper);
}

// Measure points against every centroid.
void Partition::measure_all(const std::uint32_t *at, std::size_t count, Stretch &stretch,
                            Bench &bench) {
    std::fill(bench.beyond, bench.beyond + count, kInfinity);
    measure(at, count, movement_.packed().all(), n_blocks_, k_, stretch, bench);
}

// Measure the suspects, all of the cluster `own`, against the blocks that one of them needs.
void Partition::measure_suspects(std::int32_t own, Stretch &stretch, Bench &bench) {
    const std::size_t count = bench.n_suspects;
    if (count == 0) return;
    bench.n_suspects = 0;
    const Suspect *suspects = bench.suspects;
    const PackedCentroids &packed = movement_.packed();
    const float *apart = movement_.apart(static_cast<std::size_t>(own));
    const std::size_t home = packed.block_of(static_cast<std::size_t>(own));
    std::size_t n_chosen = 0, n_measured = 0;
    std::fill(bench.beyond, bench.beyond + count, kInfinity);
    for (std::uint32_t b = 0; b < n_blocks_; ++b) {
        bool needed = b == home;
        for (std::size_t s = 0; s < count && !needed; ++s)
            needed = bound_of(suspects[s], apart[b], b) <= suspects[s].wanted;
        if (needed) {
            bench.chosen[n_chosen++] = b;
            n_measured += packed.size_of(b);
            continue;
        }
        for (std::size_t s = 0; s < count; ++s)
            bench.beyond[s] = std::min(bench.beyond[s], bound_of(suspects[s], apart[b], b));
    }
    std::uint32_t at[kGroupRows];
    for (std::size_t s = 0; s < count; ++s) at[s] = suspects[s].at;
    measure(at, count, bench.chosen.data(), n_chosen, n_measured, stretch, bench);
}

// Find the nearest of the blocks `chosen`, of so many centroids, for some points; nothing in the
// others is nearer than `bench.beyond`.
void Partition::measure(const std::uint32_t *at, std::size_t count, const std::uint32_t *chosen,
                        std::size_t n_chosen, std::size_t n_centroids, Stretch &stretch,
                        Bench &bench) {
    const double *points[kGroupRows] = {};
    for (std::size_t p = 0; p < count; ++p) {
        const Member &member = members_[at[p]];
        points[p] = point_at(batches_[member.batch].rows, member.row, bench.points.data() + p * d_);
    }
    std::int32_t labels[kGroupRows];
    float upper[kGroupRows], lower[kGroupRows];
    const std::size_t n_again = find_nearest(points, count, d_, movement_.packed(), chosen,
                                             n_chosen, bench.narrowed.data(), labels, upper, lower);
    stretch.n_distances += static_cast<std::int64_t>((count + n_again) * n_centroids);
    for (std::size_t p = 0; p < count; ++p) {
        const std::int32_t own = Movement::label_of(keys_[at[p]]);
        set_bounds(at[p], labels[p], upper[p], std::min(lower[p], rounded_down(bench.beyond[p])));
        if (labels[p] == own) continue;
        const Member &member = members_[at[p]];
        stretch.moves.push_back({member.batch, member.row, own, labels[p]});
        batches_[member.batch].labels[member.row] = labels[p];
    }
}

}  // namespace kmeander
