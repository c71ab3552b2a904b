// Median and median absolute deviation of a few estimates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace kmeander {

// The middle one, or the mean of the two in the middle; `values`, at least one, are put in order.
inline double median(std::vector<double> &values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

struct Medians {
    double value, deviation, square;
};

// For pairs of a value and its standard error: the median value, the median of the absolute
// deviations from that, and the median of the squared errors.
inline Medians medians(const std::vector<std::pair<double, double>> &estimates) {
    std::vector<double> values;
    for (const auto &[value, error] : estimates) values.push_back(value);
    const double centre = median(values);
    for (double &value : values) value = std::fabs(value - centre);
    const double deviation = median(values);
    values.clear();
    for (const auto &[value, error] : estimates) values.push_back(error * error);
    return {centre, deviation, median(values)};
}

}  // namespace kmeander
