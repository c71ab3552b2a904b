// Vectors as wide as a register of the instruction set. For inner_loops.cpp alone, which says why no
// standard header with inline functions may be included.
#pragma once

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

inline void store(double *to, Vec value) { __builtin_memcpy(to, &value, sizeof value); }

template <class T>
const T *row(const Rows &rows, std::size_t i) {
    return static_cast<const T *>(rows.data) + i * rows.columns;
}

// How many rows before its turn one is asked for: a window is larger than the caches, and where rows
// are skipped the processor does not ask by itself.
constexpr std::size_t kAhead = 8;

template <class T>
inline void prefetch(const T *x, std::size_t d) {
    for (std::size_t j = 0; j < d; j += 64 / sizeof(T)) __builtin_prefetch(x + j);
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

}  // namespace
}  // namespace kmeander
