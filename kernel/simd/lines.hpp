// Projections of rows on a line, and histograms along it. For loops.cpp alone.
#pragma once

#include "simd/distances.hpp"

namespace kmeander {
namespace {

typedef std::int64_t FourMasks __attribute__((vector_size(32)));

inline Four where_set(const FourMasks &mask, const Four &values) {
    return (Four)(mask & (FourMasks)values);
}

// Call add(values and weights of four rows), the last made up with rows that weigh nothing.
template <class Add>
inline void by_fours(const double *values, const double *weights, std::size_t count,
                     const Add &add) {
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) add(load_four(values + i), load_four(weights + i));
    if (i < count) add(load_rest(values + i, count - i), load_rest(weights + i, count - i));
}

void add_to_bins(const double *places, const double *weights, std::size_t count, double *bins) {
    Four sums[kLineBins] = {};
    by_fours(places, weights, count, [&](const Four &place, const Four &weight) {
        // 0 is the middle of bin 1, 1 that of bin 5; what lies beyond is in the first and the last.
        const Four at = 4.0 * place + 1.5;
        FourMasks reached = at == at;
        for (int bin = 0; bin < kLineBins; ++bin) {
            const FourMasks beyond =
                bin + 1 < kLineBins ? at >= static_cast<double>(bin + 1) : FourMasks{};
            sums[bin] = sums[bin] + where_set(reached & ~beyond, weight);
            reached = beyond;
        }
    });
    for (int bin = 0; bin < kLineBins; ++bin) bins[bin] = bins[bin] + total(sums[bin]);
}

void add_above(const double *places, const double *weights, std::size_t count, double cut,
               double *mass, double *sum) {
    Four masses = {}, sums = {};
    by_fours(places, weights, count, [&](const Four &place, const Four &weight) {
        const Four above = where_set(place > cut, weight);
        masses = masses + above;
        sums = sums + above * place;
    });
    *mass = total(masses);
    *sum = total(sums);
}

void place_on_line(const double *shares, const double *squared, const double *own,
                   std::size_t count, double length, bool is_from, double *places) {
    const double sign = is_from ? 1.0 : -1.0;
    for (std::size_t i = 0; i < count; ++i) {
        const double towards = sign * shares[i], pull = own[i] * squared[i];
        const double t =
            (1.0 + own[i]) * (towards + pull) / (length + own[i] * (2.0 * towards + pull));
        places[i] = is_from ? t : 1.0 - t;
    }
}

}  // namespace
}  // namespace kmeander
