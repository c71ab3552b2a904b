// How far the centroids have moved since points were measured, and how far apart they are.
//
// An epoch is a set of centroids at which points were measured. Tables have, under the key of a
// cluster and an epoch, what the present centroids mean for points of that cluster measured then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmeans/buffer.hpp"
#include "kmeans/packed_centroids.hpp"

namespace kmeander {

class Movement {
public:
    Movement(std::size_t k, std::size_t d, bool has_blocks);

    static constexpr std::size_t kMaxEpochs = 32;  // kept apart; each costs k * d operations a pass
    static std::size_t key_of(std::size_t label, std::size_t epoch) {
        return label * kMaxEpochs + epoch;
    }
    static std::int32_t label_of(std::uint32_t key) {
        return static_cast<std::int32_t>(key / kMaxEpochs);
    }

    // An epoch before the first pass: the centroids at which bounds that are handed in were taken.
    void remember(const double *centroids);

    std::size_t n_epochs() const { return snapshots_.size(); }
    std::size_t now() const { return now_; }  // the epoch of the present centroids

    // Forget every epoch but the present one, which becomes the first.
    void forget();

    // Begin the epoch of `centroids` and find how far they have moved since every other one.
    void open(const double *centroids);

    // Find how far apart the present centroids are, and from that `near`; returns the distances
    // that it took. Left out as long as nobody asks, since a pass in which nothing wakes does not.
    std::int64_t measure_apart();

    const PackedCentroids &packed() const { return packed_; }
    std::size_t n_blocks() const { return packed_.n_blocks(); }

    // Per key: how far the centroid has moved since, and the farthest of the others.
    float own(std::size_t key) const { return own_[key]; }
    float others(std::size_t key) const { return others_[key]; }
    // Per key: a point is settled if its margin is above the one or its upper bound below the
    // other.
    const float *margin() const { return margin_.data(); }
    const float *near() const { return near_.data(); }
    // Per block: the farthest move of another centroid in it, found where `has_blocks`, and the
    // least distance to one.
    const float *moved(std::size_t key) const { return moved_.data() + key * n_blocks(); }
    const float *apart(std::size_t cluster) const { return apart_.data() + cluster * n_blocks(); }
    // Per cluster: the least distance to another centroid.
    const float *nearest_other() const { return nearest_other_.data(); }

private:
    void find_strays(const double *centroids);
    float moved_from(const double *then, const double *now) const;
    void find_moved_blocks(std::size_t epoch);

    const std::size_t k_, d_;
    const bool has_blocks_;
    const InstructionSet &set_;
    PackedCentroids packed_;
    static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
    std::size_t now_ = kNever;
    std::vector<std::vector<double>> snapshots_;  // per epoch: the centroids then
    Buffer<float> own_, others_, margin_, near_, moved_, apart_, nearest_other_;
    std::vector<float> between_;     // distances of the centroids, each to each
    bool tables_are_stale_ = false;  // they are of another first epoch
    // Per cluster: its centroid is not where it was a pass ago, or at the last measuring.
    std::vector<std::uint8_t> stray_, unmeasured_;
};

}  // namespace kmeander
