// Squared distances and dot products of points. For loops.cpp alone.
#pragma once

#include "simd/vectors.hpp"

namespace kmeander {
namespace {

// Running minima of one point, a lane for each position in a block. Indices are kept as doubles,
// in which they are exact and take part in the same vector operations.
struct RunningMinima {
    Vec best, second, where;
};

// P points against B blocks of centroids: P * B sums stay in registers.
template <int P, int B>
inline void tile(const double *const *x, std::size_t d, const double *const *blocks,
                 const Vec *first, RunningMinima *running) {
    Vec sums[P][B] = {};
    for (std::size_t j = 0; j < d; ++j) {
        Vec centroids[B];
        for (int b = 0; b < B; ++b) centroids[b] = load(blocks[b] + j * kLanes);
        for (int p = 0; p < P; ++p) {
            const double value = x[p][j];
            for (int b = 0; b < B; ++b) {
                const Vec difference = value - centroids[b];
                sums[p][b] = sums[p][b] + difference * difference;
            }
        }
    }
    for (int p = 0; p < P; ++p) {
        for (int b = 0; b < B; ++b) {
            RunningMinima &r = running[p];
            const Index closer = sums[p][b] < r.best;
            r.second = least(r.second, closer ? r.best : sums[p][b]);
            r.best = closer ? sums[p][b] : r.best;
            r.where = closer ? first[b] : r.where;
        }
    }
}

template <int P, int B>
inline void sweep(const double *const *x, std::size_t count, std::size_t d,
                  const double *const *blocks, const Vec *first, RunningMinima *running) {
    std::size_t i = 0;
    for (; i + P <= count; i += P) tile<P, B>(x + i, d, blocks, first, running + i);
    if (P > 2)
        for (; i + 2 <= count; i += 2) tile<2, B>(x + i, d, blocks, first, running + i);
    for (; i < count; ++i) tile<1, B>(x + i, d, blocks, first, running + i);
}

void nearest(const double *const *x, std::size_t count, std::size_t d, const double *blocks,
             const std::uint32_t *chosen, std::size_t n_chosen, std::int32_t *labels,
             double *squared, double *second) {
    const double infinity = __builtin_inf();
    Vec lane_index = {};
    for (int l = 0; l < kLanes; ++l) lane_index[l] = l;
    RunningMinima running[kGroupRows];
    const Vec far = infinity - Vec{};
    for (std::size_t i = 0; i < count; ++i) running[i] = {far, far, lane_index};
    std::size_t c = 0;
    for (; c + 2 <= n_chosen; c += 2) {
        const double *const pair[2] = {blocks + chosen[c] * d * kLanes,
                                       blocks + chosen[c + 1] * d * kLanes};
        const Vec first[2] = {lane_index + static_cast<double>(chosen[c] * kLanes),
                              lane_index + static_cast<double>(chosen[c + 1] * kLanes)};
        sweep<4, 2>(x, count, d, pair, first, running);
    }
    if (c < n_chosen) {
        const double *const last = blocks + chosen[c] * d * kLanes;
        const Vec first = lane_index + static_cast<double>(chosen[c] * kLanes);
        sweep<8, 1>(x, count, d, &last, &first, running);
    }
    for (std::size_t i = 0; i < count; ++i) {
        const RunningMinima &r = running[i];
        const Vec distance = least_lane(r.best);
        // Of the lanes that tie, the lowest index wins; the others are its seconds.
        const Vec label = least_lane(r.best == distance ? r.where : far);
        const Index winner = (r.where == label) & (r.best == distance);
        const Vec others = winner ? r.second : r.best;
        labels[i] = static_cast<std::int32_t>(label[0]);
        squared[i] = distance[0];
        second[i] = least_lane(others)[0];
    }
}

// B blocks of rows against one seed: their sums do not wait for each other.
template <int B>
inline void add_seed_to(const double *blocks, std::size_t first, std::size_t d, const double *seed,
                        Vec number, const SeedDistances &rows, Vec &total) {
    Vec sums[B] = {};
    for (std::size_t j = 0; j < d; ++j) {
        const double value = seed[j];
        for (int b = 0; b < B; ++b) {
            const Vec difference = value - load(blocks + ((first + b) * d + j) * kLanes);
            sums[b] = sums[b] + difference * difference;
        }
    }
    for (int b = 0; b < B; ++b) {
        const std::size_t at = (first + b) * kLanes;
        const Vec nearest = load(rows.nearest + at), second = load(rows.second + at);
        const Index closer = sums[b] < nearest;
        const Vec now = closer ? sums[b] : nearest;
        store(rows.second + at, closer ? nearest : least(second, sums[b]));
        store(rows.nearest + at, now);
        store(rows.where + at, closer ? number : load(rows.where + at));
        const Vec shares = now * load(rows.weights + at);
        store(rows.shares + at, shares);
        total = total + shares;
    }
}

double add_seed(const double *blocks, std::size_t begin, std::size_t end, std::size_t d,
                const double *seed, std::size_t number, const SeedDistances &rows) {
    const Vec numbers = static_cast<double>(number) - Vec{};
    Vec total = {};
    std::size_t b = begin;
    for (; b + 4 <= end; b += 4) add_seed_to<4>(blocks, b, d, seed, numbers, rows, total);
    for (; b < end; ++b) add_seed_to<1>(blocks, b, d, seed, numbers, rows, total);
    double sum = 0.0;
    for (int l = 0; l < kLanes; ++l) sum += total[l];
    return sum;
}

// Four sums whatever the width of a register: the order of additions is fixed.
typedef double Four __attribute__((vector_size(32)));

template <class T>
inline Four load_four(const T *from) {
    typedef T FourOf __attribute__((vector_size(4 * sizeof(T))));
    FourOf values;
    __builtin_memcpy(&values, from, sizeof values);
    return __builtin_convertvector(values, Four);
}

// The last one to three values, made up with zeros.
template <class T>
inline Four load_rest(const T *from, std::size_t count) {
    return Four{from[0], count > 1 ? from[1] : T(0), count > 2 ? from[2] : T(0), 0.0};
}

inline double total(const Four &sums) { return (sums[0] + sums[1]) + (sums[2] + sums[3]); }

// Squares of the gaps between two points, every fourth added up.
template <class T>
inline Four squared_gaps(const T *x, const double *point, std::size_t d) {
    Four sums = {};
    std::size_t j = 0;
    for (; j + 4 <= d; j += 4) {
        const Four gap = load_four(x + j) - load_four(point + j);
        sums = sums + gap * gap;
    }
    if (j < d) {
        const Four gap = load_rest(x + j, d - j) - load_rest(point + j, d - j);
        sums = sums + gap * gap;
    }
    return sums;
}

template <class T>
void squared_to_of(const PointsView &rows, std::size_t begin, std::size_t end, const double *point,
                   double *squared) {
    for (std::size_t i = begin; i < end; ++i)
        squared[i - begin] = total(squared_gaps(row<T>(rows, i), point, rows.columns));
}

void squared_to_means(const double *sums, const double *masses, std::size_t k, std::size_t d,
                      const double *centroids, double *squared) {
    for (std::size_t c = 0; c < k; ++c) {
        const double *sum = sums + c * d, *centroid = centroids + c * d;
        Four squares = {};
        std::size_t j = 0;
        for (; j + 4 <= d; j += 4) {
            const Four gap = load_four(sum + j) / masses[c] - load_four(centroid + j);
            squares = squares + gap * gap;
        }
        if (j < d) {
            const Four gap = load_rest(sum + j, d - j) / masses[c] - load_rest(centroid + j, d - j);
            squares = squares + gap * gap;
        }
        squared[c] = total(squares);
    }
}

void squared_to(const PointsView &rows, std::size_t begin, std::size_t end, const double *point,
                double *squared) {
    const auto run = rows.is_float32 ? squared_to_of<float> : squared_to_of<double>;
    run(rows, begin, end, point, squared);
}

template <class T>
void squared_between_of(const void *const *points, std::size_t count, std::size_t d,
                        const double *centroid, double *squared) {
    for (std::size_t i = 0; i < count; ++i)
        squared[i] = total(squared_gaps(static_cast<const T *>(points[i]), centroid, d));
}

void squared_between(const void *const *points, bool is_float32, std::size_t count, std::size_t d,
                     const double *centroid, double *squared) {
    const auto run = is_float32 ? squared_between_of<float> : squared_between_of<double>;
    run(points, count, d, centroid, squared);
}

void squared_pairs(const double *const *points, const double *const *others, std::size_t count,
                   std::size_t d, double *squared) {
    for (std::size_t i = 0; i < count; ++i)
        squared[i] = total(squared_gaps(points[i], others[i], d));
}

// Along exactly W directions at once: their sums stay in registers.
template <class T, int W>
inline void project_one(const T *x, std::size_t d, const double *centroid,
                        const double *const *directions, double *squared, double *along,
                        std::size_t stride) {
    Four sums[W + 1] = {};
    std::size_t j = 0;
    for (; j + 4 <= d; j += 4) {
        const Four gap = load_four(x + j) - load_four(centroid + j);
        sums[W] = sums[W] + gap * gap;
        for (int w = 0; w < W; ++w) sums[w] = sums[w] + gap * load_four(directions[w] + j);
    }
    if (j < d) {
        const Four gap = load_rest(x + j, d - j) - load_rest(centroid + j, d - j);
        sums[W] = sums[W] + gap * gap;
        for (int w = 0; w < W; ++w) sums[w] = sums[w] + gap * load_rest(directions[w] + j, d - j);
    }
    *squared = total(sums[W]);
    for (int w = 0; w < W; ++w) along[w * stride] = total(sums[w]);
}

template <class T>
void project_of(const void *const *points, std::size_t count, std::size_t d, const double *centroid,
                const double *const *directions, std::size_t n_directions, double *squared,
                double *along, std::size_t stride) {
    for (std::size_t i = 0; i < count; ++i) {
        const T *x = static_cast<const T *>(points[i]);
        std::size_t w = 0;
        for (; w + 3 <= n_directions; w += 3)
            project_one<T, 3>(x, d, centroid, directions + w, squared + i, along + w * stride + i,
                              stride);
        for (; w + 2 <= n_directions; w += 2)
            project_one<T, 2>(x, d, centroid, directions + w, squared + i, along + w * stride + i,
                              stride);
        for (; w < n_directions; ++w)
            project_one<T, 1>(x, d, centroid, directions + w, squared + i, along + w * stride + i,
                              stride);
    }
}

void project(const void *const *points, bool is_float32, std::size_t count, std::size_t d,
             const double *centroid, const double *const *directions, std::size_t n_directions,
             double *squared, double *along, std::size_t stride) {
    const auto run = is_float32 ? project_of<float> : project_of<double>;
    run(points, count, d, centroid, directions, n_directions, squared, along, stride);
}

}  // namespace
}  // namespace kmeander
