// Spread of the clusters: how far their points lie from one another.
#pragma once

#include <cstdint>

#include "kmeans/partition.hpp"

namespace kmeander {

// Variance of the points of each cluster about the mean of their batch, over all batches; 0 where
// there are too few. Goes to `variance` (k,). `points_per_mass` and `is_whole` have an entry per
// batch or are null: a unit of mass is a point, and no batch is one of means.
void find_variance(const ClusterSums &sums, const double *points_per_mass,
                   const std::uint8_t *is_whole, double *variance);

}  // namespace kmeander
