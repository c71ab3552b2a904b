// The unit sphere, on which rows and centroids lie where the metric is the cosine.
//
// A row of length 1, or a mean of such rows, is at the squared distance 1 - 2 x.c + |x|^2 from a
// centroid c of length 1. So the nearest centroid is that of the least angle, also of a mean.
#pragma once

#include <cmath>
#include <cstddef>

namespace kmeander {

// A mean of unit vectors that is no longer than this has no direction but that of its rounding.
constexpr double kShortestMean = 1e-12;

inline double length_of(const double *place, std::size_t d) {
    double squared = 0.0;
    for (std::size_t j = 0; j < d; ++j) squared += place[j] * place[j];
    return std::sqrt(squared);
}

// Draw a mean out to length 1; false, and it stays as it is, if it has no direction.
inline bool put_on_sphere(double *mean, std::size_t d) {
    const double length = length_of(mean, d);
    if (!(length > kShortestMean)) return false;
    for (std::size_t j = 0; j < d; ++j) mean[j] /= length;
    return true;
}

}  // namespace kmeander
