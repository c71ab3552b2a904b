// Weighted Lloyd over a window of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kmeans/axes.hpp"
#include "kmeans/batch.hpp"

namespace kmeander {

struct LloydLimits {
    std::size_t max_iter;  // updates of the centroids
    double shift;          // stop once the squared shifts of the centroids sum to no more
    std::size_t n_threads;
    // Where points are assigned by leading coordinates: along which axes.
    std::shared_ptr<const Axes> axes = nullptr;
    bool on_sphere = false;  // whether centroids have length 1, as points then have; see sphere.hpp
};

struct LloydReport {
    std::int64_t n_iter = 1;       // assignment passes, the last one included
    std::int64_t n_distances = 0;  // really computed
    bool converged = false;
    bool axes_serve = true;  // they saved more than they cost
    Errors first, last;      // at the given and at the returned centroids
    double left_out =
        0.0;  // leave-one-out error: the last, each batch under centroids made without it
    // Clusters that lost all their mass and took the costliest point instead, ascending.
    std::vector<std::int32_t> reseeded;
};

// Iterate until no label changes. At return `labels` are the nearest of the returned `centroids`
// (k, d), bounds hold at them, and masses, sums and scatter belong to `labels`.
// `masses` (k,) receives the decayed mass of each cluster.
LloydReport lloyd(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
                  const LloydLimits &limits, double *masses);

}  // namespace kmeander
