// Weighted Lloyd over a window of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "batch.hpp"

namespace kmeander {

struct LloydLimits {
    std::size_t max_iter;  // updates of the centroids
    double shift;          // stop once the squared shifts of the centroids sum to no more
    std::size_t n_threads;
    std::function<bool()> interrupted;  // asked between two passes
};

// Thrown when it was; the caller's arrays are then half written.
struct Interrupted {};

struct LloydReport {
    std::int64_t n_iter;       // assignment passes, the last one included
    std::int64_t n_distances;  // really computed
    bool converged;
};

// Iterate until no label changes. At return `labels` are those of the nearest of the returned
// `centroids` (k, d), bounds are those at them, and masses, sums and scatter those of `labels`.
//
// `first_errors` and `last_errors` (one per batch) receive the weighted sums of squared distances,
// without decay, at the given and at the returned centroids. `reseeded` (k,) marks clusters that
// lost all their mass and took the point with the largest weighted squared distance instead.
LloydReport lloyd(std::vector<Batch> &batches, std::size_t k, double *centroids,
                  const LloydLimits &limits, double *first_errors, double *last_errors,
                  std::uint8_t *reseeded);

}  // namespace kmeander
