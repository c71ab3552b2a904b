// Rows of points: reading them as doubles, prefetching them, and the chunks in which they are
// handled.
#pragma once

#include <cstddef>

#include "kmeans/buffer.hpp"
#include "simd/instruction_set.hpp"

namespace kmeander {

// Rows handled as one item. Fixed: what is summed per chunk is added in chunk order, so the
// last bits, and some batches later the labels, do not depend on the number of threads.
constexpr std::size_t kChunkRows = 256;

inline std::size_t n_chunks(std::size_t n_rows) { return (n_rows + kChunkRows - 1) / kChunkRows; }

inline std::size_t row_size(const PointsView &rows) {
    return rows.columns * (rows.is_float32 ? sizeof(float) : sizeof(double));
}

inline const void *row_at(const PointsView &rows, std::size_t i) {
    return static_cast<const char *>(rows.data) + i * row_size(rows);
}

// Ask for row i before it is needed; of a very long one for the beginning.
inline void prefetch(const PointsView &rows, std::size_t i) {
    const char *row = static_cast<const char *>(row_at(rows, i));
    const std::size_t size = row_size(rows) < 512 ? row_size(rows) : 512;
    for (std::size_t byte = 0; byte < size; byte += 64) __builtin_prefetch(row + byte);
    __builtin_prefetch(row + size - 1);
}

// Row i as doubles: in place where it is stored so, else in `room`.
inline const double *point_at(const PointsView &rows, std::size_t i, double *room) {
    if (!rows.is_float32) return static_cast<const double *>(rows.data) + i * rows.columns;
    instruction_set().widen(rows, i, room);
    return room;
}

// Room for a group of points as doubles and as floats, one per worker.
class PointScratch {
public:
    PointScratch(std::size_t n_workers, std::size_t d)
        : stride_(kGroupRows * d), wide_(n_workers * stride_), narrow_(n_workers * stride_) {}
    double *of(std::size_t worker) { return wide_.data() + worker * stride_; }
    float *narrow_of(std::size_t worker) { return narrow_.data() + worker * stride_; }

private:
    std::size_t stride_;
    Buffer<double> wide_;
    Buffer<float> narrow_;
};

}  // namespace kmeander
