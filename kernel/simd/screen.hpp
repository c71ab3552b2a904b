// Nearest centroids in single precision, with bounds of its error. For loops.cpp alone.
//
// Nearly all points have one centroid that is nearer than the others by far more than single
// precision can be wrong. What it finds of those is true; the others it reports as
// ambiguous. A register has twice as many lanes as in double precision, and each is a point, so
// that any centroids will do and the least needs no look across lanes.
//
// Points and centroids are taken less a common shift, so that it does not matter how far from zero
// the data lies. With x and c such differences, e = 2**-24 the rounding of a float, D the distance
// and F the one found:
// - rounding x and c moves the one by e |x| and the other by e |c| at most;
// - d squared differences, each rounded twice and added up in d more roundings, are right to
//   (d + 2) e, and so is F to half of that;
// - |x| is at most |c| + D for any centroid, so it is known from the nearest; and |c| of another is
// at
//   most |x| and its own D.
// Squares too small for a float lose what `tiny` makes up for; one too large is infinite, and then
// nothing is known.
#pragma once

#include "simd/distances.hpp"

namespace kmeander {
namespace {

constexpr float kRounding = 0x1p-24F;
// What was left out above is smaller by far than a tenth of each term.
constexpr float kSlack = 1.1F;

// What is known of kFloats points.
struct Screened {
    Floats best, second;
    Ints where;
};

// V times kFloats points against C centroids, the first being number `first`: V * C sums stay in
// registers.
template <int V, int C>
inline void screen_tile(const float *const *units, std::size_t d, const float *centroids,
                        std::int32_t first, Screened *screened) {
    Floats sums[V][C] = {};
    for (std::size_t j = 0; j < d; ++j) {
        Floats points[V];
        for (int v = 0; v < V; ++v) points[v] = load_floats(units[v] + j * kFloats);
        for (int c = 0; c < C; ++c) {
            const float value = centroids[static_cast<std::size_t>(c) * d + j];
            for (int v = 0; v < V; ++v) {
                const Floats difference = points[v] - value;
                sums[v][c] = sums[v][c] + difference * difference;
            }
        }
    }
    for (int v = 0; v < V; ++v) {
        Screened &s = screened[v];
        for (int c = 0; c < C; ++c) {
            const Ints closer = sums[v][c] < s.best;
            const Floats farther = closer ? s.best : sums[v][c];
            s.second = farther < s.second ? farther : s.second;
            s.best = closer ? sums[v][c] : s.best;
            s.where = closer ? first + c - Ints{} : s.where;
        }
    }
}

template <int V>
inline void screen_units(const float *narrowed, std::size_t d, const NarrowCentroids &centroids,
                         const std::uint32_t *chosen, std::size_t n_chosen, float *best,
                         float *second, std::int32_t *labels) {
    const float *units[V];
    Screened screened[V];
    for (int v = 0; v < V; ++v) {
        units[v] = narrowed + static_cast<std::size_t>(v) * d * kFloats;
        screened[v] = {__builtin_inff() - Floats{}, __builtin_inff() - Floats{}, Ints{}};
    }
    for (std::size_t b = 0; b < n_chosen; ++b) {
        const std::size_t first = chosen[b] * kLanes;
        const float *rows = centroids.rows + first * d;
        const std::int32_t number = static_cast<std::int32_t>(first);
        switch (centroids.k - first) {  // fewer than kLanes in the last block
            case 1: screen_tile<V, 1>(units, d, rows, number, screened); break;
            case 2: screen_tile<V, 2>(units, d, rows, number, screened); break;
            case 3:
                screen_tile<V, 3 < kLanes ? 3 : kLanes>(units, d, rows, number, screened);
                break;
            default: screen_tile<V, kLanes>(units, d, rows, number, screened);
        }
    }
    for (int v = 0; v < V; ++v) {
        __builtin_memcpy(best + v * static_cast<int>(kFloats), &screened[v].best, sizeof(Floats));
        __builtin_memcpy(second + v * static_cast<int>(kFloats), &screened[v].second,
                         sizeof(Floats));
        __builtin_memcpy(labels + v * static_cast<int>(kFloats), &screened[v].where, sizeof(Ints));
    }
}

typedef float FourFloats __attribute__((vector_size(16)));

// Four columns of four points, less `shift`, with the points in lanes.
inline void narrow_four(const double *const *x, std::size_t j, const double *shift, float *unit) {
    const Four less = load_four(shift + j);
    FourFloats rows[4];
    for (int p = 0; p < 4; ++p)
        rows[p] = __builtin_convertvector(load_four(x[p] + j) - less, FourFloats);
    const FourFloats low = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
    const FourFloats high = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
    const FourFloats low2 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    const FourFloats high2 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    const FourFloats columns[4] = {__builtin_shufflevector(low, low2, 0, 1, 4, 5),
                                   __builtin_shufflevector(low, low2, 2, 3, 6, 7),
                                   __builtin_shufflevector(high, high2, 0, 1, 4, 5),
                                   __builtin_shufflevector(high, high2, 2, 3, 6, 7)};
    for (int c = 0; c < 4; ++c) __builtin_memcpy(unit + (j + c) * kFloats, columns + c, 16);
}

void narrow(const double *const *x, std::size_t count, std::size_t d, const double *shift,
            float *narrowed) {
    static_assert(kFloats % 4 == 0, "points are put in lanes four at a time");
    for (std::size_t i = 0; i < count; i += 4) {
        const double *points[4];  // the last once more where there are fewer
        for (std::size_t p = 0; p < 4; ++p) points[p] = x[i + p < count ? i + p : count - 1];
        float *unit = narrowed + i / kFloats * kFloats * d + i % kFloats;
        std::size_t j = 0;
        for (; j + 4 <= d; j += 4) narrow_four(points, j, shift, unit);
        for (; j < d; ++j)
            for (std::size_t p = 0; p < 4; ++p)
                unit[j * kFloats + p] = static_cast<float>(points[p][j] - shift[j]);
    }
}

std::size_t screen(const float *narrowed, std::size_t count, std::size_t d,
                   const NarrowCentroids &centroids, const std::uint32_t *chosen,
                   std::size_t n_chosen, std::int32_t *labels, float *upper, float *lower,
                   std::uint32_t *ambiguous) {
    float best[kGroupRows], second[kGroupRows];
    std::int32_t where[kGroupRows];
    std::size_t i = 0;
    for (; i + kFloats < count; i += 2 * kFloats)
        screen_units<2>(narrowed + i * d, d, centroids, chosen, n_chosen, best + i, second + i,
                        where + i);
    if (i < count)
        screen_units<1>(narrowed + i * d, d, centroids, chosen, n_chosen, best + i, second + i,
                        where + i);
    const float share = 0.5F * kSlack * kRounding * static_cast<float>(d + 2);
    const float tiny = 2.0F * __builtin_sqrtf(static_cast<float>(d) * __FLT_MIN__);
    float lengths[kGroupRows];
    for (i = 0; i < count; ++i) lengths[i] = centroids.lengths[where[i]];
    for (i = 0; i < count; ++i) {
        // So far at least, if there is a second.
        const float capped = second[i] < __FLT_MAX__ ? second[i] : __FLT_MAX__;
        const float nearest = __builtin_sqrtf(best[i]), next = __builtin_sqrtf(capped);
        const float reach = kSlack * (nearest + lengths[i]);  // at least |x|
        const float off = kSlack * kRounding * (reach + lengths[i]) + tiny;
        const float next_off = kSlack * kRounding * (2.0F * reach + next) + tiny;
        upper[i] = rounded_up(nearest + share * nearest + off);
        lower[i] = rounded_down((next - share * next) - next_off);
        labels[i] = where[i];
    }
    std::size_t n_ambiguous = 0;
    for (i = 0; i < count; ++i) {
        ambiguous[n_ambiguous] = static_cast<std::uint32_t>(i);
        n_ambiguous += !(lower[i] > upper[i]);
    }
    return n_ambiguous;
}

}  // namespace
}  // namespace kmeander
