// k-means++ seeding (Arthur and Vassilvitskii, 2007), weighted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simd/instruction_set.hpp"

namespace kmeander {

struct SeedingReport {
    std::size_t count;         // fewer than asked for where the rows hold fewer distinct points
    std::int64_t n_distances;  // one per row and seed measured against
};

// Draw up to k rows, the first by weight, each next one by weight times squared distance to
// the nearest seed so far. `uniforms` (k numbers in [0, 1)) decides; `weights` may be null.
// Every row is measured against every seed on the way: `labels`, `upper` and `lower` receive what
// Lloyd would have to find out in its first pass, the label as far as the bounds are apart; `seeds`
// receives the rows drawn, as doubles.
SeedingReport seed(const PointsView &rows, const double *weights, const double *uniforms,
                   std::size_t k, std::size_t n_threads, std::int64_t *chosen, std::int32_t *labels,
                   float *upper, float *lower, std::vector<double> &seeds);

}  // namespace kmeander
