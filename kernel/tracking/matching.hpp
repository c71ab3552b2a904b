// Matching of clusters: what it costs to merge each pair, and the means of merged pairs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kmeander {

struct WeightedCentroids {
    const double *centroids;  // (count, d)
    const double *masses;     // (count,)
    std::size_t count;
};

// For each pair of a previous and a current cluster the squared distance of their centroids, and
// Ward's cost of merging the two: mass * mass / (mass + mass) times that; 0 where neither has mass.
// Both are (previous.count, current.count).
void merge_costs(const WeightedCentroids &previous, const WeightedCentroids &current, std::size_t d,
                 double *squared, double *costs);

// The weighted mean of each previous cluster and its partner, `partners[c]` of the current ones,
// written to `means` (previous.count, d). Without a partner (-1) or mass it stays where it is.
void average(const WeightedCentroids &previous, const WeightedCentroids &current,
             const std::int64_t *partners, std::size_t d, double *means);

}  // namespace kmeander
