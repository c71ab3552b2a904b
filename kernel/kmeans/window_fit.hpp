// Lloyd and local search on a window, from what is known of its points to a new partition.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "kmeans/lloyd.hpp"
#include "kmeans/local_search.hpp"
#include "kmeans/partition.hpp"
#include "kmeans/split_merge.hpp"
#include "kmeans/window.hpp"

namespace kmeander {

// What is known of the points of a window; either may be null.
struct KnownPartitions {
    const Partition *older;   // of all batches, or of all but the newest
    const Partition *newest;  // of the newest batch alone
};

// Centroids (k, d), row by row.
struct CentroidsShape {
    std::size_t k, d;
};

struct LloydFit {
    Partition partition;  // with bounds and sums, at the centroids returned
    LloydReport report;
};

// Lloyd from `centroids`, which are replaced by those found; see `lloyd`.
LloydFit fit_window(const DecayedWindow &window, const KnownPartitions &known, double *centroids,
                    CentroidsShape shape, const LloydLimits &limits, double *masses);

struct SwapFit {
    Partition partition;  // with bounds at the centroids returned
    SwapReport report;
};

// Local search from `centroids`, if the known partitions cover all points at just these centroids;
// see `swap_centroids`. The partition keeps the sums of the older one if there was no swap.
std::optional<SwapFit> search_window(const DecayedWindow &window, const KnownPartitions &known,
                                     double *centroids, CentroidsShape shape,
                                     std::span<const double> uniforms, std::size_t n_threads,
                                     bool on_sphere = false);

// Split-merge from `centroids`, at which `found` is the partition of all points; see
// `split_and_merge`.
SplitMergeReport exchange_clusters(const DecayedWindow &window, const Partition &found,
                                   double *centroids, CentroidsShape shape,
                                   std::span<const double> uniforms, std::size_t n_threads);

}  // namespace kmeander
