// Nearest centroids of rows, in fixed chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmeans/buffer.hpp"
#include "parallel/team.hpp"
#include "simd/instruction_set.hpp"

namespace kmeander {

// Rows handled as one item. Fixed: what is summed per chunk is added in chunk order, so the
// last bits, and some batches later the labels, do not depend on the number of threads.
constexpr std::size_t kChunkRows = 256;

inline std::size_t n_chunks(std::size_t n_rows) { return (n_rows + kChunkRows - 1) / kChunkRows; }

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
// points for which that does not tell are measured again in double. Returns how many those are.
// `room` is for kGroupRows points.
std::size_t find_nearest(const double *const *points, std::size_t count, std::size_t d,
                         const PackedCentroids &packed, const std::uint32_t *chosen,
                         std::size_t n_chosen, float *room, std::int32_t *labels, float *upper,
                         float *lower);

// Room for a group of points as doubles and as floats, one per worker.
class Scratch {
public:
    Scratch(std::size_t n_workers, std::size_t d)
        : stride_(kGroupRows * d), wide_(n_workers * stride_), narrow_(n_workers * stride_) {}
    double *of(std::size_t worker) { return wide_.data() + worker * stride_; }
    float *narrow_of(std::size_t worker) { return narrow_.data() + worker * stride_; }

private:
    std::size_t stride_;
    Buffer<double> wide_;
    Buffer<float> narrow_;
};

inline std::size_t row_size(const Rows &rows) {
    return rows.columns * (rows.is_float32 ? sizeof(float) : sizeof(double));
}

inline const void *row_at(const Rows &rows, std::size_t i) {
    return static_cast<const char *>(rows.data) + i * row_size(rows);
}

// Ask for row i before it is needed; of a very long one for the beginning.
inline void prefetch(const Rows &rows, std::size_t i) {
    const char *row = static_cast<const char *>(row_at(rows, i));
    const std::size_t size = row_size(rows) < 512 ? row_size(rows) : 512;
    for (std::size_t byte = 0; byte < size; byte += 64) __builtin_prefetch(row + byte);
    __builtin_prefetch(row + size - 1);
}

// Row i as doubles: in place where it is stored so, else in `room`.
inline const double *point_at(const Rows &rows, std::size_t i, double *room) {
    if (!rows.is_float32) return static_cast<const double *>(rows.data) + i * rows.columns;
    instruction_set().widen(rows, i, room);
    return room;
}

// Labels and squared distances of all rows.
void nearest(const Rows &rows, const double *centroids, std::size_t k, std::size_t n_threads,
             std::int32_t *labels, double *squared);

// The error of rows under centroids that have not learnt them.
struct Measured {
    double error;     // weighted mean of squared distances
    double relative;  // standard error of that mean, as a share of it
};

// Labels of all rows, bounds of their distances, and their error; `weights` may be null.
Measured measure(const Rows &rows, const double *weights, const double *centroids, std::size_t k,
                 std::size_t n_threads, std::int32_t *labels, float *upper, float *lower);

// Position of the first value that is not finite or larger than `limit` in magnitude; -1 if none.
// All are copied to `copy` on the way, unless that is null.
std::int64_t first_beyond(const Rows &rows, double limit, void *copy);

}  // namespace kmeander
