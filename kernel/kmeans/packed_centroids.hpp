// Centroids packed for vector registers, and the nearest of them for a group of points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simd/instruction_set.hpp"

namespace kmeander {

// Centroids in transposed blocks as wide as a vector register, so that one row against one
// block is a row of multiply-adds without a horizontal sum. Lanes left over are infinitely far.
class PackedCentroids {
public:
    PackedCentroids(std::size_t k, std::size_t d);
    void pack(const double *centroids);

    const double *blocks() const { return blocks_.data(); }
    // The same in single precision, less a shift that lies amidst those that were packed first.
    NarrowCentroids narrow() const { return {narrow_.data(), lengths_.data(), k_}; }
    const double *shift() const { return shift_.data(); }
    std::size_t lanes() const { return lanes_; }
    std::size_t n_blocks() const { return all_.size(); }
    const std::uint32_t *all() const { return all_.data(); }
    std::size_t block_of(std::size_t centroid) const { return centroid / lanes_; }
    // Centroids in a block: fewer in the last.
    std::size_t size_of(std::size_t block) const {
        return block + 1 < all_.size() ? lanes_ : k_ - block * lanes_;
    }

private:
    void choose_shift(const double *centroids);

    std::size_t k_, d_, lanes_;
    std::vector<std::uint32_t> all_;
    std::vector<double> blocks_, shift_;
    std::vector<float> narrow_, lengths_;
};

// Labels of `count` points (at most kGroupRows) among the blocks `chosen`, ascending, and bounds of
// their distances to the nearest centroid and to all others of those blocks. In single precision;
// points that it leaves ambiguous are measured again in double. Returns how many those are.
// `room` is for kGroupRows points.
std::size_t find_nearest(const double *const *points, std::size_t count, std::size_t d,
                         const PackedCentroids &packed, const std::uint32_t *chosen,
                         std::size_t n_chosen, float *room, std::int32_t *labels, float *upper,
                         float *lower);

}  // namespace kmeander
