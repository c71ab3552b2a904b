// Which cluster each point of the window is in, kept exact without measuring every distance.
//
// Each point carries an upper bound u of the distance to its own centroid and a lower bound l of
// the distance to every other one, taken when the centroids were elsewhere (an epoch). Since then
// centroid c has moved by a known distance p(c), so the point keeps its cluster as long as
//     u + p(own) < l - max over the others of p,
// by the triangle inequality (Hamerly 2010; net displacement after Newling and Fleuret 2016), or
// as long as u + p(own) is below half the distance from its centroid to the next.
//
// Most points are never in doubt. They sleep where they are stored, in the order of the rows, as
// long as no cluster's p(own) + p(others) exceeds a threshold that their margins l - u are known to
// exceed; when one does, thresholds are raised well beyond the movement, and a scan wakes the
// points that are no longer above.
//
// A batch of which many are in doubt at once is measured anew as a whole, where that is soon done.
//
// Points awake stand in one list, each with the key of its cluster and epoch, under which a table
// has the two limits that settle a point. A sweep compares the list with the table. What fails is
// measured against all centroids, where that is soon done. Otherwise it is looked at, all of one
// key together, block by block: a block of centroids cannot hold a nearer one if none of it has
// moved that far, or if all of it is more than 2 (u + p(own)) away from the own centroid. Only then
// is the point measured: against the own centroid, which may settle it, and against the blocks that
// are left. Its new bounds are of the present epoch. Weights never enter.
//
// Bounds are rounded outward by far more than the arithmetic can be wrong, and a point is passed
// over only where it is strictly separated. So the labels are those of a full pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmeans/batch.hpp"
#include "kmeans/buffer.hpp"
#include "kmeans/displacement.hpp"
#include "kmeans/packed_centroids.hpp"
#include "parallel/team.hpp"

namespace kmeander {

class Partition {
public:
    Partition(std::vector<Batch> &batches, std::size_t k, Team &team);

    // Give every point its nearest of `centroids`; true if a label changed.
    bool assign(const double *centroids);

    // What the last call changed, except in new batches.
    const std::vector<Move> &moves() const { return moves_; }

    // Put a point into another cluster; it is measured at the next call.
    void put(std::size_t batch, std::size_t row, std::int32_t label);

    // Write all bounds to the batches, as those at the centroids of the last call.
    void settle();

    std::int64_t n_distances() const { return n_distances_; }

private:
    static constexpr std::size_t kTogether = 128;

    // Of a batch: there are bounds, they leave too many in doubt, or there are none and no labels.
    enum State : std::uint8_t { kBounded, kLoose, kNew };

    struct Member {  // of the list of points awake
        std::uint32_t batch, row;
    };
    struct Suspect {         // a point that may have a nearer centroid
        std::uint32_t at;    // its place in the list
        float upper, lower;  // the distance to its centroid, and a bound of the others in its epoch
        float wanted;        // blocks that are not known to be beyond this are measured
        const float *moved;  // since its epoch, per block
    };
    struct alignas(64) Stretch {  // of the list, that one task sweeps: what it finds
        std::vector<Move> moves;
        std::int64_t n_distances = 0;
        std::size_t n_found = 0;  // points that their limits did not settle
    };
    struct Bench {  // room for the work of one thread
        Buffer<std::uint32_t> found, sorted, chosen;
        std::vector<std::uint32_t> counts;
        Buffer<double> points;  // float32 rows as doubles
        Buffer<float> narrowed;
        std::uint32_t at[kTogether];
        float upper[kTogether], lower[kTogether], others[kTogether];
        std::size_t n_suspects = 0;
        Suspect suspects[kGroupRows];
        float beyond[kGroupRows];  // bounds of the blocks that are left out
    };

    bool is_crowded() const;
    void open_epoch(const double *centroids);
    void measure_apart();
    bool may_be_loose(std::size_t b) const;
    bool is_loose(std::size_t b) const;
    void find_loose();
    void resize_list(std::size_t size);
    void wake();
    void wake(std::size_t epoch);
    void sweep(const double *centroids);
    void sweep(std::size_t begin, std::size_t end, Stretch &stretch, Bench &bench,
               const double *centroids);
    void prefetch(std::size_t at) const;
    void sort_by_key(Bench &bench, std::size_t n_found) const;
    void look_at(const std::uint32_t *found, std::size_t count, Stretch &stretch, Bench &bench,
                 const double *centroids);
    void measure_own(const std::uint32_t *found, std::size_t count, const double *centroid,
                     float *upper) const;
    void measure_all(const std::uint32_t *at, std::size_t count, Stretch &stretch, Bench &bench);
    void measure_suspects(std::int32_t own, Stretch &stretch, Bench &bench);
    void measure(const std::uint32_t *at, std::size_t count, const std::uint32_t *chosen,
                 std::size_t n_chosen, std::size_t n_centroids, Stretch &stretch, Bench &bench);
    bool is_due(std::size_t b) const { return state_[b] != kBounded; }
    static bool is_earlier(const Move &one, const Move &other);
    void drop_due();
    void measure_due();

    // About how many multiplications would take as long as to scan a point.
    static constexpr double kPerScanned = 16.0;
    // Points of the list that one task has to do with.
    static constexpr std::size_t kStretch = 4096;
    std::size_t n_stretches() const { return (members_.size() + kStretch - 1) / kStretch; }
    std::size_t end_of_stretch(std::size_t s) const {
        return s + 1 < n_stretches() ? (s + 1) * kStretch : members_.size();
    }

    void set_bounds(std::size_t at, std::int32_t label, float upper, float lower) {
        keys_[at] = static_cast<std::uint32_t>(
            Movement::key_of(static_cast<std::size_t>(label), movement_.now()));
        upper_[at] = upper;
        lower_[at] = lower;
    }

    static float bound_of(const Suspect &suspect, float apart, std::size_t block) {
        const float by_movement = suspect.lower - suspect.moved[block];
        const float by_place = apart - suspect.upper;
        return by_movement > by_place ? by_movement : by_place;
    }

    std::vector<Batch> &batches_;
    const std::size_t k_, d_;
    const InstructionSet &set_;
    Team &team_;
    const double n_points_;    // of all batches
    const bool measures_all_;  // a point in doubt, at once and against every centroid
    Movement movement_;
    const std::size_t n_blocks_;
    std::vector<Bench> benches_;  // one per worker
    std::vector<State> state_;    // per batch; all but kBounded are measured whole in this pass

    bool apart_is_known_ = false;    // how far the present centroids are apart
    std::vector<std::size_t> base_;  // per batch: the epoch of the points that sleep
    // Per epoch and cluster: the margins of all points that sleep are above this.
    std::vector<float> asleep_;
    std::vector<Buffer<std::uint32_t>> woken_;  // per batch: rows, of one scan
    std::vector<std::size_t> n_woken_;          // how many of them

    // Points awake: which they are, their clusters and epochs, and their bounds then.
    Buffer<Member> members_;
    Buffer<std::uint32_t> keys_;
    Buffer<float> upper_, lower_;
    std::vector<Stretch> stretches_;
    std::size_t n_sweeps_ = 0, n_found_ = 0;  // since points began anew, and in the last sweep
    std::vector<Move> moves_;

    std::int64_t n_distances_ = 0;
};

}  // namespace kmeander
