#include "partition.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "bounds.hpp"

namespace kmeander {
namespace {

// The upper bound, where it is stored, of a point that is awake: no scan wakes it again.
constexpr float kGone = -std::numeric_limits<float>::infinity();

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// How far beyond the present movement points are woken: so far it may grow before the next scan.
constexpr float kWakeAhead = 2.0F;

// About how many multiplications would take as long as to scan a point, to write one to the list or
// from it, and to look at one besides measuring it; and the share of the list that is looked at.
constexpr double kPerScanned = 16.0, kPerListed = 100.0, kPerLook = 1000.0, kShareLookedAt = 0.1;

// A list is crowded if it has outgrown the second cache, is so many times what was found in it, and holds
// one in so many points, after so many sweeps.
constexpr std::size_t kLongList = 32768, kCrowd = 16, kSweepsToCrowd = 8;
constexpr double kPartToCrowd = 4.0;

// How many points before it is measured a row is asked for.
constexpr std::size_t kAhead = 64;

// Where centroids are of so few values, points are sooner measured against every one, in the order of
// their rows, than thought about in that of their clusters; of somewhat more where there are so many
// values in the window that rows come from afar.
constexpr std::size_t kFewValues = 640, kSomeValues = 2400;
constexpr double kManyInWindow = 131072.0;

// A batch is measured anew as a whole if this share of it is in doubt; if it has less than a group of rows,
// there is nothing to gain.
constexpr double kManyOfBatch = 0.25;

// Points that one task measures.
constexpr std::size_t kPart = 8 * kGroupRows;

double count_points(const std::vector<Batch> &batches) {
    double n_points = 0.0;
    for (const Batch &batch : batches) n_points += static_cast<double>(batch.rows.count);
    return n_points;
}

bool are_soon_measured(std::size_t n_values, double n_in_window) {
    return n_values <= (n_in_window > kManyInWindow ? kSomeValues : kFewValues);
}

}  // namespace

Partition::Partition(std::vector<Batch> &batches, std::size_t k, Team &team)
    : batches_(batches),
      k_(k),
      d_(batches.front().rows.columns),
      set_(instruction_set()),
      team_(team),
      n_points_(count_points(batches)),
      measures_all_(are_soon_measured(k * d_, n_points_ * static_cast<double>(d_))),
      movement_(k, d_, !measures_all_),
      n_blocks_(movement_.n_blocks()),
      benches_(team.size()),
      base_(batches.size()),
      woken_(batches.size()),
      n_woken_(batches.size()) {
    for (Bench &bench : benches_) {
        bench.chosen.resize(n_blocks_);
        bench.points.resize(kGroupRows * d_);
        bench.narrowed.resize(kGroupRows * d_);
    }
    std::vector<const double *> snapshots;
    for (std::size_t b = 0; b < batches.size(); ++b) {
        const double *snapshot = batches[b].snapshot;
        state_.push_back(snapshot == nullptr ? kNew : kBounded);
        if (snapshot == nullptr) continue;
        const auto found = std::find(snapshots.begin(), snapshots.end(), snapshot);
        base_[b] = static_cast<std::size_t>(found - snapshots.begin());
        if (found != snapshots.end()) continue;
        snapshots.push_back(snapshot);
        movement_.remember(snapshot);
    }
}

bool Partition::assign(const double *centroids) {
    open_epoch(centroids);
    wake();
    const bool any_new = std::count(state_.begin(), state_.end(), kNew) > 0;
    drop_due();
    if (members_.size() > 0) measure_apart();
    sweep(centroids);
    measure_due();
    return any_new || !moves_.empty();
}

void Partition::put(std::size_t batch, std::size_t row, std::int32_t label) {
    batches_[batch].labels[row] = label;
    std::size_t at = members_.size();
    if (batches_[batch].upper[row] == kGone) {  // awake: it is in the list
        at = 0;
        while (members_[at].batch != batch || members_[at].row != row) ++at;
    } else {
        batches_[batch].upper[row] = kGone;
        resize_list(at + 1);
        members_[at] = {static_cast<std::uint32_t>(batch), static_cast<std::uint32_t>(row)};
    }
    set_bounds(at, label, kInfinity, 0.0F);
}

void Partition::measure_apart() {
    if (apart_is_known_) return;
    n_distances_ += movement_.measure_apart();
    apart_is_known_ = true;
}

void Partition::settle() {
    measure_apart();
    // Of points awake this writes nothing that counts: theirs follow.
    team_.run(batches_.size(), kPerScanned * n_points_, [&](std::size_t b, std::size_t) {
        const Batch &batch = batches_[b];
        std::vector<float> own(k_), others(k_);
        for (std::size_t c = 0; c < k_; ++c) {
            own[c] = movement_.own(Movement::key_of(c, base_[b]));
            others[c] = movement_.others(Movement::key_of(c, base_[b]));
        }
        set_.rebase(batch.labels, batch.rows.count, own.data(), others.data(),
                    movement_.nearest_other(), batch.upper, batch.lower);
    });
    const double operations = kPerListed * static_cast<double>(members_.size());
    team_.run(n_stretches(), operations, [&](std::size_t s, std::size_t) {
        for (std::size_t at = s * kStretch; at < end_of_stretch(s); ++at) {
            const Batch &batch = batches_[members_[at].batch];
            const std::uint32_t key = keys_[at];
            const float upper = rounded_up(upper_[at] + movement_.own(key));
            const float apart = movement_.nearest_other()[Movement::label_of(key)];
            batch.upper[members_[at].row] = upper;
            batch.lower[members_[at].row] =
                rounded_down(std::max(lower_[at] - movement_.others(key), apart - upper));
        }
    });
}

// Wake the points that the movement may have unsettled.
void Partition::wake() {
    for (std::size_t epoch = 0; epoch <= movement_.now(); ++epoch) {
        bool is_base = false, exceeded = false;
        for (std::size_t b = 0; b < batches_.size() && !is_base; ++b)
            is_base = base_[b] == epoch && !is_due(b);
        if (!is_base) continue;
        for (std::size_t c = 0; c < k_; ++c) {
            float &asleep = asleep_[epoch * k_ + c];
            const float margin = movement_.margin()[Movement::key_of(c, epoch)];
            if (margin <= asleep) continue;
            exceeded = true;
            asleep = std::min(kWakeAhead * margin, std::numeric_limits<float>::max());
        }
        if (exceeded) wake(epoch);
    }
}

// Scan the points that sleep since `epoch` and put those whose margins are not above `asleep_` on the
// list.
void Partition::wake(std::size_t epoch) {
    team_.run(batches_.size(), kPerScanned * n_points_, [&](std::size_t b, std::size_t) {
        n_woken_[b] = 0;
        if (base_[b] != epoch || is_due(b)) return;
        const Batch &batch = batches_[b];
        woken_[b].resize(batch.rows.count + kSpare);
        n_woken_[b] = set_.awake(batch.labels, batch.upper, batch.lower,
                                 asleep_.data() + epoch * k_, batch.rows.count, woken_[b].data());
    });
    if (measures_all_) find_loose();
    std::vector<std::size_t> first(batches_.size());  // places of the list
    const std::size_t n_before = members_.size();
    std::size_t end = n_before;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
        first[b] = end;
        end += n_woken_[b];
    }
    resize_list(end);
    const double operations = kPerListed * static_cast<double>(end - n_before);
    team_.run(batches_.size(), operations, [&](std::size_t b, std::size_t) {
        const Batch &batch = batches_[b];
        for (std::size_t w = 0; w < n_woken_[b]; ++w) {
            const std::size_t at = first[b] + w;
            const std::uint32_t row = woken_[b][w];
            members_[at] = {static_cast<std::uint32_t>(b), row};
            keys_[at] = static_cast<std::uint32_t>(
                Movement::key_of(static_cast<std::size_t>(batch.labels[row]), epoch));
            upper_[at] = batch.upper[row];
            lower_[at] = batch.lower[row];
            batch.upper[row] = kGone;
        }
    });
}

// Find the batches of which so many points, just woken, are in doubt that they are sooner measured whole.
void Partition::find_loose() {
    bool any = false;
    for (std::size_t b = 0; b < batches_.size(); ++b) any |= may_be_loose(b);
    if (!any) return;
    measure_apart();
    team_.run(batches_.size(), kPerScanned * n_points_, [&](std::size_t b, std::size_t) {
        if (!may_be_loose(b) || !is_loose(b)) return;
        state_[b] = kLoose;
        n_woken_[b] = 0;
    });
}

bool Partition::may_be_loose(std::size_t b) const {
    const std::size_t count = batches_[b].rows.count;
    return count >= kGroupRows &&
           static_cast<double>(n_woken_[b]) >= kManyOfBatch * static_cast<double>(count);
}

bool Partition::is_loose(std::size_t b) const {
    const Batch &batch = batches_[b];
    std::size_t n_doubtful = 0;
    for (std::size_t w = 0; w < n_woken_[b]; ++w) {
        const std::size_t row = woken_[b][w];
        const std::size_t key = Movement::key_of(static_cast<std::size_t>(batch.labels[row]), base_[b]);
        const float upper = batch.upper[row], margin = batch.lower[row] - upper;
        n_doubtful += !(margin > movement_.margin()[key]) && !(upper < movement_.near()[key]);
    }
    return static_cast<double>(n_doubtful) >= kManyOfBatch * static_cast<double>(batch.rows.count);
}

void Partition::resize_list(std::size_t size) {
    members_.resize(size);
    keys_.resize(size);
    upper_.resize(size);
    lower_.resize(size);
}

// Whether the list has become long for what is found in it: points woken when the centroids moved far are
// swept at every pass since. Where few passes follow, they are not worth putting to bed.
bool Partition::is_crowded() const {
    return members_.size() >= kLongList && n_sweeps_ >= kSweepsToCrowd &&
           kCrowd * n_found_ < members_.size() &&
           kPartToCrowd * static_cast<double>(members_.size()) > n_points_;
}

// Begin the epoch of `centroids`. Where there are too many, or too many points awake, points begin anew
// from the present one.
void Partition::open_epoch(const double *centroids) {
    if (movement_.n_epochs() == Movement::kMaxEpochs || is_crowded()) {
        settle();
        movement_.forget();
        resize_list(0);
        n_sweeps_ = 0;
        std::fill(base_.begin(), base_.end(), std::size_t{0});
        asleep_.clear();
    }
    movement_.open(centroids);
    apart_is_known_ = false;
    asleep_.resize(movement_.n_epochs() * k_, kGone);
}

// Find the points of the list that their limits do not settle, and look at them closely.
void Partition::sweep(const double *centroids) {
    if (stretches_.size() < n_stretches()) stretches_.resize(n_stretches());
    const double per_look = kPerLook + static_cast<double>(k_ * d_);
    const double operations =
        (kPerScanned + kShareLookedAt * per_look) * static_cast<double>(members_.size());
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
    for (std::size_t f = 0; f < n_found; ++f)
        bench.found[f] += static_cast<std::uint32_t>(begin);
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

// Look at points of one cluster and epoch block by block. They get bounds of the present epoch where no
// block may hold a nearer centroid with the bounds that this gives, or those that measuring the own
// distance gives; otherwise they are suspects.
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

// Find the nearest of the blocks `chosen`, of so many centroids, for some points; nothing in the others is
// nearer than `bench.beyond`.
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
    const std::size_t n_again =
        find_nearest(points, count, d_, movement_.packed(), chosen, n_chosen, bench.narrowed.data(),
                     labels, upper, lower);
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

bool Partition::is_earlier(const Move &one, const Move &other) {
    return std::tie(one.batch, one.row) < std::tie(other.batch, other.row);
}

// Take the points of batches that are measured whole off the list.
void Partition::drop_due() {
    if (std::count(state_.begin(), state_.end(), kLoose) == 0) return;
    std::size_t kept = 0;
    for (std::size_t at = 0; at < members_.size(); ++at) {
        if (is_due(members_[at].batch)) continue;
        members_[kept] = members_[at];
        keys_[kept] = keys_[at];
        upper_[kept] = upper_[at];
        lower_[kept++] = lower_[at];
    }
    resize_list(kept);
}

void Partition::measure_due() {
    struct Part {
        std::size_t batch, begin, end;
        std::size_t n_again = 0;
        std::vector<Move> moves = {};
    };
    std::vector<Part> parts;
    double n_rows = 0.0;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
        if (!is_due(b)) continue;
        const std::size_t count = batches_[b].rows.count;
        n_rows += static_cast<double>(count);
        for (std::size_t i = 0; i < count; i += kPart)
            parts.push_back({b, i, std::min(i + kPart, count)});
    }
    if (parts.empty()) return;
    team_.run(parts.size(), n_rows * static_cast<double>(k_ * d_),
              [&](std::size_t index, std::size_t worker) {
        Part &part = parts[index];
        const Batch &batch = batches_[part.batch];
        const PackedCentroids &packed = movement_.packed();
        Bench &bench = benches_[worker];
        for (std::size_t begin = part.begin; begin < part.end; begin += kGroupRows) {
            const std::size_t count = std::min(kGroupRows, part.end - begin);
            const double *points[kGroupRows];
            std::int32_t labels[kGroupRows];
            for (std::size_t p = 0; p < count; ++p) {
                points[p] = point_at(batch.rows, begin + p, bench.points.data() + p * d_);
                // The next group's, while this one is measured.
                if (begin + kGroupRows + p < part.end)
                    kmeander::prefetch(batch.rows, begin + kGroupRows + p);
            }
            part.n_again += find_nearest(points, count, d_, packed, packed.all(), n_blocks_,
                                         bench.narrowed.data(), labels, batch.upper + begin,
                                         batch.lower + begin);
            for (std::size_t p = 0; p < count; ++p) {
                std::int32_t &label = batch.labels[begin + p];  // not yet known where it is new
                if (state_[part.batch] == kLoose && labels[p] != label)
                    part.moves.push_back({static_cast<std::uint32_t>(part.batch),
                                          static_cast<std::uint32_t>(begin + p), label, labels[p]});
                label = labels[p];
            }
        }
    });
    // In the order of the window, as those of the list are.
    const std::ptrdiff_t n_listed = static_cast<std::ptrdiff_t>(moves_.size());
    for (const Part &part : parts) {
        n_distances_ += static_cast<std::int64_t>((part.end - part.begin + part.n_again) * k_);
        moves_.insert(moves_.end(), part.moves.begin(), part.moves.end());
        base_[part.batch] = movement_.now();
        state_[part.batch] = kBounded;
    }
    std::inplace_merge(moves_.begin(), moves_.begin() + n_listed, moves_.end(), is_earlier);
}

}  // namespace kmeander
