// Bounds of distances: comparing them with limits and moving them with the centroids. For loops.cpp
// alone.
#pragma once

#include "simd/vectors.hpp"

namespace kmeander {
namespace {

// List the points for which flag(i) is set, that of kFloats points from i on, or flag_one(i).
template <class Flag, class FlagOne>
inline std::size_t flagged(std::size_t count, std::uint32_t *found, const Flag &flag,
                           const FlagOne &flag_one) {
    std::size_t n_found = 0, i = 0;
    for (; i + kFloats <= count; i += kFloats) n_found += list_lanes(flag(i), i, found + n_found);
    for (; i < count; ++i) {
        found[n_found] = static_cast<std::uint32_t>(i);
        n_found += flag_one(i);
    }
    return n_found;
}

std::size_t find_undecided(const float *upper, const float *lower, const std::uint32_t *keys,
                           const float *margins, const float *uppers, std::size_t count,
                           std::uint32_t *found) {
    const Table limits(margins);
    // Bounds that are not numbers decide nothing.
    const std::size_t n_undecided = flagged(
        count, found,
        [=](std::size_t i) {
            const Floats u = load_floats(upper + i), l = load_floats(lower + i);
            return ~(l - u > limits.at(keys + i));
        },
        [=](std::size_t i) { return !(lower[i] - upper[i] > margins[keys[i]]); });
    // A look-up costs more than all the rest: the second for those few that need it.
    std::size_t n_found = 0;
    for (std::size_t f = 0; f < n_undecided; ++f) {
        const std::uint32_t i = found[f];
        found[n_found] = i;
        n_found += !(upper[i] < uppers[keys[i]]);
    }
    return n_found;
}

std::size_t find_active(const std::int32_t *labels, const float *upper, const float *lower,
                        const float *thresholds, std::size_t k, std::size_t count,
                        std::uint32_t *found) {
    return with_table_of(k, [=](auto kind) {
        const typename decltype(kind)::Type table(thresholds, k);
        return flagged(
            count, found,
            [&](std::size_t i) {
                const Floats u = load_floats(upper + i), l = load_floats(lower + i);
                return ~(l - u > table.at(labels + i));
            },
            [=](std::size_t i) { return !(lower[i] - upper[i] > thresholds[labels[i]]); });
    });
}

std::size_t count_undecided(const std::int32_t *labels, const float *upper, const float *lower,
                            const float *margins, const float *uppers, std::size_t k,
                            std::size_t count) {
    return with_table_of(k, [=](auto kind) {
        const typename decltype(kind)::Type margin(margins, k), limit(uppers, k);
        std::size_t n_undecided = 0, i = 0;
        for (; i + kFloats <= count; i += kFloats) {
            const Floats u = load_floats(upper + i), l = load_floats(lower + i);
            n_undecided +=
                count_lanes(~((l - u > margin.at(labels + i)) | (u < limit.at(labels + i))));
        }
        for (; i < count; ++i) {
            const float m = margins[labels[i]], u = uppers[labels[i]];
            n_undecided += !(lower[i] - upper[i] > m) && !(upper[i] < u);
        }
        return n_undecided;
    });
}

std::size_t list_marked(const std::int32_t *labels, const float *marks, std::size_t k,
                        std::size_t count, std::uint32_t *found) {
    return with_table_of(k, [=](auto kind) {
        const typename decltype(kind)::Type table(marks, k);
        return flagged(
            count, found, [&](std::size_t i) { return table.at(labels + i) != 0.0F; },
            [=](std::size_t i) { return marks[labels[i]] != 0.0F; });
    });
}

// With numbers or with vectors of them, as `rounded_up` and `rounded_down` are.
template <class Value>
inline void rebase_one(Value own, Value others, Value nearest_other, Value &upper, Value &lower) {
    const Value most = __FLT_MAX__ - Value{};
    upper = (upper + own) * (1.0F + 1e-6F) + __FLT_MIN__;
    const Value by_displacement = lower - others, by_gap = nearest_other - upper;
    const Value larger = by_gap > by_displacement ? by_gap : by_displacement;
    lower = (most < larger ? most : larger) * (1.0F - 1e-6F) - __FLT_MIN__;
}

void rebase(const std::int32_t *labels, std::size_t count, const float *own, const float *others,
            const float *nearest_other, std::size_t k, float *upper, float *lower) {
    with_table_of(k, [=](auto kind) {
        using Kind = typename decltype(kind)::Type;
        const Kind moved(own, k), moved_others(others, k), apart(nearest_other, k);
        std::size_t i = 0;
        for (; i + kFloats <= count; i += kFloats) {
            Floats u = load_floats(upper + i), l = load_floats(lower + i);
            const std::int32_t *which = labels + i;
            rebase_one(moved.at(which), moved_others.at(which), apart.at(which), u, l);
            __builtin_memcpy(upper + i, &u, sizeof u);
            __builtin_memcpy(lower + i, &l, sizeof l);
        }
        for (; i < count; ++i)
            rebase_one(own[labels[i]], others[labels[i]], nearest_other[labels[i]], upper[i],
                       lower[i]);
    });
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
            const Floats by_displacement = l - moved[b], by_gap = apart[b] - u;
            const Floats larger = by_gap > by_displacement ? by_gap : by_displacement;
            // Written so that what is not a number is taken, and decides nothing.
            bound = bound < larger ? bound : larger;
        }
        for (std::size_t i = 0; i < size; ++i) bounds[begin + i] = rounded_down(bound[i]);
    }
}

// Vectors of doubles, whose roots the processor takes together.
void bounds_above(const double *squared, std::size_t count, float *bounds) {
    for (std::size_t i = 0; i < count; ++i) bounds[i] = bound_above(squared[i]);
}

void bounds_below(const double *squared, std::size_t count, float *bounds) {
    for (std::size_t i = 0; i < count; ++i) bounds[i] = bound_below(squared[i]);
}

}  // namespace
}  // namespace kmeander
