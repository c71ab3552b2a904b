// Bounds of distances as floats, rounded outward.
//
// Distances are right to about d * 1e-16, the cast to float and the operations on floats to 6e-8:
// all far below what is added here.
//
// Static, and without a standard header: each instruction set needs a copy of its own (see
// loops.cpp).
#pragma once

namespace kmeander {

// An infinite upper bound is true, and decides nothing.
[[maybe_unused]] static inline float rounded_up(float value) {
    return value * (1.0F + 1e-6F) + __FLT_MIN__;
}

[[maybe_unused]] static inline float rounded_down(float value) {
    return (__FLT_MAX__ < value ? __FLT_MAX__ : value) * (1.0F - 1e-6F) - __FLT_MIN__;
}

// Bounds of a distance whose square is given.
[[maybe_unused]] static inline float bound_above(double squared) {
    return rounded_up(static_cast<float>(__builtin_sqrt(squared)));
}

[[maybe_unused]] static inline float bound_below(double squared) {
    return rounded_down(static_cast<float>(__builtin_sqrt(squared)));
}

}  // namespace kmeander
