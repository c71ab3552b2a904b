// Which cluster each point of the window is in, kept exact without measuring every distance.
//
// Each point carries an upper bound u of the distance to its own centroid and a lower bound l of
// the distance to every other one, taken when the centroids were elsewhere (an epoch). Since then
// centroid c has moved by a known distance p(c), so the point keeps its cluster as long as
//     u + p(own) < l - max over the others of p,
// by the triangle inequality (Hamerly 2010; net displacement after Newling and Fleuret 2016).
// A point that fails this is looked at block by block: a block of centroids cannot hold a nearer
// one if none of it has moved that far, or if all of it is more than 2 (u + p(own)) away from the
// own centroid. Only then is the point measured: against the own centroid, which may settle it,
// and against the blocks that are left. Weights never enter.
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
    // A point that may have a nearer centroid, and what became of it.
    struct Suspect {
        std::uint32_t batch, row;
        std::int32_t before, label;
        std::uint32_t epoch;  // of `lower`
        float upper, lower;   // the distance to its centroid before, and a bound of the others
    };

    Partition(std::vector<Batch> &batches, std::size_t k, Team &team);

    // Give every point its nearest of `centroids`; true if a label changed.
    bool assign(const double *centroids);

    // The points measured against several centroids in the last call, except in new batches.
    const std::vector<Suspect> &suspects() const { return suspects_; }

    // Put a point into another cluster; it is measured at the next call.
    void put(std::size_t batch, std::size_t row, std::int32_t label);

    // Make all bounds those at the centroids of the last call.
    void settle();

    std::int64_t n_distances() const { return n_distances_; }

private:
    struct Chunk {
        std::uint32_t batch, begin, end;
        std::vector<Suspect> suspects;
        std::int64_t n_distances;
    };
    struct Group {  // suspects that are measured together
        std::size_t begin, end;
        std::int64_t n_distances;
    };

    void open_epoch(const double *centroids);
    void measure_apart(const double *centroids);
    const float *moved_of(std::size_t epoch, std::int32_t cluster) const {
        return moved_.data() + (epoch * k_ + static_cast<std::size_t>(cluster)) * n_blocks_;
    }
    const float *apart_of(std::int32_t cluster) const {
        return apart_.data() + static_cast<std::size_t>(cluster) * n_blocks_;
    }
    void measure_all(Chunk &chunk, std::size_t worker);
    void find_suspects(Chunk &chunk, const double *centroids);
    void group_suspects();
    void measure_group(Group &group, std::size_t worker);
    bool leaves_blocks_out() const { return n_blocks_ > 3; }

    std::vector<Batch> &batches_;
    const std::size_t k_, d_;
    const InstructionSet &set_;
    Team &team_;
    PackedCentroids packed_;
    const std::size_t n_blocks_;
    Scratch scratch_;
    std::vector<Chunk> chunks_;
    std::vector<bool> fresh_;                        // per batch: no bounds yet
    std::vector<std::vector<std::uint8_t>> epochs_;  // per batch and row
    std::vector<std::vector<double>> snapshots_;     // per epoch: the centroids then
    // Per epoch and cluster: how far its centroid has moved since, and the sum of that and the
    // farthest move of any other.
    std::vector<float> own_moved_, thresholds_;
    // Per epoch, cluster and block: the farthest move of another centroid in the block.
    std::vector<float> moved_;
    // Per cluster and block: the least distance to another centroid in the block.
    std::vector<float> apart_;
    std::vector<Suspect> suspects_;
    std::vector<Group> groups_;
    std::size_t now_ = 0;  // the epoch of the present centroids
    std::int64_t n_distances_ = 0;
};

}  // namespace kmeander
