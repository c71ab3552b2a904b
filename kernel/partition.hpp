// Which cluster each point of the window is in, kept exact without measuring every distance.
//
// Each point carries an upper bound u of the distance to its own centroid and a lower bound l of
// the distance to every other one, taken when the centroids were elsewhere (an epoch). Since then
// centroid c has moved by a known distance p(c), so the point keeps its cluster as long as
//     u + p(own) < l - max over the others of p,
// by the triangle inequality (Hamerly 2010; net displacement after Newling and Fleuret 2016), or
// as long as u + p(own) is below half the distance from its centroid to the next.
//
// Most points are never in doubt. They sleep where they are stored, in the order of the rows, as long
// as no cluster's p(own) + p(others) exceeds a threshold that their margins l - u are known to exceed;
// when one does, it is raised well beyond, and a scan wakes the points that are no longer above.
//
// Points awake lie in groups of one cluster and epoch, so that two numbers settle most of a group in
// a sweep over its bounds, or all of it at once. A point that fails is looked at block by block: a
// block of centroids cannot hold a nearer one if none of it has moved that far, or if all of it is
// more than 2 (u + p(own)) away from the own centroid. Only then is the point measured: against the
// own centroid, which may settle it, and against the blocks that are left. With its new bounds it
// goes to the group of its cluster and the present epoch. Weights never enter.
//
// Bounds are rounded outward by far more than the arithmetic can be wrong, and a point is passed
// over only where it is strictly separated. So the labels are those of a full pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "assignment.hpp"
#include "batch.hpp"
#include "team.hpp"

namespace kmeander {

class Partition {
public:
    struct Move {  // of a point from cluster to cluster
        std::uint32_t batch, row;
        std::int32_t from, to;
    };

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

    struct Member {  // of a group
        std::uint32_t batch, row;
    };
    struct Group {  // members_[begin, end), of one cluster and epoch
        std::uint32_t epoch;
        std::size_t begin, end;
        Settled least;  // limits that settle all its members
    };
    // These two are made in place: a copy would wait until each part of it has been written.
    struct Bounded {  // a point with bounds at the present centroids
        Bounded(const Member &m, std::int32_t c, float u, float l)
            : member(m), label(c), upper(u), lower(l) {}
        Member member;
        std::int32_t label;
        float upper, lower;
    };
    struct Suspect {  // a point that may have a nearer centroid
        Suspect(const Member &m, const float *p, float u, float l, float w)
            : member(m), moved(p), upper(u), lower(l), wanted(w) {}
        Member member;
        const float *moved;  // since its epoch, per block
        float upper, lower;  // the distance to its centroid, and a bound of the others then
        float wanted;        // blocks that are not known to be beyond this are measured
    };
    struct Looks {  // members that are looked at together
        Member members[kTogether];
        float upper[kTogether], lower[kTogether], others[kTogether];
    };
    struct Sweep {  // over some groups of one cluster: what one task does, and finds
        std::int32_t label;
        std::size_t first, last;  // of unsettled_
        Looks looks;
        std::vector<Suspect> suspects;
        std::vector<Bounded> measured;
        std::vector<Move> moves;
        std::int64_t n_distances = 0;
    };

    void open_epoch(const double *centroids);
    void find_strays(const double *centroids);
    void measure_apart();
    void wake();
    void wake(std::size_t epoch);
    std::size_t plan_sweeps();
    void sweep_groups(const double *centroids);
    void sweep(Sweep &sweep, std::size_t worker, const double *centroids);
    void look_at(Sweep &sweep, std::size_t worker, const Group &group, const std::uint32_t *found,
                 std::size_t count, const double *centroids);
    void measure_own(const Member *members, std::size_t count, const double *centroid,
                     float *upper) const;
    void measure(Sweep &sweep, std::size_t worker);
    void measure_new_batches();
    void group_measured(std::size_t n_sweeps);
    void find_least(Group &group) const;
    void find_least_since(std::size_t first);
    void open_groups(const std::vector<std::size_t> &counts, std::size_t epoch);

    static float bound_of(const Suspect &suspect, float apart, std::size_t block) {
        const float by_movement = suspect.lower - suspect.moved[block];
        const float by_place = apart - suspect.upper;
        return by_movement > by_place ? by_movement : by_place;
    }
    std::size_t limit_of(std::size_t epoch, std::int32_t label) const {
        return epoch * k_ + static_cast<std::size_t>(label);
    }
    const float *apart_of(std::int32_t label) const {
        return apart_.data() + static_cast<std::size_t>(label) * n_blocks_;
    }

    std::vector<Batch> &batches_;
    const std::size_t k_, d_;
    const InstructionSet &set_;
    Team &team_;
    PackedCentroids packed_;
    const std::size_t n_blocks_;
    Scratch scratch_;
    std::vector<std::uint32_t> chosen_;  // per worker: blocks to be measured
    std::vector<bool> fresh_;            // per batch: no bounds yet

    std::vector<std::size_t> base_;  // per batch: the epoch of the points that sleep
    // Per epoch and cluster: the margins of all points that sleep are above this.
    std::vector<float> asleep_;
    std::vector<std::vector<std::uint32_t>> woken_;  // per batch: rows, of one scan
    std::vector<std::size_t> n_woken_;               // how many of them

    std::vector<std::vector<Group>> groups_;  // per cluster, of points awake
    std::vector<Member> members_;
    std::vector<float> upper_, lower_;  // bounds of the members
    std::vector<std::size_t> next_;     // per cluster: where its next member goes
    std::vector<Group *> unsettled_;  // groups that have to be swept
    std::vector<Sweep> sweeps_;
    std::vector<Move> moves_;

    std::vector<std::vector<double>> snapshots_;  // per epoch: the centroids then
    // Per epoch and cluster: how far its centroid has moved since, and the farthest of the others.
    std::vector<float> own_moved_, others_moved_;
    std::vector<Settled> settled_;
    // Per epoch, cluster and block: the farthest move of another centroid in the block.
    std::vector<float> moved_;
    // Per cluster: its centroid is not where it was a pass ago, or at the last measuring.
    std::vector<std::uint8_t> stray_, unmeasured_;
    std::vector<float> between_;  // distances of the centroids, each to each
    // Per cluster and block: the least distance to another centroid in the block; and of all blocks.
    std::vector<float> apart_, nearest_other_;
    static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
    std::size_t now_ = kNever;  // the epoch of the present centroids
    std::int64_t n_distances_ = 0;
};

}  // namespace kmeander
