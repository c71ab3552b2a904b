// SIMD vectors as wide as a register of the instruction set. For loops.cpp alone, which says why no
// standard header with inline functions may be included.
#pragma once

#include "simd/instruction_set.hpp"
#include "simd/rounding.hpp"

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
const T *row(const PointsView &rows, std::size_t i) {
    return static_cast<const T *>(rows.data) + i * rows.columns;
}

// How many rows before its turn one is asked for: a window is larger than the caches, and where
// rows are skipped the processor does not ask by itself.
constexpr std::size_t kAhead = 8;

template <class T>
inline void prefetch(const T *x, std::size_t d) {
    for (std::size_t j = 0; j < d; j += 64 / sizeof(T)) __builtin_prefetch(x + j);
}

// Butterfly reduction: exchange lanes l and l ^ 1, then l and l ^ 2.
#if KMEANDER_LANES == 2
#define KMEANDER_EXCHANGES(step, v) step(v, 1, 0)
#elif KMEANDER_LANES == 4
#define KMEANDER_EXCHANGES(step, v) step(v, 1, 0, 3, 2) step(v, 2, 3, 0, 1)
#endif

inline Vec least(Vec a, Vec b) { return a < b ? a : b; }

// The least of all lanes, in every lane.
inline Vec least_lane(Vec v) {
#define KMEANDER_STEP(v, ...) v = least(v, __builtin_shufflevector(v, v, __VA_ARGS__));
    KMEANDER_EXCHANGES(KMEANDER_STEP, v)
#undef KMEANDER_STEP
    return v;
}

typedef float Floats __attribute__((vector_size(KMEANDER_FLOATS * 4)));
typedef std::int32_t Ints __attribute__((vector_size(KMEANDER_FLOATS * 4)));
constexpr std::size_t kFloats = KMEANDER_FLOATS;

inline Floats load_floats(const float *from) {
    Floats value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

#if KMEANDER_FLOATS == 8
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

// Write first, first + 1, ... of the lanes that are set to `found`, which has room for kFloats;
// returns how many those are. Without a branch: one in ten or so is set, which no processor
// foresees.
inline std::size_t list_lanes(const Ints &flags, std::size_t first, std::uint32_t *found) {
    const int number = static_cast<int>(first);
#if KMEANDER_FLOATS == 16
    const __mmask16 lanes = _mm512_movepi32_mask((__m512i)flags);
    const __m512i all =
        _mm512_add_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(number));
    const __m512i here = _mm512_maskz_compress_epi32(lanes, all);
    __builtin_memcpy(found, &here, sizeof here);
    return static_cast<std::size_t>(__builtin_popcount(lanes));
#elif KMEANDER_FLOATS == 8
    const unsigned lanes = static_cast<unsigned>(_mm256_movemask_ps((__m256)flags));
    const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(kLanesOf.bytes[lanes]));
    const __m256i here = _mm256_add_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(number));
    __builtin_memcpy(found, &here, sizeof here);
    return static_cast<std::size_t>(__builtin_popcount(lanes));
#else
    std::size_t n_found = 0;
    for (int l = 0; l < static_cast<int>(kFloats); ++l) {
        found[n_found] = static_cast<std::uint32_t>(number + l);
        n_found += flags[l] != 0;
    }
    return n_found;
#endif
}

inline std::size_t count_lanes(const Ints &flags) {
#if KMEANDER_FLOATS == 16
    return static_cast<std::size_t>(__builtin_popcount(_mm512_movepi32_mask((__m512i)flags)));
#elif KMEANDER_FLOATS == 8
    return static_cast<std::size_t>(
        __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps((__m256)flags))));
#else
    std::size_t n_set = 0;
    for (std::size_t l = 0; l < kFloats; ++l) n_set += flags[l] != 0;
    return n_set;
#endif
}

// A table in memory: entries for kFloats indices at once.
struct Table {
    const float *entries;

    explicit Table(const float *from, std::size_t = 0) : entries(from) {}

    template <class Integer>
    Floats at(const Integer *indices) const {
#if KMEANDER_FLOATS == 16
        // All lanes, by mask: without one, GCC warns of the lanes that are left as they were.
        const __mmask16 all = 0xFFFF;
        return (Floats)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), all,
                                                _mm512_loadu_si512(indices), entries, 4);
#elif KMEANDER_FLOATS == 8
        __m256i where;
        __builtin_memcpy(&where, indices, sizeof where);
        return (Floats)_mm256_i32gather_ps(entries, where, 4);
#else
        Floats value = {};
        for (std::size_t l = 0; l < kFloats; ++l) value[l] = entries[indices[l]];
        return value;
#endif
    }
};

#if KMEANDER_FLOATS >= 8
// A table of so few entries that registers hold it: a gather asks the cache for each of them.
constexpr std::size_t kFewEntries = 32;

struct FewEntries {
    Floats parts[kFewEntries / kFloats];

    FewEntries(const float *from, std::size_t count) : parts() {
        __builtin_memcpy(parts, from, count * sizeof *from);
    }

    template <class Integer>
    Floats at(const Integer *indices) const {
#if KMEANDER_FLOATS == 16
        return (Floats)_mm512_permutex2var_ps((__m512)parts[0], _mm512_loadu_si512(indices),
                                              (__m512)parts[1]);
#else
        __m256i where;
        __builtin_memcpy(&where, indices, sizeof where);
        const auto part = [&](int p) { return _mm256_permutevar8x32_ps((__m256)parts[p], where); };
        // The fourth bit of an index, and the fifth, where a blend looks for it.
        const __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(where, 28));
        const __m256 later = _mm256_castsi256_ps(_mm256_slli_epi32(where, 27));
        return (Floats)_mm256_blendv_ps(_mm256_blendv_ps(part(0), part(1), upper),
                                        _mm256_blendv_ps(part(2), part(3), upper), later);
#endif
    }
};

#endif

template <class T>
struct KindOf {
    typedef T Type;
};

// Call run with the kind of table that holds `count` entries best, as KindOf<Table>.
template <class Run>
inline auto with_table_of(std::size_t count, const Run &run) {
#if KMEANDER_FLOATS >= 8
    if (count <= kFewEntries) return run(KindOf<FewEntries>());
#endif
    (void)count;
    return run(KindOf<Table>());
}

}  // namespace
}  // namespace kmeander
