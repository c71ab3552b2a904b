// Bounds of distances as floats, rounded outward.
//
// Distances are right to about d * 1e-16, the cast to float and the operations on floats to 6e-8:
// all far below what is added here.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace kmeander {

// An infinite upper bound is true, and settles nothing.
inline float rounded_up(float value) {
    return value * (1.0F + 1e-6F) + std::numeric_limits<float>::min();
}

inline float rounded_down(float value) {
    return std::min(value, std::numeric_limits<float>::max()) * (1.0F - 1e-6F) -
           std::numeric_limits<float>::min();
}

// Bounds of a distance whose square is given.
inline float bound_above(double squared) {
    return rounded_up(static_cast<float>(std::sqrt(squared)));
}

inline float bound_below(double squared) {
    return rounded_down(static_cast<float>(std::sqrt(squared)));
}

}  // namespace kmeander
