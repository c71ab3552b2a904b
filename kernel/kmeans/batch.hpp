// A remembered batch as the kernel sees it: arrays that belong to the caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/instruction_set.hpp"

namespace kmeander {

struct Batch {
    Rows rows;
    const double *weights;  // one per row, or null: every row weighs 1
    double decay;           // rho**age, the same for all its rows

    std::int32_t *labels;  // in: the partition before, -1 where unknown; out: the new one

    // Bounds of the distances to the own centroid and to all others, at the centroids `snapshot`;
    // in: meaningless where that is null; out: at the centroids returned.
    float *upper;
    float *lower;
    const double *snapshot;

    // Per cluster, without decay: weight, weighted sum of rows, and weighted sum of squared
    // distances to the mean of the batch's own rows. In: those of `labels` where `summed`.
    double *masses;   // (k,)
    double *sums;     // (k, d)
    double *scatter;  // (k,)
    bool summed;
};

struct Move {  // of a point from cluster to cluster
    std::uint32_t batch, row;
    std::int32_t from, to;
};

// Weighted sums of squared distances: decayed over the window, and of the newest batch alone.
struct Errors {
    double window, newest;
};

inline double weight_of(const Batch &batch, std::size_t i) {
    return batch.weights == nullptr ? 1.0 : batch.weights[i];
}

}  // namespace kmeander
