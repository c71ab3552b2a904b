// Comparing and moving bounds of distances, many at once. For inner_loops.cpp alone.
#pragma once

#include "inner_vectors.hpp"

namespace kmeander {
namespace {

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

std::size_t members(const std::int32_t *labels, const float *marks, std::size_t count,
                    std::uint32_t *found) {
    return flagged(
        count, found, [=](std::size_t i) { return look_up(marks, labels + i) != 0.0F; },
        [=](std::size_t i) { return marks[labels[i]] != 0.0F; });
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

}  // namespace
}  // namespace kmeander
