// Compiled once per instruction set, with KMEANDER_SET (its name) and KMEANDER_LANES set.
//
// No standard header with inline functions is included: the linker would keep one copy
// of such a function for the whole module, and it might be the one that needs AVX2. Those of
// immintrin.h are never compiled by themselves.
#include "instruction_set.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace kmeander {
namespace {

constexpr int kLanes = KMEANDER_LANES;
typedef double Vec __attribute__((vector_size(KMEANDER_LANES * 8)));
typedef std::int64_t Index __attribute__((vector_size(KMEANDER_LANES * 8)));

inline Vec load(const double *from) {
    Vec value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
const T *row(const Rows &rows, std::size_t i) {
    return static_cast<const T *>(rows.data) + i * rows.columns;
}

// As in bounds.hpp, which includes such headers.
inline float rounded_up(float value) { return value * (1.0F + 1e-6F) + __FLT_MIN__; }
inline float rounded_down(float value) {
    return (__FLT_MAX__ < value ? __FLT_MAX__ : value) * (1.0F - 1e-6F) - __FLT_MIN__;
}

// Lane l becomes lane l ^ 1, l ^ 2 and l ^ 4: so many steps as it takes to meet every other lane.
#if KMEANDER_LANES == 2
#define KMEANDER_EXCHANGES(step, v) step(v, 1, 0)
#elif KMEANDER_LANES == 4
#define KMEANDER_EXCHANGES(step, v) step(v, 1, 0, 3, 2) step(v, 2, 3, 0, 1)
#elif KMEANDER_LANES == 8
#define KMEANDER_EXCHANGES(step, v) \
    step(v, 1, 0, 3, 2, 5, 4, 7, 6) step(v, 2, 3, 0, 1, 6, 7, 4, 5) step(v, 4, 5, 6, 7, 0, 1, 2, 3)
#endif

inline Vec least(Vec a, Vec b) { return a < b ? a : b; }

// The least of all lanes, in every lane.
inline Vec least_lane(Vec v) {
#define KMEANDER_STEP(v, ...) v = least(v, __builtin_shufflevector(v, v, __VA_ARGS__));
    KMEANDER_EXCHANGES(KMEANDER_STEP, v)
#undef KMEANDER_STEP
    return v;
}

// Running minima of one point, a lane for each position in a block. Indices are kept as doubles,
// in which they are exact and take part in the same vector operations.
struct Running {
    Vec best, second, where;
};

// P points against B blocks of centroids: P * B sums stay in registers.
template <int P, int B>
inline void tile(const double *const *x, std::size_t d, const double *const *blocks, const Vec *first,
                 Running *running) {
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
            Running &r = running[p];
            const Index closer = sums[p][b] < r.best;
            r.second = least(r.second, closer ? r.best : sums[p][b]);
            r.best = closer ? sums[p][b] : r.best;
            r.where = closer ? first[b] : r.where;
        }
    }
}

template <int P, int B>
inline void sweep(const double *const *x, std::size_t count, std::size_t d, const double *const *blocks,
                  const Vec *first, Running *running) {
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
    Running running[kGroupRows];
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
        const Running &r = running[i];
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

template <class T>
void squared_to_of(const Rows &rows, std::size_t begin, std::size_t end, const double *point,
                   double *squared) {
    const std::size_t d = rows.columns;
    for (std::size_t i = begin; i < end; ++i) {
        const T *x = row<T>(rows, i);
        // Four sums whatever the width of a register: the order of additions is fixed.
        double sums[4] = {0.0, 0.0, 0.0, 0.0};
        std::size_t j = 0;
        for (; j + 4 <= d; j += 4) {
            for (int l = 0; l < 4; ++l) {
                const double difference = x[j + l] - point[j + l];
                sums[l] = sums[l] + difference * difference;
            }
        }
        for (int l = 0; j < d; ++j, ++l) {
            const double difference = x[j] - point[j];
            sums[l] = sums[l] + difference * difference;
        }
        squared[i - begin] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

template <class T>
void add_rows_of(const Rows &rows, const double *weights, const std::int32_t *labels,
                 const std::uint8_t *stale, double *sums, double *rests) {
    const std::size_t d = rows.columns;
    for (std::size_t i = 0; i < rows.count; ++i) {
        const std::size_t label = static_cast<std::size_t>(labels[i]);
        if (!stale[label]) continue;
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
void add_squares_of(const Rows &rows, const double *weights, const std::int32_t *labels,
                    const std::uint8_t *stale, const double *means, double *squares) {
    const std::size_t d = rows.columns;
    for (std::size_t i = 0; i < rows.count; ++i) {
        const std::size_t label = static_cast<std::size_t>(labels[i]);
        if (!stale[label]) continue;
        const double weight = weights == nullptr ? 1.0 : weights[i];
        if (weight <= 0.0) continue;
        double squared;
        squared_to_of<T>(rows, i, i + 1, means + label * d, &squared);
        squares[label] = squares[label] + weight * squared;
    }
}

template <class T>
void widen_of(const Rows &rows, std::size_t i, double *point) {
    const T *x = row<T>(rows, i);
    for (std::size_t j = 0; j < rows.columns; ++j) point[j] = x[j];
}

void widen(const Rows &rows, std::size_t i, double *point) {
    const auto run = rows.is_float32 ? widen_of<float> : widen_of<double>;
    run(rows, i, point);
}

void squared_to(const Rows &rows, std::size_t begin, std::size_t end, const double *point,
                double *squared) {
    const auto run = rows.is_float32 ? squared_to_of<float> : squared_to_of<double>;
    run(rows, begin, end, point, squared);
}

typedef float Floats __attribute__((vector_size(KMEANDER_LANES * 8)));
constexpr std::size_t kFloats = 2 * KMEANDER_LANES;

inline Floats load_floats(const float *from) {
    Floats value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

#if defined(__AVX2__) && KMEANDER_LANES == 4
#define KMEANDER_GATHERS
// For every set of eight lanes those that are in it, a byte each, in order.
struct LanesOf {
    std::uint64_t bytes[256];
    constexpr LanesOf() : bytes() {
        for (unsigned set = 0; set < 256; ++set) {
            unsigned n_found = 0;
            for (std::uint64_t lane = 0; lane < 8; ++lane)
                if (set >> lane & 1U) bytes[set] |= lane << (8 * n_found++);
        }
    }
};
constexpr LanesOf kLanesOf;
#endif

// Entries of a table, one for each of kFloats indices.
template <class Integer>
inline Floats look_up(const float *table, const Integer *indices) {
#ifdef KMEANDER_GATHERS
    __m256i where;
    __builtin_memcpy(&where, indices, sizeof where);
    return _mm256_i32gather_ps(table, where, 4);
#else
    Floats value = {};
    for (std::size_t l = 0; l < kFloats; ++l) value[l] = table[indices[l]];
    return value;
#endif
}

// Call flag(i) for kFloats points from i on, and list those whose lanes are set. Without a branch: one
// in ten or so is found, which no processor foresees.
template <class Flag, class FlagOne>
inline std::size_t flagged(std::size_t count, std::uint32_t *found, const Flag &flag,
                           const FlagOne &flag_one) {
    std::size_t n_found = 0, i = 0;
    for (; i + kFloats <= count; i += kFloats) {
        const auto flags = flag(i);
#ifdef KMEANDER_GATHERS
        const unsigned lanes = static_cast<unsigned>(_mm256_movemask_ps((__m256)flags));
        const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(kLanesOf.bytes[lanes]));
        const __m256i here = _mm256_add_epi32(_mm256_cvtepu8_epi32(bytes),
                                              _mm256_set1_epi32(static_cast<int>(i)));
        __builtin_memcpy(found + n_found, &here, sizeof here);
        n_found += static_cast<std::size_t>(__builtin_popcount(lanes));
#else
        for (std::size_t l = 0; l < kFloats; ++l) {
            found[n_found] = static_cast<std::uint32_t>(i + l);
            n_found += flags[l] != 0;
        }
#endif
    }
    for (; i < count; ++i) {
        found[n_found] = static_cast<std::uint32_t>(i);
        n_found += flag_one(i);
    }
    return n_found;
}

std::size_t unsettled(const float *upper, const float *lower, const std::uint32_t *keys,
                      const float *margins, const float *uppers, std::size_t count,
                      std::uint32_t *found) {
    // Bounds that are not numbers settle nothing.
    const std::size_t n_doubtful = flagged(
        count, found,
        [=](std::size_t i) {
            const Floats u = load_floats(upper + i), l = load_floats(lower + i);
            return ~(l - u > look_up(margins, keys + i));
        },
        [=](std::size_t i) { return !(lower[i] - upper[i] > margins[keys[i]]); });
    // A look-up costs more than all the rest: the second for those few that need it.
    std::size_t n_found = 0;
    for (std::size_t f = 0; f < n_doubtful; ++f) {
        const std::uint32_t i = found[f];
        found[n_found] = i;
        n_found += !(upper[i] < uppers[keys[i]]);
    }
    return n_found;
}

std::size_t awake(const std::int32_t *labels, const float *upper, const float *lower,
                  const float *thresholds, std::size_t count, std::uint32_t *found) {
    return flagged(
        count, found,
        [=](std::size_t i) {
            const Floats u = load_floats(upper + i), l = load_floats(lower + i);
            return ~(l - u > look_up(thresholds, labels + i));
        },
        [=](std::size_t i) { return !(lower[i] - upper[i] > thresholds[labels[i]]); });
}

// With numbers or with vectors of them, as `rounded_up` and `rounded_down` are.
template <class Value>
inline void rebase_one(Value own, Value others, Value nearest_other, Value &upper, Value &lower) {
    const Value most = __FLT_MAX__ - Value{};
    upper = (upper + own) * (1.0F + 1e-6F) + __FLT_MIN__;
    const Value by_movement = lower - others, by_place = nearest_other - upper;
    const Value larger = by_place > by_movement ? by_place : by_movement;
    lower = (most < larger ? most : larger) * (1.0F - 1e-6F) - __FLT_MIN__;
}

void rebase(const std::int32_t *labels, std::size_t count, const float *own, const float *others,
            const float *nearest_other, float *upper, float *lower) {
    std::size_t i = 0;
    for (; i + kFloats <= count; i += kFloats) {
        Floats u = load_floats(upper + i), l = load_floats(lower + i);
        rebase_one(look_up(own, labels + i), look_up(others, labels + i),
                   look_up(nearest_other, labels + i), u, l);
        __builtin_memcpy(upper + i, &u, sizeof u);
        __builtin_memcpy(lower + i, &l, sizeof l);
    }
    for (; i < count; ++i)
        rebase_one(own[labels[i]], others[labels[i]], nearest_other[labels[i]], upper[i], lower[i]);
}

void bound_others(const float *apart, const float *moved, std::size_t n_blocks, const float *lower,
                  const float *upper, std::size_t count, float *bounds) {
    for (std::size_t begin = 0; begin < count; begin += kFloats) {
        const std::size_t size = begin + kFloats < count ? kFloats : count - begin;
        Floats l = {}, u = {};
        if (size == kFloats) {
            __builtin_memcpy(&l, lower + begin, sizeof l);
            __builtin_memcpy(&u, upper + begin, sizeof u);
        } else {
            for (std::size_t i = 0; i < size; ++i) {
                l[i] = lower[begin + i];
                u[i] = upper[begin + i];
            }
        }
        Floats bound = __builtin_inff() - Floats{};
        for (std::size_t b = 0; b < n_blocks; ++b) {
            const Floats by_movement = l - moved[b], by_place = apart[b] - u;
            const Floats larger = by_place > by_movement ? by_place : by_movement;
            // Written so that what is not a number is taken, and settles nothing.
            bound = bound < larger ? bound : larger;
        }
        for (std::size_t i = 0; i < size; ++i) bounds[begin + i] = rounded_down(bound[i]);
    }
}

// Vectors of doubles, whose roots the processor takes together.
void bounds_above(const double *squared, std::size_t count, float *bounds) {
    for (std::size_t i = 0; i < count; ++i)
        bounds[i] = rounded_up(static_cast<float>(__builtin_sqrt(squared[i])));
}

void bounds_below(const double *squared, std::size_t count, float *bounds) {
    for (std::size_t i = 0; i < count; ++i)
        bounds[i] = rounded_down(static_cast<float>(__builtin_sqrt(squared[i])));
}

template <class T>
void squared_between_of(const void *const *points, std::size_t count, std::size_t d,
                        const double *centroid, double *squared) {
    for (std::size_t i = 0; i < count; ++i) {
        const Rows one = {points[i], sizeof(T) == sizeof(float), 1, d};
        squared_to_of<T>(one, 0, 1, centroid, squared + i);
    }
}

void squared_between(const void *const *points, bool is_float32, std::size_t count, std::size_t d,
                     const double *centroid, double *squared) {
    const auto run = is_float32 ? squared_between_of<float> : squared_between_of<double>;
    run(points, count, d, centroid, squared);
}

void add_rows(const Rows &rows, const double *weights, const std::int32_t *labels,
              const std::uint8_t *stale, double *sums, double *rests) {
    const auto run = rows.is_float32 ? add_rows_of<float> : add_rows_of<double>;
    run(rows, weights, labels, stale, sums, rests);
}

void add_squares(const Rows &rows, const double *weights, const std::int32_t *labels,
                 const std::uint8_t *stale, const double *means, double *squares) {
    const auto run = rows.is_float32 ? add_squares_of<float> : add_squares_of<double>;
    run(rows, weights, labels, stale, means, squares);
}

}  // namespace

extern const InstructionSet KMEANDER_SET;
const InstructionSet KMEANDER_SET = {
    KMEANDER_SET_NAME, kLanes,        widen,         nearest,      squared_to,
    squared_between,   bounds_above, bounds_below, unsettled, awake,
    rebase,            bound_others, add_rows,     add_squares,
};

}  // namespace kmeander
