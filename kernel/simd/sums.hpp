// Sums over rows: moments, compensated sums, squared errors; and reading and copying rows. For
// loops.cpp alone.
#pragma once

#include "simd/distances.hpp"

namespace kmeander {
namespace {

template <class T>
void add_rows_of(const PointsView &rows, const double *weights, const std::int32_t *labels,
                 const std::uint32_t *chosen, std::size_t n_chosen, double *sums, double *rests) {
    const std::size_t d = rows.columns;
    for (std::size_t c = 0; c < n_chosen; ++c) {
        const std::size_t i = chosen[c], label = static_cast<std::size_t>(labels[i]);
        if (c + kAhead < n_chosen) prefetch(row<T>(rows, chosen[c + kAhead]), d);
        const T *x = row<T>(rows, i);
        double *__restrict sum = sums + label * d, *__restrict rest = rests + label * d;
        const double weight = weights == nullptr ? 1.0 : weights[i];
        for (std::size_t j = 0; j < d; ++j) {
            // Knuth's two-sum: `lost` is exactly what the addition rounds away.
            const double value = weight * x[j];
            const double total = sum[j] + value;
            const double added = total - sum[j];
            const double lost = (sum[j] - (total - added)) + (value - added);
            sum[j] = total;
            rest[j] += lost;
        }
    }
}

template <class T>
void add_squares_of(const PointsView &rows, const double *weights, const std::int32_t *labels,
                    const std::uint32_t *chosen, std::size_t n_chosen, const double *means,
                    double *quarters) {
    const std::size_t d = rows.columns;
    for (std::size_t c = 0; c < n_chosen; ++c) {
        const std::size_t i = chosen[c], label = static_cast<std::size_t>(labels[i]);
        if (c + kAhead < n_chosen) prefetch(row<T>(rows, chosen[c + kAhead]), d);
        const double weight = weights == nullptr ? 1.0 : weights[i];
        if (weight <= 0.0) continue;  // and its cluster may have no mean
        const Four squares = squared_gaps(row<T>(rows, i), means + label * d, d);
        Four sum;
        __builtin_memcpy(&sum, quarters + 4 * label, sizeof sum);
        sum = sum + weight * squares;
        __builtin_memcpy(quarters + 4 * label, &sum, sizeof sum);
    }
}

template <class T>
void add_moments_of(const PointsView &rows, const double *weights, double decay,
                    const std::int32_t *labels, const double *centroids, double *masses,
                    double *sums, double *squares) {
    const std::size_t d = rows.columns;
    for (std::size_t i = 0; i < rows.count; ++i) {
        const std::size_t label = static_cast<std::size_t>(labels[i]);
        const double weight = weights == nullptr ? decay : decay * weights[i];
        if (i + kAhead < rows.count) prefetch(row<T>(rows, i + kAhead), d);
        const T *__restrict x = row<T>(rows, i);
        const double *__restrict centre = centroids + label * d;
        double *__restrict sum = sums + label * d, *__restrict square = squares + label * d;
        masses[label] = masses[label] + weight;
        for (std::size_t j = 0; j < d; ++j) {
            const double gap = x[j] - centre[j], weighted = weight * gap;
            sum[j] = sum[j] + weighted;
            square[j] = square[j] + weighted * gap;
        }
    }
}

template <class T>
void widen_of(const PointsView &rows, std::size_t i, double *point) {
    const T *x = row<T>(rows, i);
    for (std::size_t j = 0; j < rows.columns; ++j) point[j] = x[j];
}

void widen(const PointsView &rows, std::size_t i, double *point) {
    const auto run = rows.is_float32 ? widen_of<float> : widen_of<double>;
    run(rows, i, point);
}

template <class T>
bool copy_within_of(const PointsView &rows, double limit, void *copy) {
    typedef T Values __attribute__((vector_size(KMEANDER_LANES * 8)));
    constexpr std::size_t kValues = sizeof(Values) / sizeof(T);
    // No float is larger than the largest.
    const T most = sizeof(T) == sizeof(float) && limit > __FLT_MAX__ ? static_cast<T>(__FLT_MAX__)
                                                                     : static_cast<T>(limit);
    const T *from = static_cast<const T *>(rows.data);
    T *to = static_cast<T *>(copy);
    const std::size_t count = rows.count * rows.columns;
    // What is not a number fails every comparison.
    auto within = Values{} == Values{};
    std::size_t i = 0;
    for (; i + kValues <= count; i += kValues) {
        Values values;
        __builtin_memcpy(&values, from + i, sizeof values);
        if (to != nullptr) __builtin_memcpy(to + i, &values, sizeof values);
        within &= (values <= most) & (values >= -most);
    }
    bool all = true;
    for (std::size_t l = 0; l < kValues; ++l) all &= within[l] != 0;
    for (; i < count; ++i) {
        if (to != nullptr) to[i] = from[i];
        all &= from[i] <= most && from[i] >= -most;
    }
    return all;
}

bool copy_within(const PointsView &rows, double limit, void *copy) {
    const auto run = rows.is_float32 ? copy_within_of<float> : copy_within_of<double>;
    return run(rows, limit, copy);
}

void add_moments(const PointsView &rows, const double *weights, double decay,
                 const std::int32_t *labels, const double *centroids, double *masses, double *sums,
                 double *squares) {
    const auto run = rows.is_float32 ? add_moments_of<float> : add_moments_of<double>;
    run(rows, weights, decay, labels, centroids, masses, sums, squares);
}

void add_rows(const PointsView &rows, const double *weights, const std::int32_t *labels,
              const std::uint32_t *chosen, std::size_t n_chosen, double *sums, double *rests) {
    const auto run = rows.is_float32 ? add_rows_of<float> : add_rows_of<double>;
    run(rows, weights, labels, chosen, n_chosen, sums, rests);
}

void add_squares(const PointsView &rows, const double *weights, const std::int32_t *labels,
                 const std::uint32_t *chosen, std::size_t n_chosen, const double *means,
                 double *quarters) {
    const auto run = rows.is_float32 ? add_squares_of<float> : add_squares_of<double>;
    run(rows, weights, labels, chosen, n_chosen, means, quarters);
}

}  // namespace
}  // namespace kmeander
