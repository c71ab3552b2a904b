#include "partition.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "bounds.hpp"

namespace kmeander {
namespace {

// The upper bound of a member that has left its group: no limit catches it again.
constexpr float kGone = -std::numeric_limits<float>::infinity();

double squared_between(const double *one, const double *other, std::size_t d) {
    double squared = 0.0;
    for (std::size_t j = 0; j < d; ++j) squared += (one[j] - other[j]) * (one[j] - other[j]);
    return squared;
}

std::size_t row_size(const Rows &rows) {
    return rows.columns * (rows.is_float32 ? sizeof(float) : sizeof(double));
}

inline const void *row_at(const Rows &rows, std::size_t i) {
    return static_cast<const char *>(rows.data) + i * row_size(rows);
}

// Rows are looked at here and there: ask for them before they are needed.
inline void prefetch(const Rows &rows, std::size_t i) {
    const char *row = static_cast<const char *>(row_at(rows, i));
    const std::size_t size = std::min<std::size_t>(row_size(rows), 512);
    for (std::size_t at = 0; at < size; at += 64) __builtin_prefetch(row + at);
    __builtin_prefetch(row + size - 1);
}

// Limits that nothing meets.
constexpr Settled kNothing = {kGone, std::numeric_limits<float>::infinity()};

// Epochs kept apart; each costs k * d operations a pass.
constexpr std::size_t kMaxEpochs = 32;

// With so few blocks a point is sooner measured against all than thought about.
constexpr std::size_t kFewBlocks = 3;

// How far beyond the present movement points are woken: so far it may grow before the next scan.
constexpr float kWakeAhead = 2.0F;

// The most members of a group, and about the most that one task sweeps.
constexpr std::size_t kMostMembers = 4096;

}  // namespace

Partition::Partition(std::vector<Batch> &batches, std::size_t k, Team &team)
    : batches_(batches),
      k_(k),
      d_(batches.front().rows.columns),
      set_(instruction_set()),
      team_(team),
      packed_(k, d_),
      n_blocks_(packed_.n_blocks()),
      scratch_(team.size(), d_),
      chosen_(team.size() * n_blocks_),
      base_(batches.size()),
      woken_(batches.size()),
      n_woken_(batches.size()),
      groups_(k),
      next_(k),
      stray_(k, 1),
      unmeasured_(k, 1),
      between_(k * k, std::numeric_limits<float>::infinity()),
      nearest_other_(k) {
    std::vector<const double *> snapshots;
    for (std::size_t b = 0; b < batches.size(); ++b) {
        const double *snapshot = batches[b].snapshot;
        fresh_.push_back(snapshot == nullptr);
        if (snapshot == nullptr) continue;
        const auto found = std::find(snapshots.begin(), snapshots.end(), snapshot);
        base_[b] = static_cast<std::size_t>(found - snapshots.begin());
        if (found != snapshots.end()) continue;
        snapshots.push_back(snapshot);
        snapshots_.emplace_back(snapshot, snapshot + k * d_);
    }
}

bool Partition::assign(const double *centroids) {
    packed_.pack(centroids);
    find_strays(centroids);
    open_epoch(centroids);
    wake();
    const auto awake = [](const std::vector<Group> &groups) { return !groups.empty(); };
    if (std::any_of(groups_.begin(), groups_.end(), awake)) measure_apart();
    sweep_groups(centroids);
    const bool any_fresh = std::find(fresh_.begin(), fresh_.end(), true) != fresh_.end();
    if (any_fresh) measure_new_batches();
    return any_fresh || !moves_.empty();
}

void Partition::put(std::size_t batch, std::size_t row, std::int32_t label) {
    batches_[batch].labels[row] = label;
    if (batches_[batch].upper[row] == kGone) {  // awake: it is in a group
        std::size_t at = 0;
        while (members_[at].batch != batch || members_[at].row != row || upper_[at] == kGone) ++at;
        upper_[at] = kGone;
    }
    batches_[batch].upper[row] = kGone;
    groups_[static_cast<std::size_t>(label)].push_back(
        {static_cast<std::uint32_t>(now_), members_.size(), members_.size() + 1, kNothing});
    members_.push_back({static_cast<std::uint32_t>(batch), static_cast<std::uint32_t>(row)});
    upper_.push_back(std::numeric_limits<float>::infinity());
    lower_.push_back(0.0F);
}

void Partition::settle() {
    measure_apart();
    // Of points awake this writes nothing that counts: theirs follow.
    team_.run(batches_.size(), [&](std::size_t b, std::size_t) {
        const Batch &batch = batches_[b];
        set_.rebase(batch.labels, batch.rows.count, own_moved_.data() + base_[b] * k_,
                    others_moved_.data() + base_[b] * k_, nearest_other_.data(), batch.upper,
                    batch.lower);
    });
    team_.run(k_, [&](std::size_t c, std::size_t) {
        for (const Group &group : groups_[c]) {
            const float own = own_moved_[group.epoch * k_ + c];
            const float others = others_moved_[group.epoch * k_ + c];
            for (std::size_t at = group.begin; at < group.end; ++at) {
                if (upper_[at] == kGone) continue;
                const Batch &batch = batches_[members_[at].batch];
                const float upper = rounded_up(upper_[at] + own);
                batch.upper[members_[at].row] = upper;
                batch.lower[members_[at].row] = rounded_down(
                    std::max(lower_[at] - others, nearest_other_[c] - upper));
            }
        }
    });
}

// Wake the points that the movement may have unsettled.
void Partition::wake() {
    for (std::size_t epoch = 0; epoch <= now_; ++epoch) {
        bool is_base = false, exceeded = false;
        for (std::size_t b = 0; b < batches_.size() && !is_base; ++b)
            is_base = base_[b] == epoch && !fresh_[b];
        if (!is_base) continue;
        for (std::size_t c = 0; c < k_; ++c) {
            float &asleep = asleep_[epoch * k_ + c];
            const float margin = settled_[epoch * k_ + c].margin;
            if (margin <= asleep) continue;
            exceeded = true;
            asleep = std::min(kWakeAhead * margin, std::numeric_limits<float>::max());
        }
        if (exceeded) wake(epoch);
    }
}

// Scan the points that sleep since `epoch` and group those whose margins are not above `asleep_`.
void Partition::wake(std::size_t epoch) {
    team_.run(batches_.size(), [&](std::size_t b, std::size_t) {
        n_woken_[b] = 0;
        if (base_[b] != epoch || fresh_[b]) return;
        const Batch &batch = batches_[b];
        woken_[b].resize(batch.rows.count + kSpare);
        n_woken_[b] = set_.awake(batch.labels, batch.upper, batch.lower,
                                 asleep_.data() + epoch * k_, batch.rows.count, woken_[b].data());
    });
    std::vector<std::size_t> counts(k_);
    for (std::size_t b = 0; b < batches_.size(); ++b)
        for (std::size_t w = 0; w < n_woken_[b]; ++w)
            ++counts[static_cast<std::size_t>(batches_[b].labels[woken_[b][w]])];
    const std::size_t first = members_.size();
    open_groups(counts, epoch);
    for (std::size_t b = 0; b < batches_.size(); ++b) {
        const Batch &batch = batches_[b];
        for (std::size_t w = 0; w < n_woken_[b]; ++w) {
            const std::uint32_t row = woken_[b][w];
            const std::size_t at = next_[static_cast<std::size_t>(batch.labels[row])]++;
            members_[at] = {static_cast<std::uint32_t>(b), row};
            upper_[at] = batch.upper[row];
            lower_[at] = batch.lower[row];
            batch.upper[row] = kGone;
        }
    }
    find_least_since(first);
}

// Make groups of `epoch` with so many members of each cluster; `next_` is where they begin.
void Partition::open_groups(const std::vector<std::size_t> &counts, std::size_t epoch) {
    std::size_t end = members_.size();
    for (std::size_t c = 0; c < k_; ++c) {
        next_[c] = end;
        end += counts[c];
        for (std::size_t begin = next_[c]; begin < end; begin += kMostMembers)
            groups_[c].push_back({static_cast<std::uint32_t>(epoch), begin,
                                  std::min(begin + kMostMembers, end), {}});
    }
    members_.resize(end);
    upper_.resize(end);
    lower_.resize(end);
}

// Group what the sweeps have measured.
void Partition::group_measured(std::size_t n_sweeps) {
    std::vector<std::size_t> counts(k_);
    for (std::size_t s = 0; s < n_sweeps; ++s)
        for (const Bounded &point : sweeps_[s].measured)
            ++counts[static_cast<std::size_t>(point.label)];
    const std::size_t first = members_.size();
    open_groups(counts, now_);
    for (std::size_t s = 0; s < n_sweeps; ++s) {
        for (const Bounded &point : sweeps_[s].measured) {
            const std::size_t at = next_[static_cast<std::size_t>(point.label)]++;
            members_[at] = point.member;
            upper_[at] = point.upper;
            lower_[at] = point.lower;
        }
    }
    find_least_since(first);
}

// Find the limits of all groups whose members stand at `first` and beyond.
void Partition::find_least_since(std::size_t first) {
    for (std::vector<Group> &groups : groups_)
        for (std::size_t g = groups.size(); g > 0 && groups[g - 1].begin >= first; --g)
            find_least(groups[g - 1]);
}

// Which centroids have moved since the last pass: between those that have not, nothing is new.
void Partition::find_strays(const double *centroids) {
    if (now_ == kNever) return;
    const double *before = snapshots_[now_].data();
    for (std::size_t c = 0; c < k_; ++c) {
        stray_[c] = !std::equal(centroids + c * d_, centroids + (c + 1) * d_, before + c * d_);
        unmeasured_[c] |= stray_[c];
    }
}

// Begin the epoch of `centroids` and find how far they have moved since every other one.
void Partition::open_epoch(const double *centroids) {
    if (snapshots_.size() == kMaxEpochs) {
        settle();
        snapshots_ = {std::move(snapshots_[now_])};
        for (std::vector<Group> &groups : groups_) groups.clear();
        members_.clear();
        upper_.clear();
        lower_.clear();
        std::fill(base_.begin(), base_.end(), std::size_t{0});
        asleep_.clear();
        std::fill(stray_.begin(), stray_.end(), std::uint8_t{1});
    }
    now_ = snapshots_.size();
    snapshots_.emplace_back(centroids, centroids + k_ * d_);
    own_moved_.resize(snapshots_.size() * k_);
    others_moved_.resize(snapshots_.size() * k_);
    settled_.resize(snapshots_.size() * k_);
    asleep_.resize(snapshots_.size() * k_, kGone);
    moved_.resize(snapshots_.size() * k_ * n_blocks_);
    std::vector<float> block_most(n_blocks_);
    for (std::size_t epoch = 0; epoch < snapshots_.size(); ++epoch) {
        float *own = own_moved_.data() + epoch * k_;
        std::fill(block_most.begin(), block_most.end(), 0.0F);
        for (std::size_t c = 0; c < k_; ++c) {
            const double *then = snapshots_[epoch].data() + c * d_;
            if (stray_[c] || epoch == now_)
                own[c] = bound_above(squared_between(centroids + c * d_, then, d_));
            float &most = block_most[packed_.block_of(c)];
            most = std::max(most, own[c]);
        }
        for (std::size_t c = 0; c < k_; ++c) {
            float *moved = moved_.data() + (epoch * k_ + c) * n_blocks_;
            std::copy(block_most.begin(), block_most.end(), moved);
            const std::size_t home = packed_.block_of(c), first = home * packed_.lanes();
            moved[home] = 0.0F;
            for (std::size_t other = first; other < first + packed_.size_of(home); ++other)
                if (other != c) moved[home] = std::max(moved[home], own[other]);
            const float others = *std::max_element(moved, moved + n_blocks_);
            others_moved_[epoch * k_ + c] = others;
            // Finite, so that a member that is gone exceeds it.
            settled_[epoch * k_ + c].margin =
                std::min(rounded_up(own[c] + others), std::numeric_limits<float>::max());
        }
    }
}

// Find how far apart the present centroids are, and from that which upper bounds settle a point. Left
// out as long as nobody asks, since a pass in which nothing wakes does not.
void Partition::measure_apart() {
    const double *centroids = snapshots_[now_].data();
    const Rows rows = {centroids, false, k_, d_};
    std::vector<double> squared(k_);
    std::vector<float> below(k_);
    std::size_t n_strays = 0;
    for (std::size_t a = 0; a < k_; ++a) {
        if (!unmeasured_[a]) continue;
        ++n_strays;
        set_.squared_to(rows, 0, k_, centroids + a * d_, squared.data());
        set_.bounds_below(squared.data(), k_, below.data());
        below[a] = std::numeric_limits<float>::infinity();
        for (std::size_t c = 0; c < k_; ++c) between_[a * k_ + c] = between_[c * k_ + a] = below[c];
    }
    // Each pair once.
    n_distances_ += static_cast<std::int64_t>(n_strays * (k_ - n_strays) +
                                              n_strays * (n_strays - 1) / 2);
    apart_.resize(k_ * n_blocks_);
    for (std::size_t c = 0; c < k_; ++c)
        for (std::size_t b = 0; b < n_blocks_; ++b) {
            const float *first = between_.data() + c * k_ + b * packed_.lanes();
            apart_[c * n_blocks_ + b] = *std::min_element(first, first + packed_.size_of(b));
        }
    std::fill(unmeasured_.begin(), unmeasured_.end(), std::uint8_t{0});
    for (std::size_t c = 0; c < k_; ++c) {
        const float *apart = apart_.data() + c * n_blocks_;
        nearest_other_[c] = *std::min_element(apart, apart + n_blocks_);
        for (std::size_t at = c; at < settled_.size(); at += k_)
            settled_[at].upper = rounded_down(0.5F * nearest_other_[c] - own_moved_[at]);
    }
}

// Share the groups that are not settled as a whole out among sweeps, each of one cluster; return
// their number.
std::size_t Partition::plan_sweeps() {
    unsettled_.clear();
    std::size_t n_sweeps = 0;
    for (std::size_t c = 0; c < k_; ++c) {
        std::size_t n_members = kMostMembers;
        for (Group &group : groups_[c]) {
            const Settled &limit = settled_[group.epoch * k_ + c];
            if (group.least.margin > limit.margin || group.least.upper < limit.upper) continue;
            if (n_members >= kMostMembers) {
                if (n_sweeps == sweeps_.size()) sweeps_.emplace_back();
                Sweep &sweep = sweeps_[n_sweeps++];
                sweep.label = static_cast<std::int32_t>(c);
                sweep.first = unsettled_.size();
                sweep.measured.clear();
                sweep.moves.clear();
                sweep.n_distances = 0;
                n_members = 0;
            }
            unsettled_.push_back(&group);
            sweeps_[n_sweeps - 1].last = unsettled_.size();
            n_members += group.end - group.begin;
        }
    }
    return n_sweeps;
}

// Find the members that their group's limits do not settle, and look at them closely.
void Partition::sweep_groups(const double *centroids) {
    const std::size_t n_sweeps = plan_sweeps();
    team_.run(n_sweeps, [&](std::size_t s, std::size_t worker) {
        sweep(sweeps_[s], worker, centroids);
    });
    moves_.clear();
    for (std::size_t s = 0; s < n_sweeps; ++s) {
        moves_.insert(moves_.end(), sweeps_[s].moves.begin(), sweeps_[s].moves.end());
        n_distances_ += sweeps_[s].n_distances;
    }
    // In the order of the window, so that sums do not depend on how points were grouped.
    std::sort(moves_.begin(), moves_.end(), [](const Move &one, const Move &other) {
        return std::tie(one.batch, one.row) < std::tie(other.batch, other.row);
    });
    group_measured(n_sweeps);
}

void Partition::sweep(Sweep &sweep, std::size_t worker, const double *centroids) {
    std::uint32_t found[kMostMembers + kSpare];
    for (std::size_t g = sweep.first; g < sweep.last; ++g) {
        Group &group = *unsettled_[g];
        const std::size_t n_found = set_.unsettled(
            upper_.data() + group.begin, lower_.data() + group.begin,
            settled_[limit_of(group.epoch, sweep.label)], group.end - group.begin, found);
        if (n_found == 0) continue;
        for (std::size_t f = 0; f < n_found; f += kTogether)
            look_at(sweep, worker, group, found + f, std::min(kTogether, n_found - f), centroids);
        find_least(group);
    }
    measure(sweep, worker);
}

void Partition::find_least(Group &group) const {
    group.least = set_.least_settled(upper_.data() + group.begin, lower_.data() + group.begin,
                                     group.end - group.begin);
}

// Look at members of a group block by block. They leave it for the present epoch: where no block may
// hold a nearer centroid with the bounds that this gives, or those that measuring the own distance
// gives; otherwise as suspects.
void Partition::look_at(Sweep &sweep, std::size_t worker, const Group &group,
                        const std::uint32_t *found, std::size_t count, const double *centroids) {
    const std::size_t limit = limit_of(group.epoch, sweep.label);
    const float *apart = apart_of(sweep.label), *moved = moved_.data() + limit * n_blocks_;
    // A margin that the next movement would exhaust, were it like the last, is worth a distance.
    const float enough = settled_[limit_of(now_ - 1, sweep.label)].margin;
    const float wanted = 0.25F * settled_[limit].margin;
    const bool few_blocks = n_blocks_ <= kFewBlocks;
    Member *members = sweep.looks.members;
    float *upper = sweep.looks.upper, *lower = sweep.looks.lower, *others = sweep.looks.others;
    for (std::size_t f = 0; f < count; ++f) {
        const std::size_t at = group.begin + found[f];
        members[f] = members_[at];
        upper[f] = rounded_up(upper_[at] + own_moved_[limit]);
        lower[f] = lower_[at];
        upper_[at] = kGone;
    }
    set_.bound_others(apart, moved, n_blocks_, lower, upper, count, others);
    std::size_t n_doubtful = 0;
    for (std::size_t f = 0; f < count; ++f) {
        if (others[f] - upper[f] > enough) {
            sweep.measured.emplace_back(members[f], sweep.label, upper[f], others[f]);
            continue;
        }
        prefetch(batches_[members[f].batch].rows, members[f].row);
        members[n_doubtful] = members[f];
        upper[n_doubtful] = upper[f];
        lower[n_doubtful++] = lower[f];
    }
    if (!few_blocks) {
        measure_own(members, n_doubtful, centroids + static_cast<std::size_t>(sweep.label) * d_,
                    upper);
        sweep.n_distances += static_cast<std::int64_t>(n_doubtful);
        set_.bound_others(apart, moved, n_blocks_, lower, upper, n_doubtful, others);
    }
    for (std::size_t f = 0; f < n_doubtful; ++f) {
        if (!few_blocks && others[f] > upper[f]) {
            sweep.measured.emplace_back(members[f], sweep.label, upper[f], others[f]);
            continue;
        }
        // A block that could not be nearer, but soon might, is measured, too: a quarter of the
        // movement that there has been since its epoch should not make it a suspect again.
        sweep.suspects.emplace_back(members[f], moved, upper[f], lower[f],
                                    rounded_up(upper[f] + wanted));
        if (sweep.suspects.size() == kGroupRows) measure(sweep, worker);
    }
}

// Bounds of the distances of `members` to `centroid`.
void Partition::measure_own(const Member *members, std::size_t count, const double *centroid,
                            float *upper) const {
    const void *points[kTogether];
    double squared[kTogether];
    // Batches may differ in type: as many at once as have the same.
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
        const bool is_float32 = batches_[members[begin].batch].rows.is_float32;
        for (; end < count && batches_[members[end].batch].rows.is_float32 == is_float32; ++end)
            points[end] = row_at(batches_[members[end].batch].rows, members[end].row);
        set_.squared_between(points + begin, is_float32, end - begin, d_, centroid,
                             squared + begin);
    }
    set_.bounds_above(squared, count, upper);
}

// Measure the suspects of a sweep against the blocks that one of them needs.
void Partition::measure(Sweep &sweep, std::size_t worker) {
    const std::size_t count = sweep.suspects.size();
    if (count == 0) return;
    const Suspect *suspects = sweep.suspects.data();
    double *points = scratch_.of(worker);
    for (std::size_t s = 0; s < count; ++s) {
        const Rows &rows = batches_[suspects[s].member.batch].rows;
        if (rows.is_float32) set_.widen(rows, suspects[s].member.row, points + s * d_);
        else std::memcpy(points + s * d_, row_at(rows, suspects[s].member.row), row_size(rows));
    }

    const std::uint32_t *chosen = packed_.all();
    std::size_t n_chosen = n_blocks_, n_measured = k_;
    float beyond[kGroupRows];  // bounds of the blocks that are left out
    std::fill(beyond, beyond + count, std::numeric_limits<float>::infinity());
    if (n_blocks_ > kFewBlocks) {
        const float *apart = apart_of(sweep.label);
        const std::size_t home = packed_.block_of(static_cast<std::size_t>(sweep.label));
        std::uint32_t *some = chosen_.data() + worker * n_blocks_;
        n_chosen = n_measured = 0;
        for (std::uint32_t b = 0; b < n_blocks_; ++b) {
            bool needed = b == home;
            for (std::size_t s = 0; s < count && !needed; ++s)
                needed = bound_of(suspects[s], apart[b], b) <= suspects[s].wanted;
            if (needed) {
                some[n_chosen++] = b;
                n_measured += packed_.size_of(b);
                continue;
            }
            for (std::size_t s = 0; s < count; ++s)
                beyond[s] = std::min(beyond[s], bound_of(suspects[s], apart[b], b));
        }
        chosen = some;
    }
    std::int32_t labels[kGroupRows];
    double squared[kGroupRows], second[kGroupRows];
    set_.nearest(points, count, d_, packed_.blocks(), chosen, n_chosen, labels, squared, second);
    sweep.n_distances += static_cast<std::int64_t>(count * n_measured);
    float upper[kGroupRows], lower[kGroupRows];
    set_.bounds_above(squared, count, upper);
    set_.bounds_below(second, count, lower);
    for (std::size_t s = 0; s < count; ++s) {
        const Member &member = suspects[s].member;
        sweep.measured.emplace_back(member, labels[s], upper[s],
                                    std::min(lower[s], rounded_down(beyond[s])));
        if (labels[s] == sweep.label) continue;
        sweep.moves.push_back({member.batch, member.row, sweep.label, labels[s]});
        batches_[member.batch].labels[member.row] = labels[s];
    }
    sweep.suspects.clear();
}

void Partition::measure_new_batches() {
    struct Rows64 {
        std::size_t batch, begin, end;
    };
    std::vector<Rows64> parts;
    std::vector<std::size_t> new_batches;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
        if (!fresh_[b]) continue;
        new_batches.push_back(b);
        fresh_[b] = false;
        const std::size_t count = batches_[b].rows.count;
        n_distances_ += static_cast<std::int64_t>(count * k_);
        for (std::size_t i = 0; i < count; i += kGroupRows)
            parts.push_back({b, i, std::min(i + kGroupRows, count)});
    }
    team_.run(parts.size(), [&](std::size_t index, std::size_t worker) {
        const Rows64 &part = parts[index];
        Batch &batch = batches_[part.batch];
        double squared[kGroupRows], second[kGroupRows];
        set_.nearest(group_of(batch.rows, part.begin, part.end, scratch_.of(worker)),
                     part.end - part.begin, d_, packed_.blocks(), packed_.all(), n_blocks_,
                     batch.labels + part.begin, squared, second);
        set_.bounds_above(squared, part.end - part.begin, batch.upper + part.begin);
        set_.bounds_below(second, part.end - part.begin, batch.lower + part.begin);
    });
    for (const std::size_t b : new_batches) base_[b] = now_;
}

}  // namespace kmeander
