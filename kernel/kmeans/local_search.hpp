// Local search over centroids: draw a point, put a centroid there, take the cheapest one away.
//
// One step of LS++ (Lattanzi and Sohler 2019): a candidate is drawn with probability proportional
// to weight times squared distance; it replaces the centroid whose removal costs least, if the
// error falls. What taking centroid c away costs is the sum, over its points, of the distance to
// the second nearest centroid less that to c. Second distances are known as lower bounds, left by
// the last measurement, and found exactly only for a cluster that looks cheap enough to go: a
// candidate is turned down by bounds alone, and the choice is that of the exact sums.
//
// A candidate is nearer to a point than its second nearest centroid only if it lies within the
// sum of both distances of the point's own centroid; whole clusters beyond are passed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmeans/batch.hpp"

namespace kmeander {

struct SwapReport {
    std::int64_t n_swaps = 0;
    std::int64_t n_distances = 0;
    std::vector<std::int32_t> swapped;  // clusters whose centroid was put elsewhere, ascending
};

// Try one candidate for each of `uniforms` (numbers in [0, 1)). In: every point's label is that of
// its nearest of `centroids` (k, d), with bounds at them. Out: the same at the centroids returned.
// `on_sphere`: see sphere.hpp.
SwapReport swap_centroids(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
                          const double *uniforms, std::size_t n_candidates, std::size_t n_threads,
                          bool on_sphere = false);

}  // namespace kmeander
