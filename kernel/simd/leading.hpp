// Leading coordinates: products of points with axes, and the centroids that these products leave in
// question. For loops.cpp alone; kmeans/leading_screen.hpp says what they mean.
#pragma once

#include "simd/distances.hpp"

namespace kmeander {
namespace {

// Doubles as wide as a register of floats.
typedef double Wide __attribute__((vector_size(KMEANDER_FLOATS * 4)));
constexpr int kWide = KMEANDER_FLOATS / 2;

// P rows against B blocks of axes: P * B sums stay in registers.
template <int P, int B>
inline void multiply_tile(const double *rows, std::size_t d, const double *axes, double *products,
                          std::size_t stride) {
    Wide sums[P][B] = {};
    for (std::size_t j = 0; j < d; ++j) {
        Wide along[B];
        for (int b = 0; b < B; ++b)
            __builtin_memcpy(along + b, axes + (static_cast<std::size_t>(b) * d + j) * kWide,
                             sizeof(Wide));
        for (int p = 0; p < P; ++p) {
            const double value = rows[static_cast<std::size_t>(p) * d + j];
            for (int b = 0; b < B; ++b) sums[p][b] = sums[p][b] + value * along[b];
        }
    }
    for (int p = 0; p < P; ++p)
        for (int b = 0; b < B; ++b)
            __builtin_memcpy(products + static_cast<std::size_t>(p) * stride + b * kWide,
                             &sums[p][b], sizeof(Wide));
}

template <int P>
inline void multiply_rows(const double *rows, std::size_t d, const double *axes,
                          std::size_t n_blocks, double *products, std::size_t stride) {
    std::size_t b = 0;
    for (; b + 2 <= n_blocks; b += 2)
        multiply_tile<P, 2>(rows, d, axes + b * d * kWide, products + b * kWide, stride);
    if (b < n_blocks)
        multiply_tile<P, 1>(rows, d, axes + b * d * kWide, products + b * kWide, stride);
}

#if KMEANDER_FLOATS == 16
constexpr int kMultipliedRows = 8;  // 16 sums in 32 registers
#else
constexpr int kMultipliedRows = 4;  // 8 sums in 16 registers
#endif

void multiply(const double *rows, std::size_t count, std::size_t d, const double *axes,
              std::size_t n_blocks, double *products) {
    const std::size_t stride = n_blocks * kWide;
    std::size_t i = 0;
    for (; i + kMultipliedRows <= count; i += kMultipliedRows)
        multiply_rows<kMultipliedRows>(rows + i * d, d, axes, n_blocks, products + i * stride,
                                       stride);
    for (; i < count; ++i)
        multiply_rows<1>(rows + i * d, d, axes, n_blocks, products + i * stride, stride);
}

template <class T>
void centre_of(const T *x, std::size_t d, const float *centre, float *to) {
    std::size_t j = 0;
    // A double difference rounded to float; of floats the float difference is the same.
    for (; j < d; ++j) to[j] = static_cast<float>(x[j] - static_cast<T>(centre[j]));
}

void centre(const void *const *points, bool is_float32, std::size_t count, std::size_t d,
            const float *centre, std::size_t stride, float *to) {
    for (std::size_t i = 0; i < count; ++i, to += stride) {
        if (is_float32)
            centre_of(static_cast<const float *>(points[i]), d, centre, to);
        else
            centre_of(static_cast<const double *>(points[i]), d, centre, to);
        for (std::size_t j = d; j < stride; ++j) to[j] = 0.0F;
    }
}

// P points against B blocks of centroids; done(p, b, scores) takes what comes out of each pair.
template <int P, int B, class Done>
inline void score_tile(const LeadingRows &points, std::size_t first, const LeadingBlocks &blocks,
                       std::size_t block, const Done &done) {
    const std::size_t columns = blocks.columns;
    Floats scores[P][B];
    const float *centroids[B], *rows[P];
    for (int p = 0; p < P; ++p) rows[p] = points.rows[first + static_cast<std::size_t>(p)];
    for (int b = 0; b < B; ++b) {
        const std::size_t at = block + static_cast<std::size_t>(b);
        centroids[b] = blocks.values + at * (columns + 1) * kFloats;
        const Floats bias = load_floats(blocks.bias + at * kFloats);
        const Floats rests = load_floats(centroids[b] + columns * kFloats);
        for (int p = 0; p < P; ++p)
            scores[p][b] = bias + points.rests[first + static_cast<std::size_t>(p)] * rests;
    }
    for (std::size_t j = 0; j < columns; ++j) {
        Floats values[B];
        for (int b = 0; b < B; ++b) values[b] = load_floats(centroids[b] + j * kFloats);
        for (int p = 0; p < P; ++p) {
            const float value = rows[p][j];
            for (int b = 0; b < B; ++b) scores[p][b] = scores[p][b] + value * values[b];
        }
    }
    for (int p = 0; p < P; ++p)
        for (int b = 0; b < B; ++b) done(p, b, scores[p][b]);
}

#if KMEANDER_FLOATS == 16
constexpr int kScoredPoints = 6, kScoredBlocks = 4;  // 24 sums in 32 registers
#else
constexpr int kScoredPoints = 4, kScoredBlocks = 2;  // 8 sums in 16 registers
#endif

// Call done(point, block, scores) for all pairs of points and blocks.
template <class Done>
inline void score(const LeadingRows &points, const LeadingBlocks &blocks, const Done &done) {
    const auto against = [&]<int B>(std::size_t block) {
        std::size_t i = 0;
        const auto here = [&](int p, int b, const Floats &scores) {
            done(i + static_cast<std::size_t>(p), block + static_cast<std::size_t>(b), scores);
        };
        for (; i + kScoredPoints <= points.count; i += kScoredPoints)
            score_tile<kScoredPoints, B>(points, i, blocks, block, here);
        for (; i + 2 <= points.count; i += 2) score_tile<2, B>(points, i, blocks, block, here);
        if (i < points.count) score_tile<1, B>(points, i, blocks, block, here);
    };
    std::size_t block = 0;
    for (; block + kScoredBlocks <= blocks.count; block += kScoredBlocks)
        against.template operator()<kScoredBlocks>(block);
    for (; block < blocks.count; ++block) against.template operator()<1>(block);
}

void list_candidates(const LeadingRows &points, const LeadingBlocks &blocks,
                     const float *thresholds, std::uint32_t *found, std::size_t room,
                     std::uint32_t *n_found) {
    for (std::size_t i = 0; i < points.count; ++i) n_found[i] = 0;
    score(points, blocks, [=](std::size_t i, std::size_t block, const Floats &scores) {
        // What is not a number is in question.
        const Ints flags = ~(scores < thresholds[i]);
        n_found[i] += static_cast<std::uint32_t>(
            list_lanes(flags, block * kFloats, found + i * room + n_found[i]));
    });
}

void list_best(const LeadingRows &points, const LeadingBlocks &blocks, std::uint32_t *where) {
    Floats best[kGroupRows];
    Ints blocks_of[kGroupRows];
    for (std::size_t i = 0; i < points.count; ++i) {
        best[i] = -__builtin_inff() - Floats{};
        blocks_of[i] = Ints{};
    }
    score(points, blocks, [&](std::size_t i, std::size_t block, const Floats &scores) {
        const Ints better = scores > best[i];
        best[i] = better ? scores : best[i];
        blocks_of[i] = better ? static_cast<std::int32_t>(block) - Ints{} : blocks_of[i];
    });
    for (std::size_t i = 0; i < points.count; ++i) {
        std::size_t lane = 0;
        for (std::size_t l = 1; l < kFloats; ++l)
            if (best[i][l] > best[i][lane]) lane = l;
        where[i] = static_cast<std::uint32_t>(
            static_cast<std::size_t>(blocks_of[i][lane]) * kFloats + lane);
    }
}

inline float add_lanes(const Floats &sums) {
    float total = 0.0F;
    for (std::size_t l = 0; l < kFloats; ++l) total = total + sums[l];
    return total;
}

// Squared distances of one point to C rows.
template <int C>
inline void squared_tile(const float *point, const float *rows, std::size_t stride,
                         const std::uint32_t *which, float *squared) {
    Floats sums[C] = {};
    const float *centroids[C];
    for (int c = 0; c < C; ++c) centroids[c] = rows + which[c] * stride;
    for (std::size_t j = 0; j < stride; j += kFloats) {
        const Floats here = load_floats(point + j);
        for (int c = 0; c < C; ++c) {
            const Floats gap = here - load_floats(centroids[c] + j);
            sums[c] = sums[c] + gap * gap;
        }
    }
    for (int c = 0; c < C; ++c) squared[c] = add_lanes(sums[c]);
}

void squared_narrow(const float *point, const float *rows, std::size_t stride,
                    const std::uint32_t *which, std::size_t count, float *squared) {
    std::size_t c = 0;
    for (; c + 4 <= count; c += 4) squared_tile<4>(point, rows, stride, which + c, squared + c);
    for (; c < count; ++c) squared_tile<1>(point, rows, stride, which + c, squared + c);
}

}  // namespace
}  // namespace kmeander
