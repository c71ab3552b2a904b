// Batches as the algorithms see them: views of arrays that belong to the caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/instruction_set.hpp"

namespace kmeander {

// A batch whose labels are only read.
struct LabelledBatch {
    PointsView rows;
    const double *weights = nullptr;  // one per row, or null: every row weighs 1
    double decay = 1.0;               // rho**age, the same for all its rows
    const std::int32_t *labels = nullptr;
};

// A batch that is assigned to clusters.
struct WorkingBatch {
    PointsView rows;
    const double *weights = nullptr;  // one per row, or null: every row weighs 1
    double decay = 1.0;               // rho**age, the same for all its rows

    std::int32_t *labels = nullptr;  // in: the partition before, -1 where unknown; out: the new one

    // Bounds of the distances to the own centroid and to all others, at the centroids `snapshot`;
    // in: meaningless where that is null; out: at the centroids returned.
    float *upper = nullptr;
    float *lower = nullptr;
    const double *snapshot = nullptr;

    // Entries of LeadingPoints, where the assignment is by leading coordinates.
    const float *leading = nullptr;

    // Sufficient statistics per cluster, without decay: mass, weighted sum of rows, and weighted
    // sum of squared distances to the mean of the batch's own rows. In: those of `labels` where
    // `summed`. Needed by Lloyd only.
    double *masses = nullptr;   // (k,)
    double *sums = nullptr;     // (k, d)
    double *scatter = nullptr;  // (k,)
    bool summed = false;
};

struct Reassignment {  // of a point from cluster to cluster
    std::uint32_t batch, row;
    std::int32_t from, to;
};

// Weighted sums of squared distances: decayed over the window, and of the newest batch alone.
struct Errors {
    double window, newest;
};

template <class AnyBatch>
double weight_of(const AnyBatch &batch, std::size_t i) {
    return batch.weights == nullptr ? 1.0 : batch.weights[i];
}

}  // namespace kmeander
