// Hamerly's assignment: the active set, and batches that are measured as a whole.
#include "kmeans/hamerly.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "simd/rounding.hpp"

namespace kmeander {
namespace {

// The stored upper bound of an active point: no scan activates it again.
constexpr float kActive = -std::numeric_limits<float>::infinity();

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows that one task measures.
constexpr std::size_t kMeasuredRows = costs::kMeasuredGroups * kGroupRows;

Displacement::Extent extent(bool by_leading, bool measures_all) {
    using Extent = Displacement::Extent;
    if (by_leading) return Extent::kNothing;
    return measures_all ? Extent::kDistances : Extent::kBlocks;
}

// How many epochs are kept: of many large clusters only few, as each takes the room of k rows.
std::size_t most_epochs(bool by_leading, double points_per_cluster) {
    if (!by_leading) return Displacement::kMaxEpochs;
    return static_cast<std::size_t>(std::clamp(costs::kEpochsPerPoint * points_per_cluster, 3.0,
                                               static_cast<double>(Displacement::kMaxEpochs)));
}

double count_points(const std::vector<WorkingBatch> &batches) {
    double n_points = 0.0;
    for (const WorkingBatch &batch : batches) n_points += static_cast<double>(batch.rows.count);
    return n_points;
}

// Whether centroids are so few that it is cheaper to measure a point against all of them, in the
// order of the rows, than to sort points by cluster and rule out blocks.
bool is_cheap_to_measure(std::size_t n_values, double n_in_window) {
    return n_values <= (n_in_window > costs::kManyWindowValues ? costs::kSomeCentroidValues
                                                               : costs::kFewCentroidValues);
}

}  // namespace

HamerlyAssigner::HamerlyAssigner(std::vector<WorkingBatch> &batches, std::size_t k,
                                 std::shared_ptr<const Axes> axes, Team &team)
    : batches_(batches),
      k_(k),
      d_(batches.front().rows.columns),
      set_(instruction_set()),
      team_(team),
      n_points_(count_points(batches)),
      screen_(axes == nullptr ? std::nullopt
                              : std::optional<LeadingScreen>(std::in_place, std::move(axes), k)),
      measures_all_(screen_ || is_cheap_to_measure(k * d_, n_points_ * static_cast<double>(d_))),
      displacement_(k, d_, extent(screen_.has_value(), measures_all_),
                    most_epochs(screen_.has_value(), n_points_ / static_cast<double>(k))),
      n_blocks_(displacement_.n_blocks()),
      scratch_(team.size()),
      base_(batches.size()),
      activated_(batches.size()),
      n_activated_(batches.size()) {
    for (SweepScratch &scratch : scratch_) {
        scratch.chosen.resize(n_blocks_);
        if (screen_) continue;
        scratch.points.resize(kGroupRows * d_);
        scratch.narrowed.resize(kGroupRows * d_);
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
        displacement_.add_epoch(snapshot);
    }
}

bool HamerlyAssigner::assign(const double *centroids) {
    open_epoch(centroids);
    activate();
    const bool any_new = std::count(state_.begin(), state_.end(), kNew) > 0;
    drop_remeasured();
    if (active_.size() > 0) measure_between();
    sweep(centroids);
    measure_whole_batches();
    return any_new || !reassigned_.empty();
}

void HamerlyAssigner::reassign(std::size_t batch, std::size_t row, std::int32_t label) {
    batches_[batch].labels[row] = label;
    std::size_t at = active_.size();
    if (batches_[batch].upper[row] == kActive) {  // it is in the list
        at = 0;
        while (active_[at].batch != batch || active_[at].row != row) ++at;
    } else {
        batches_[batch].upper[row] = kActive;
        resize_active(at + 1);
        active_[at] = {static_cast<std::uint32_t>(batch), static_cast<std::uint32_t>(row)};
    }
    set_bounds(at, label, kInfinity, 0.0F);
}

void HamerlyAssigner::measure_between() {
    if (between_is_known_) return;
    counted_.n_distances += displacement_.measure_between();
    between_is_known_ = true;
}

void HamerlyAssigner::write_bounds() {
    measure_between();
    // What this writes for active points does not count: theirs follow.
    team_.run(batches_.size(), costs::kPerScannedPoint * n_points_,
              [&](std::size_t b, std::size_t) {
                  const WorkingBatch &batch = batches_[b];
                  std::vector<float> own(k_), others(k_);
                  for (std::size_t c = 0; c < k_; ++c) {
                      own[c] = displacement_.own(Displacement::key_of(c, base_[b]));
                      others[c] = displacement_.others(Displacement::key_of(c, base_[b]));
                  }
                  set_.rebase(batch.labels, batch.rows.count, own.data(), others.data(),
                              displacement_.nearest_other(), k_, batch.upper, batch.lower);
              });
    const double operations = costs::kPerListedPoint * static_cast<double>(active_.size());
    team_.run(n_sweep_chunks(), operations, [&](std::size_t s, std::size_t) {
        for (std::size_t at = s * costs::kSweptPoints; at < end_of_chunk(s); ++at) {
            const WorkingBatch &batch = batches_[active_[at].batch];
            const std::uint32_t key = keys_[at];
            const float upper = rounded_up(upper_[at] + displacement_.own(key));
            const float gap = displacement_.nearest_other()[Displacement::label_of(key)];
            batch.upper[active_[at].row] = upper;
            batch.lower[active_[at].row] =
                rounded_down(std::max(lower_[at] - displacement_.others(key), gap - upper));
        }
    });
}

// Activate the points that the displacement may leave undecided.
void HamerlyAssigner::activate() {
    for (std::size_t epoch = 0; epoch <= displacement_.now(); ++epoch) {
        bool is_base = false, exceeded = false;
        for (std::size_t b = 0; b < batches_.size() && !is_base; ++b)
            is_base = base_[b] == epoch && !is_remeasured(b);
        if (!is_base) continue;
        float *threshold = inactive_threshold_.data() + epoch * k_;
        const auto limit = [&](std::size_t c) {
            return displacement_.margin_limit()[Displacement::key_of(c, epoch)];
        };
        for (std::size_t c = 0; c < k_ && !exceeded; ++c) exceeded = !(limit(c) <= threshold[c]);
        if (!exceeded) continue;
        // A scan serves all clusters: raise also what would soon be exceeded.
        for (std::size_t c = 0; c < k_; ++c) {
            const float ahead =
                costs::kActivateAhead * limit(c);  // not a number: none stays inactive
            if (!(ahead <= threshold[c]))
                threshold[c] = std::min(ahead, std::numeric_limits<float>::max());
        }
        activate(epoch);
    }
}

// Scan the inactive points of `epoch`, and list those whose margins are not above the threshold.
void HamerlyAssigner::activate(std::size_t epoch) {
    team_.run(batches_.size(), costs::kPerScannedPoint * n_points_,
              [&](std::size_t b, std::size_t) {
                  n_activated_[b] = 0;
                  if (base_[b] != epoch || is_remeasured(b)) return;
                  const WorkingBatch &batch = batches_[b];
                  activated_[b].resize(batch.rows.count + kSpare);
                  n_activated_[b] = set_.find_active(batch.labels, batch.upper, batch.lower,
                                                     inactive_threshold_.data() + epoch * k_, k_,
                                                     batch.rows.count, activated_[b].data());
              });
    if (measures_all_ && !screen_) find_loose();
    std::vector<std::size_t> first(batches_.size());  // place in the list
    const std::size_t n_before = active_.size();
    std::size_t end = n_before;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
        first[b] = end;
        end += n_activated_[b];
    }
    resize_active(end);
    const double operations = costs::kPerListedPoint * static_cast<double>(end - n_before);
    team_.run(batches_.size(), operations, [&](std::size_t b, std::size_t) {
        const WorkingBatch &batch = batches_[b];
        for (std::size_t w = 0; w < n_activated_[b]; ++w) {
            const std::size_t at = first[b] + w;
            const std::uint32_t row = activated_[b][w];
            active_[at] = {static_cast<std::uint32_t>(b), row};
            keys_[at] = static_cast<std::uint32_t>(
                Displacement::key_of(static_cast<std::size_t>(batch.labels[row]), epoch));
            upper_[at] = batch.upper[row];
            lower_[at] = batch.lower[row];
            batch.upper[row] = kActive;
        }
    });
}

// Find the batches with enough undecided points among those just activated that it is cheaper to
// measure the whole batch.
void HamerlyAssigner::find_loose() {
    bool any = false;
    for (std::size_t b = 0; b < batches_.size(); ++b) any |= may_be_loose(b);
    if (!any) return;
    measure_between();
    team_.run(batches_.size(), costs::kPerScannedPoint * n_points_,
              [&](std::size_t b, std::size_t) {
                  if (!may_be_loose(b) || !is_loose(b)) return;
                  state_[b] = kLoose;
                  n_activated_[b] = 0;
              });
}

bool HamerlyAssigner::may_be_loose(std::size_t b) const {
    const std::size_t count = batches_[b].rows.count;
    return count >= kGroupRows && static_cast<double>(n_activated_[b]) >=
                                      costs::kShareUndecided * static_cast<double>(count);
}

bool HamerlyAssigner::is_loose(std::size_t b) const {
    const WorkingBatch &batch = batches_[b];
    std::vector<float> margins(k_), uppers(k_);
    for (std::size_t c = 0; c < k_; ++c) {
        margins[c] = displacement_.margin_limit()[Displacement::key_of(c, base_[b])];
        uppers[c] = displacement_.upper_limit()[Displacement::key_of(c, base_[b])];
    }
    // Inactive points are decided, and so count as those that were active before: their stored
    // upper bound is infinitely low.
    const std::size_t n_undecided_points =
        set_.count_undecided(batch.labels, batch.upper, batch.lower, margins.data(), uppers.data(),
                             k_, batch.rows.count);
    return static_cast<double>(n_undecided_points) >=
           costs::kShareUndecided * static_cast<double>(batch.rows.count);
}

void HamerlyAssigner::resize_active(std::size_t size) {
    active_.resize(size);
    keys_.resize(size);
    upper_.resize(size);
    lower_.resize(size);
}

// Whether the active set has become long for what is found in it: points activated when the
// centroids moved far are swept at every pass since. Where few passes follow, it is not worth
// making them inactive.
bool HamerlyAssigner::is_mostly_decided() const {
    return active_.size() >= costs::kMinActive && n_sweeps_ >= costs::kMinSweeps &&
           costs::kActivePerUndecided * n_found_ < active_.size() &&
           costs::kMaxPointsPerActive * static_cast<double>(active_.size()) > n_points_;
}

// Begin the epoch of `centroids`. Where there are too many epochs or active points, all bounds are
// put to the present centroids first, and the active set begins anew.
void HamerlyAssigner::open_epoch(const double *centroids) {
    if (displacement_.is_full() || is_mostly_decided()) {
        write_bounds();
        displacement_.keep_present_epoch();
        resize_active(0);
        n_sweeps_ = 0;
        std::fill(base_.begin(), base_.end(), std::size_t{0});
        inactive_threshold_.clear();
    }
    displacement_.open(centroids);
    if (screen_) {
        std::vector<float> moved;
        for (std::size_t c = 0; c < k_ && displacement_.now() > 0; ++c)
            moved.push_back(displacement_.own(Displacement::key_of(c, displacement_.now() - 1)));
        screen_->pack(centroids, moved.empty() ? nullptr : moved.data(), counted_);
    }
    between_is_known_ = false;
    inactive_threshold_.resize(displacement_.n_epochs() * k_, -kInfinity);
}

bool HamerlyAssigner::is_earlier(const Reassignment &one, const Reassignment &other) {
    return std::tie(one.batch, one.row) < std::tie(other.batch, other.row);
}

// Take the points of batches that are measured as a whole off the list.
void HamerlyAssigner::drop_remeasured() {
    if (std::count(state_.begin(), state_.end(), kLoose) == 0) return;
    std::size_t kept = 0;
    for (std::size_t at = 0; at < active_.size(); ++at) {
        if (is_remeasured(active_[at].batch)) continue;
        active_[kept] = active_[at];
        keys_[kept] = keys_[at];
        upper_[kept] = upper_[at];
        lower_[kept++] = lower_[at];
    }
    resize_active(kept);
}

void HamerlyAssigner::measure_whole_batches() {
    struct RowRange {
        std::size_t batch, begin, end;
        ScreenCount counted = {};
        std::vector<Reassignment> reassigned = {};
    };
    std::vector<RowRange> parts;
    double n_rows = 0.0;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
        if (!is_remeasured(b)) continue;
        const std::size_t count = batches_[b].rows.count;
        n_rows += static_cast<double>(count);
        for (std::size_t i = 0; i < count; i += kMeasuredRows)
            parts.push_back({b, i, std::min(i + kMeasuredRows, count)});
    }
    if (parts.empty()) return;
    team_.run(
        parts.size(), n_rows * static_cast<double>(k_ * d_),
        [&](std::size_t index, std::size_t worker) {
            RowRange &part = parts[index];
            const WorkingBatch &batch = batches_[part.batch];
            if (screen_) {
                for (std::size_t begin = part.begin; begin < part.end; begin += kGroupRows)
                    screen_rows(part.batch, begin, std::min(kGroupRows, part.end - begin),
                                part.counted, scratch_[worker]);
                return;
            }
            const PackedCentroids &packed = displacement_.packed();
            SweepScratch &scratch = scratch_[worker];
            for (std::size_t begin = part.begin; begin < part.end; begin += kGroupRows) {
                const std::size_t count = std::min(kGroupRows, part.end - begin);
                const double *points[kGroupRows];
                std::int32_t labels[kGroupRows];
                for (std::size_t p = 0; p < count; ++p) {
                    points[p] = point_at(batch.rows, begin + p, scratch.points.data() + p * d_);
                    // The next group's, while this one is measured.
                    if (begin + kGroupRows + p < part.end)
                        kmeander::prefetch(batch.rows, begin + kGroupRows + p);
                }
                const std::size_t n_again = find_nearest(points, count, d_, packed, packed.all(),
                                                         n_blocks_, scratch.narrowed.data(), labels,
                                                         batch.upper + begin, batch.lower + begin);
                part.counted.n_distances += static_cast<std::int64_t>((count + n_again) * k_);
                for (std::size_t p = 0; p < count; ++p) {
                    std::int32_t &label = batch.labels[begin + p];  // not yet known where it is new
                    if (state_[part.batch] == kLoose && labels[p] != label)
                        part.reassigned.push_back({static_cast<std::uint32_t>(part.batch),
                                                   static_cast<std::uint32_t>(begin + p), label,
                                                   labels[p]});
                    label = labels[p];
                }
            }
        });
    // In the order of the window, like those of the active set.
    const std::ptrdiff_t n_listed = static_cast<std::ptrdiff_t>(reassigned_.size());
    for (const RowRange &part : parts) {
        counted_ += part.counted;
        reassigned_.insert(reassigned_.end(), part.reassigned.begin(), part.reassigned.end());
        base_[part.batch] = displacement_.now();
        state_[part.batch] = kBounded;
    }
    std::inplace_merge(reassigned_.begin(), reassigned_.begin() + n_listed, reassigned_.end(),
                       is_earlier);
}

}  // namespace kmeander
