// Nearest centroids of rows, in fixed chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "instruction_set.hpp"
#include "team.hpp"

namespace kmeander {

// Rows handled as one item. Fixed: sums are kept per chunk and added in chunk order, so the
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
    std::size_t n_blocks() const { return n_blocks_; }

private:
    std::size_t k_, d_, lanes_, n_blocks_;
    std::vector<double> blocks_;
};

// Room for the rows each worker widens.
class Scratch {
public:
    Scratch(std::size_t n_workers, std::size_t d)
        : stride_(kGroupRows * d), room_(n_workers * stride_) {}
    double *of(std::size_t worker) { return room_.data() + worker * stride_; }

private:
    std::size_t stride_;
    std::vector<double> room_;
};

// Row i, as doubles.
void copy_row(const Rows &rows, std::size_t i, double *point);

// Labels and squared distances of all rows.
void nearest(const Rows &rows, const double *centroids, std::size_t k, std::size_t n_threads,
             std::int32_t *labels, double *squared);

// Position of the first value that is not finite or larger than `limit` in magnitude; -1 if none.
std::int64_t first_beyond(const Rows &rows, double limit);

}  // namespace kmeander
