// Outward rounding: bounds hold whatever the float can hold of a distance.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "simd/instruction_set.hpp"
#include "simd/rounding.hpp"

namespace kmeander {
namespace {

// Squares of distances of all magnitudes, and those where floats end.
std::vector<double> squares() {
    std::vector<double> values = {0.0,
                                  DBL_MIN,
                                  DBL_TRUE_MIN,
                                  1e-80,
                                  static_cast<double>(FLT_TRUE_MIN),
                                  1.0,
                                  std::nextafter(1.0, 2.0),
                                  std::nextafter(1.0, 0.0),
                                  static_cast<double>(FLT_MAX) * FLT_MAX,
                                  1e80,
                                  1e240,
                                  std::numeric_limits<double>::infinity()};
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> exponent(-240.0, 240.0), mantissa(1.0, 2.0);
    for (int i = 0; i < 20000; ++i)
        values.push_back(mantissa(random) * std::pow(10.0, exponent(random)));
    return values;
}

TEST(Rounding, BoundsEncloseTheDistance) {
    for (const double squared : squares()) {
        const long double distance = std::sqrt(static_cast<long double>(squared));
        EXPECT_GE(static_cast<long double>(bound_above(squared)), distance) << squared;
        EXPECT_LE(static_cast<long double>(bound_below(squared)), distance) << squared;
    }
}

TEST(Rounding, IsStrictlyOutward) {
    for (const float value : {0.0F, FLT_TRUE_MIN, FLT_MIN, 1e-20F, 1.0F, 3.0F, 1e30F}) {
        EXPECT_GT(rounded_up(value), value);
        EXPECT_LT(rounded_down(value), value);
    }
}

TEST(Rounding, AnInfiniteDistanceHasAFiniteLowerBound) {
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(rounded_up(infinity), infinity);
    EXPECT_LT(rounded_down(infinity), infinity);
    EXPECT_GT(rounded_down(infinity), 1e38F);
}

TEST(Rounding, IsTheSameInTheInnerLoops) {
    const std::vector<double> values = squares();
    std::vector<float> above(values.size()), below(values.size());
    instruction_set().bounds_above(values.data(), values.size(), above.data());
    instruction_set().bounds_below(values.data(), values.size(), below.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const long double distance = std::sqrt(static_cast<long double>(values[i]));
        EXPECT_GE(static_cast<long double>(above[i]), distance) << values[i];
        EXPECT_LE(static_cast<long double>(below[i]), distance) << values[i];
    }
}

}  // namespace
}  // namespace kmeander
