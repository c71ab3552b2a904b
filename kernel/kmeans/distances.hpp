// Full passes over points: nearest centroids, mean error, and the check of values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/instruction_set.hpp"

namespace kmeander {

// Labels and squared distances of all rows.
void nearest(const PointsView &rows, const double *centroids, std::size_t k, std::size_t n_threads,
             std::int32_t *labels, double *squared);

// Squared distances of all rows to the centroids of their labels, the same bits as of `nearest`.
void distances_to(const PointsView &rows, const double *centroids, const std::int32_t *labels,
                  std::size_t n_threads, double *squared);

// The error of points under centroids.
struct MeanError {
    double error;     // weighted mean of squared distances
    double relative;  // standard error of that mean, as a share of it
};

// Labels of all rows, bounds of their distances, and their error; `weights` may be null.
MeanError measure(const PointsView &rows, const double *weights, const double *centroids,
                  std::size_t k, std::size_t n_threads, std::int32_t *labels, float *upper,
                  float *lower);

// Distance of each of k centroids from where it was before.
void displacements(const double *before, const double *now, std::size_t k, std::size_t d,
                   double *moved);

// Position of the first value that is not finite or larger than `limit` in magnitude; -1 if none.
// All are copied to `copy` on the way, unless that is null.
std::int64_t first_beyond(const PointsView &rows, double limit, void *copy);

}  // namespace kmeander
