// Split-merge: clusters that gain most as two halves take the centroids that are missed least.
//
// After Capó, Pérez and Lozano (2022). Lloyd and swaps of single points stay where one centroid
// holds two groups and two share a third, if no point of those groups is near their mean. Here a
// short 2-means says what a cluster gains in two halves, exactly; what it costs to take a centroid
// away is, as for swaps, the sum over its points of the distance to the second nearest less that to
// their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmeans/batch.hpp"

namespace kmeander {

struct SplitMergeReport {
    std::vector<std::int32_t> split, removed;  // pairs: the first became two, the second free
    std::int64_t n_distances = 0;
};

// Exchange centroids while a split gains more than a removal costs, beyond chance. In: as for
// swap_centroids, and `uniforms` (2 k), numbers in [0, 1). Out: `centroids`; labels and bounds
// are those of before.
SplitMergeReport split_and_merge(std::vector<WorkingBatch> &batches, std::size_t k,
                                 double *centroids, const double *uniforms, std::size_t n_threads);

}  // namespace kmeander
