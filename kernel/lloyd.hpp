// Weighted Lloyd over a window of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "instruction_set.hpp"

namespace kmeander {

// One remembered batch. Bounds that carry over batches would be further arrays beside `labels`.
struct Batch {
    Rows rows;
    const double *weights;  // one per row, or null: every row weighs 1
    double decay;           // rho**age, the same for all its rows
    std::int32_t *labels;   // in: the partition before, -1 where unknown; out: the new one
    double *masses;         // (k,)    sum of weights per cluster, without decay
    double *sums;           // (k, d)  weighted sum of rows per cluster, without decay
    bool summed;            // masses and sums are already those of `labels`
};

struct LloydLimits {
    std::size_t max_iter;  // updates of the centroids
    double shift;          // stop once the squared shifts of the centroids sum to no more
    std::size_t n_threads;
};

struct LloydReport {
    std::int64_t n_iter = 0;       // assignment passes, the last one included
    std::int64_t n_distances = 0;  // really computed
    bool converged = false;
};

// Iterate until no label changes. At return `labels` are those of the nearest of the returned
// `centroids` (k, d), and masses and sums are those of `labels`.
//
// `first_errors` and `last_errors` (one per batch) receive the weighted sums of squared distances,
// without decay, at the given and at the returned centroids. `reseeded` (k,) marks clusters that
// lost all their mass and took the point with the largest weighted squared distance instead.
LloydReport lloyd(std::vector<Batch> &batches, std::size_t k, double *centroids,
                  const LloydLimits &limits, double *first_errors, double *last_errors,
                  std::uint8_t *reseeded);

}  // namespace kmeander
