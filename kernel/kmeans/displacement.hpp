// Displacement of the centroids since points were measured, and the distances between centroids.
//
// An epoch is a set of centroids at which points were measured. The tables have, under the key of a
// cluster and an epoch, what the present centroids mean for points of that cluster that were
// measured in that epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kmeans/buffer.hpp"
#include "kmeans/packed_centroids.hpp"

namespace kmeander {

class Displacement {
public:
    // What is found beside the displacement of each centroid.
    enum class Extent : std::uint8_t {
        kBlocks,     // of each block of centroids, and the distances between centroids
        kDistances,  // the distances between centroids
        kNothing     // and centroids are not packed, either
    };
    Displacement(std::size_t k, std::size_t d, Extent extent, std::size_t most_epochs);

    // The most epochs that are kept; each costs k * d operations a pass.
    static constexpr std::size_t kMaxEpochs = 32;
    static std::size_t key_of(std::size_t label, std::size_t epoch) {
        return label * kMaxEpochs + epoch;
    }
    static std::int32_t label_of(std::uint32_t key) {
        return static_cast<std::int32_t>(key / kMaxEpochs);
    }

    // Add an epoch before the first pass: the centroids at which given bounds were taken.
    void add_epoch(const double *centroids);

    bool is_full() const { return snapshots_.size() == most_epochs_; }
    std::size_t n_epochs() const { return snapshots_.size(); }
    std::size_t now() const { return now_; }  // the epoch of the present centroids

    // Drop every epoch but the present one, which becomes the first.
    void keep_present_epoch();

    // Begin the epoch of `centroids` and find their displacement since every other one.
    void open(const double *centroids);

    // Measure the distances between the present centroids, and find `upper_limit` from them;
    // returns how many distances that took. A separate call, since a pass without active points
    // needs none.
    std::int64_t measure_between();

    const PackedCentroids &packed() const { return *packed_; }
    std::size_t n_blocks() const { return packed_ ? packed_->n_blocks() : 0; }

    // Per key: the displacement of the centroid since, and the largest one of any other centroid.
    float own(std::size_t key) const { return own_[key]; }
    float others(std::size_t key) const { return others_[key]; }
    // Per key: a point keeps its cluster if its margin (lower - upper) is above the first or its
    // upper bound is below the second.
    const float *margin_limit() const { return margin_limit_.data(); }
    const float *upper_limit() const { return upper_limit_.data(); }
    // Per block of centroids, the own centroid aside: the largest displacement in it (found where
    // `has_blocks`), and the least distance to one of it.
    const float *block_displacement(std::size_t key) const {
        return block_displacement_.data() + key * n_blocks();
    }
    const float *block_gap(std::size_t cluster) const {
        return block_gap_.data() + cluster * n_blocks();
    }
    // Per cluster: the least distance to another centroid; 0 where it is not found.
    const float *nearest_other() const { return nearest_other_.data(); }

private:
    void find_displaced(const double *centroids);
    float distance_between(const double *then, const double *now) const;
    void find_block_displacements(std::size_t epoch);

    const std::size_t k_, d_;
    const Extent extent_;
    const std::size_t most_epochs_;
    const InstructionSet &set_;
    std::optional<PackedCentroids> packed_;
    static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
    std::size_t now_ = kNever;
    std::vector<std::vector<double>> snapshots_;  // per epoch: the centroids then
    Buffer<float> own_, others_, margin_limit_, upper_limit_;
    Buffer<float> block_displacement_, block_gap_, nearest_other_;
    std::vector<float> between_;     // distances between the centroids, each to each
    bool tables_are_stale_ = false;  // they belong to another first epoch
    // Per cluster: its centroid is not where it was a pass ago, or when `between_` was measured.
    std::vector<std::uint8_t> displaced_, unmeasured_;
};

}  // namespace kmeander
