// Hamerly's exact assignment: the nearest centroid of every point, most distances ruled out by
// bounds.
//
// Each point carries an upper bound u of the distance to its own centroid and a lower bound l of
// the distance to every other one, taken when the centroids were elsewhere (an epoch). Since then
// centroid c has moved by a known distance p(c), so by the triangle inequality the point keeps its
// cluster as long as
//     u + p(own) < l - max over the others of p
// (Hamerly 2010; net displacement after Newling and Fleuret 2016), or as long as u + p(own) is
// below half the distance from its centroid to the next.
//
// Active set: a point is inactive, and stays where it is stored, while its margin l - u exceeds the
// threshold of its cluster. Where the displacement reaches a threshold, all thresholds are raised
// well beyond it, and one scan activates the points whose margins are not above. A batch of which
// many points become undecided at once is measured as a whole, where that is cheap.
//
// Active points stand in one list, each with the key of its cluster and epoch, under which a table
// has the two limits that decide a point. A sweep compares the list with the table. Where centroids
// are few, what is left undecided is measured against all of them. Otherwise points of one key are
// checked together, block by block: a block of centroids cannot hold a nearer one if none of it has
// moved that far, or if all of it is more than 2 (u + p(own)) away from the own centroid. Only then
// is the point measured: against the own centroid, which may decide it, and against the blocks that
// are left. Its new bounds belong to the present epoch. Weights never enter.
//
// In many columns, or for many clusters, undecided points are measured by leading coordinates
// instead (leading_screen.hpp), which leave a margin as wide as centroids are moving, and nothing
// is known of pairs of centroids.
//
// Bounds are rounded outward by far more than the arithmetic can be wrong, and a point is passed
// over only where it is strictly separated. So the labels equal those that a full pass finds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kmeans/batch.hpp"
#include "kmeans/buffer.hpp"
#include "kmeans/displacement.hpp"
#include "kmeans/leading_screen.hpp"
#include "kmeans/packed_centroids.hpp"
#include "kmeans/points.hpp"
#include "parallel/costs.hpp"
#include "parallel/team.hpp"

namespace kmeander {

class HamerlyAssigner {
public:
    // By leading coordinates along `axes`, unless that is null.
    HamerlyAssigner(std::vector<WorkingBatch> &batches, std::size_t k,
                    std::shared_ptr<const Axes> axes, Team &team);

    // Assign every point to its nearest centroid; true if a label changed.
    bool assign(const double *centroids);

    // What the last call changed, except in new batches.
    const std::vector<Reassignment> &reassigned() const { return reassigned_; }

    // Hand a point to another cluster; it is measured at the next call.
    void reassign(std::size_t batch, std::size_t row, std::int32_t label);

    // Write all bounds to the batches, as they hold at the centroids of the last call.
    void write_bounds();

    // A partial one counts as its share of the columns.
    std::int64_t n_distances() const {
        const std::int64_t d = static_cast<std::int64_t>(d_);
        return counted_.n_distances + (counted_.n_columns + d - 1) / d;
    }

    // Whether leading coordinates take less work than all would.
    bool axes_serve() const { return !screen_ || screen_->n_leading() > 0; }

private:
    // The most points of one key that are checked together.
    static constexpr std::size_t kSameKeyPoints = 128;

    // Of a batch: it has bounds, bounds that leave too many points undecided, or none and no
    // labels.
    enum BatchState : std::uint8_t { kBounded, kLoose, kNew };

    struct ActivePoint {  // where an active point is stored
        std::uint32_t batch, row;
    };
    struct UndecidedPoint {  // a point that may have a nearer centroid
        std::uint32_t at;    // its place in the list
        float upper, lower;  // the distance to its centroid, and a bound of the others in its epoch
        float wanted;        // blocks that are not known to be beyond this are measured
        const float *moved;  // displacement since its epoch, per block
    };
    struct alignas(64) SweepChunk {  // of the active set, swept by one task: what it finds
        std::vector<Reassignment> reassigned;
        ScreenCount counted;
        std::size_t n_found = 0;  // points that their limits leave undecided
    };
    struct SweepScratch {  // room for the work of one thread
        Buffer<std::uint32_t> found, sorted, chosen;
        std::vector<std::uint32_t> counts;
        Buffer<double> points;  // float32 rows as doubles
        Buffer<float> narrowed;
        std::uint32_t at[kSameKeyPoints];
        float upper[kSameKeyPoints], lower[kSameKeyPoints], others[kSameKeyPoints];
        std::size_t n_undecided = 0;
        UndecidedPoint undecided[kGroupRows];
        float beyond[kGroupRows];  // bounds of the blocks that are left out
        LeadingScreen::Scratch leading;
    };

    bool is_mostly_decided() const;
    void open_epoch(const double *centroids);
    void measure_between();
    bool may_be_loose(std::size_t b) const;
    bool is_loose(std::size_t b) const;
    void find_loose();
    void resize_active(std::size_t size);
    void activate();
    void activate(std::size_t epoch);
    void sweep(const double *centroids);
    void sweep(std::size_t begin, std::size_t end, SweepChunk &chunk, SweepScratch &scratch,
               const double *centroids);
    void prefetch(std::size_t at) const;
    void sort_by_key(SweepScratch &scratch, std::size_t n_found) const;
    void tighten_or_queue(const std::uint32_t *found, std::size_t count, SweepChunk &chunk,
                          SweepScratch &scratch, const double *centroids);
    void measure_own(const std::uint32_t *found, std::size_t count, const double *centroid,
                     float *upper) const;
    void measure_all(const std::uint32_t *at, std::size_t count, SweepChunk &chunk,
                     SweepScratch &scratch);
    void measure_undecided(std::int32_t own, SweepChunk &chunk, SweepScratch &scratch);
    void measure(const std::uint32_t *at, std::size_t count, const std::uint32_t *chosen,
                 std::size_t n_chosen, std::size_t n_centroids, SweepChunk &chunk,
                 SweepScratch &scratch);
    void screen(std::size_t n_found, SweepChunk &chunk, SweepScratch &scratch);
    void screen_group(const std::uint32_t *at, std::size_t count, SweepChunk &chunk,
                      SweepScratch &scratch);
    bool is_of_last_pass(std::uint32_t key) const;
    void screen_rows(std::size_t b, std::size_t begin, std::size_t count, ScreenCount &counted,
                     SweepScratch &scratch);
    float margin_wanted(std::size_t cluster) const;
    bool is_remeasured(std::size_t b) const { return state_[b] != kBounded; }
    static bool is_earlier(const Reassignment &one, const Reassignment &other);
    void drop_remeasured();
    void measure_whole_batches();

    std::size_t n_sweep_chunks() const {
        return (active_.size() + costs::kSweptPoints - 1) / costs::kSweptPoints;
    }
    std::size_t end_of_chunk(std::size_t s) const {
        return s + 1 < n_sweep_chunks() ? (s + 1) * costs::kSweptPoints : active_.size();
    }

    void set_bounds(std::size_t at, std::int32_t label, float upper, float lower) {
        keys_[at] = static_cast<std::uint32_t>(
            Displacement::key_of(static_cast<std::size_t>(label), displacement_.now()));
        upper_[at] = upper;
        lower_[at] = lower;
    }

    // A bound of the distance of a point to every other centroid of a block.
    static float bound_of(const UndecidedPoint &point, float gap, std::size_t block) {
        const float by_displacement = point.lower - point.moved[block];
        const float by_gap = gap - point.upper;
        return by_displacement > by_gap ? by_displacement : by_gap;
    }

    std::vector<WorkingBatch> &batches_;
    const std::size_t k_, d_;
    const InstructionSet &set_;
    Team &team_;
    const double n_points_;  // of all batches
    std::optional<LeadingScreen> screen_;
    const bool measures_all_;  // an undecided point, at once and against every centroid
    Displacement displacement_;
    const std::size_t n_blocks_;
    std::vector<SweepScratch> scratch_;  // one per worker
    std::vector<BatchState> state_;  // per batch; all but kBounded are measured whole in this pass

    bool between_is_known_ = false;  // the distances between the present centroids are known
    std::vector<std::size_t> base_;  // per batch: the epoch of its inactive points
    // Per epoch and cluster: the margins of all inactive points are above this.
    std::vector<float> inactive_threshold_;
    std::vector<Buffer<std::uint32_t>> activated_;  // per batch: rows, of one scan
    std::vector<std::size_t> n_activated_;          // how many of them

    // The active set: where its points are stored, their keys, and their bounds in that epoch.
    Buffer<ActivePoint> active_;
    Buffer<std::uint32_t> keys_;
    Buffer<float> upper_, lower_;
    std::vector<SweepChunk> chunks_;
    std::size_t n_sweeps_ = 0,
                n_found_ = 0;  // since the active set began anew; and in the last sweep
    std::vector<Reassignment> reassigned_;

    ScreenCount counted_;
};

}  // namespace kmeander
