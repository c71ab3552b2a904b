// Flows: how much weight went from each cluster before to each cluster now.
#pragma once

#include <cstddef>

#include "kmeans/partition.hpp"
#include "kmeans/window.hpp"

namespace kmeander {

// Fill `flow` (k, k) with the decayed weight of all batches, `newest` (k, k) with the weight of the
// newest batch alone. Before, the points of the older batches were in the clusters of `older`
// (which may be null where there are none), those of the newest batch in the clusters of `arrived`;
// now all are in the clusters of `found`.
void count_flows(const DecayedWindow &window, const Partition *older, const Partition &arrived,
                 const Partition &found, std::size_t k, double *flow, double *newest);

}  // namespace kmeander
