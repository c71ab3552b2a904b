#include "assignment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kmeander {

PackedCentroids::PackedCentroids(std::size_t k, std::size_t d)
    : k_(k),
      d_(d),
      lanes_(instruction_set().lanes),
      n_blocks_((k + lanes_ - 1) / lanes_),
      blocks_(n_blocks_ * lanes_ * d, std::numeric_limits<double>::infinity()) {}

void PackedCentroids::pack(const double *centroids) {
    for (std::size_t c = 0; c < k_; ++c) {
        double *lane = blocks_.data() + (c / lanes_) * d_ * lanes_ + c % lanes_;
        for (std::size_t j = 0; j < d_; ++j) lane[j * lanes_] = centroids[c * d_ + j];
    }
}

void copy_row(const Rows &rows, std::size_t i, double *point) {
    const std::size_t d = rows.columns;
    if (rows.is_float32) {
        std::copy_n(static_cast<const float *>(rows.data) + i * d, d, point);
    } else {
        std::copy_n(static_cast<const double *>(rows.data) + i * d, d, point);
    }
}

void nearest(const Rows &rows, const double *centroids, std::size_t k, std::size_t n_threads,
             std::int32_t *labels, double *squared) {
    const std::size_t d = rows.columns;
    PackedCentroids packed(k, d);
    packed.pack(centroids);
    Team team(worth_starting(n_threads, 1.0 * rows.count * k * d));
    Scratch scratch(team.size(), d);
    const InstructionSet &set = instruction_set();
    team.run(n_chunks(rows.count), [&](std::size_t chunk, std::size_t worker) {
        const std::size_t begin = chunk * kChunkRows;
        const std::size_t end = std::min(begin + kChunkRows, rows.count);
        set.nearest(rows, begin, end, packed.blocks(), packed.n_blocks(), scratch.of(worker),
                    labels + begin, squared + begin);
    });
}

namespace {

template <class T>
std::int64_t first_beyond_of(const T *values, std::size_t count, double limit) {
    // Blocks first, without a branch per value; NaN fails every comparison.
    constexpr std::size_t kBlock = 512;
    for (std::size_t start = 0; start < count; start += kBlock) {
        const std::size_t end = std::min(start + kBlock, count);
        unsigned beyond = 0;
        for (std::size_t i = start; i < end; ++i) beyond |= !(std::fabs(values[i]) <= limit);
        if (beyond == 0) continue;
        for (std::size_t i = start; i < end; ++i)
            if (!(std::fabs(values[i]) <= limit)) return static_cast<std::int64_t>(i);
    }
    return -1;
}

}  // namespace

std::int64_t first_beyond(const Rows &rows, double limit) {
    const std::size_t count = rows.count * rows.columns;
    if (rows.is_float32) return first_beyond_of(static_cast<const float *>(rows.data), count, limit);
    return first_beyond_of(static_cast<const double *>(rows.data), count, limit);
}

}  // namespace kmeander
