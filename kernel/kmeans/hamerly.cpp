#include "kmeans/hamerly.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "simd/rounding.hpp"

namespace kmeander {
namespace {

// The upper bound, where it is stored, of a point that is awake: no scan wakes it again.
constexpr float kGone = -std::numeric_limits<float>::infinity();

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// How far beyond the present movement points are woken: so far it may grow before the next scan.
constexpr float kWakeAhead = 2.0F;

// About how many multiplications would take as long as to write a point to the list or from it.
constexpr double kPerListed = 400.0;

// A list is crowded if it has outgrown the second cache, is so many times what was found in it, and
// holds one in so many points, after so many sweeps.
constexpr std::size_t kLongList = 32768, kCrowd = 16, kSweepsToCrowd = 8;
constexpr double kPartToCrowd = 4.0;

// Where centroids are of so few values, points are sooner measured against every one, in the order
// of their rows, than thought about in that of their clusters; of somewhat more where there are so
// many values in the window that rows come from afar.
constexpr std::size_t kFewValues = 640, kSomeValues = 2400;
constexpr double kManyInWindow = 131072.0;

// A batch is measured anew as a whole if this share of it is in doubt; if it has less than a group
// of rows, there is nothing to gain.
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
                    movement_.nearest_other(), k_, batch.upper, batch.lower);
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
        float *asleep = asleep_.data() + epoch * k_;
        const auto margin = [&](std::size_t c) {
            return movement_.margin()[Movement::key_of(c, epoch)];
        };
        for (std::size_t c = 0; c < k_ && !exceeded; ++c) exceeded = !(margin(c) <= asleep[c]);
        if (!exceeded) continue;
        // A scan serves all clusters: raise also what would soon be exceeded.
        for (std::size_t c = 0; c < k_; ++c) {
            const float ahead = kWakeAhead * margin(c);  // not a number: nothing may sleep
            if (!(ahead <= asleep[c]))
                asleep[c] = std::min(ahead, std::numeric_limits<float>::max());
        }
        wake(epoch);
    }
}

// Scan the points that sleep since `epoch` and put those whose margins are not above `asleep_` on
// the list.
void Partition::wake(std::size_t epoch) {
    team_.run(batches_.size(), kPerScanned * n_points_, [&](std::size_t b, std::size_t) {
        n_woken_[b] = 0;
        if (base_[b] != epoch || is_due(b)) return;
        const Batch &batch = batches_[b];
        woken_[b].resize(batch.rows.count + kSpare);
        n_woken_[b] =
            set_.awake(batch.labels, batch.upper, batch.lower, asleep_.data() + epoch * k_, k_,
                       batch.rows.count, woken_[b].data());
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

// Find the batches of which so many points, just woken, are in doubt that they are sooner measured
// whole.
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
    std::vector<float> margins(k_), uppers(k_);
    for (std::size_t c = 0; c < k_; ++c) {
        margins[c] = movement_.margin()[Movement::key_of(c, base_[b])];
        uppers[c] = movement_.near()[Movement::key_of(c, base_[b])];
    }
    // Points that still sleep are not in doubt, nor are those that woke before: their upper bound
    // is gone.
    const std::size_t n_doubtful =
        set_.count_doubtful(batch.labels, batch.upper, batch.lower, margins.data(), uppers.data(),
                            k_, batch.rows.count);
    return static_cast<double>(n_doubtful) >= kManyOfBatch * static_cast<double>(batch.rows.count);
}

void Partition::resize_list(std::size_t size) {
    members_.resize(size);
    keys_.resize(size);
    upper_.resize(size);
    lower_.resize(size);
}

// Whether the list has become long for what is found in it: points woken when the centroids moved
// far are swept at every pass since. Where few passes follow, they are not worth putting to bed.
bool Partition::is_crowded() const {
    return members_.size() >= kLongList && n_sweeps_ >= kSweepsToCrowd &&
           kCrowd * n_found_ < members_.size() &&
           kPartToCrowd * static_cast<double>(members_.size()) > n_points_;
}

// Begin the epoch of `centroids`. Where there are too many, or too many points awake, points begin
// anew from the present one.
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
                      part.n_again += find_nearest(points, count, d_, packed, packed.all(),
                                                   n_blocks_, bench.narrowed.data(), labels,
                                                   batch.upper + begin, batch.lower + begin);
                      for (std::size_t p = 0; p < count; ++p) {
                          std::int32_t &label =
                              batch.labels[begin + p];  // not yet known where it is new
                          if (state_[part.batch] == kLoose && labels[p] != label)
                              part.moves.push_back({static_cast<std::uint32_t>(part.batch),
                                                    static_cast<std::uint32_t>(begin + p), label,
                                                    labels[p]});
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
