// Power iteration: the direction in which weighted rows vary most. For loops.cpp alone.
#pragma once

#include "simd/vectors.hpp"

namespace kmeander {
namespace {

inline void store_four(const Four &values, double *to) {
    __builtin_memcpy(to, &values, sizeof values);
}

// Add four rows to `sums`, each times its factor.
inline void add_four_scaled(const double *rows, std::size_t width, const Four &factors,
                            double *sums) {
    for (std::size_t j = 0; j < width; j += 4) {
        const Four one =
            factors[0] * load_four(rows + j) + factors[1] * load_four(rows + width + j);
        const Four other = factors[2] * load_four(rows + 2 * width + j) +
                           factors[3] * load_four(rows + 3 * width + j);
        store_four(load_four(sums + j) + (one + other), sums + j);
    }
}

// Products of four rows with `direction`.
inline Four four_products(const double *rows, std::size_t width, const double *direction) {
    Four parts[4] = {};
    for (std::size_t j = 0; j < width; j += 4) {
        const Four values = load_four(direction + j);
        for (std::size_t r = 0; r < 4; ++r)
            parts[r] = parts[r] + load_four(rows + r * width + j) * values;
    }
    const Four low = __builtin_shufflevector(parts[0], parts[1], 0, 4, 2, 6);
    const Four high = __builtin_shufflevector(parts[0], parts[1], 1, 5, 3, 7);
    const Four low2 = __builtin_shufflevector(parts[2], parts[3], 0, 4, 2, 6);
    const Four high2 = __builtin_shufflevector(parts[2], parts[3], 1, 5, 3, 7);
    const Four pair = low + high, pair2 = low2 + high2;  // halves of the first two, of the others
    return __builtin_shufflevector(pair, pair2, 0, 1, 4, 5) +
           __builtin_shufflevector(pair, pair2, 2, 3, 6, 7);
}

void find_direction(double *rows, const double *weights, std::size_t count, std::size_t width,
                    std::size_t n_steps, double *__restrict direction, double *__restrict scratch) {
    const auto clear = [width](double *values) {
        __builtin_memset(values, 0, width * sizeof *values);
    };
    clear(scratch);
    for (std::size_t i = 0; i < count; i += 4)
        add_four_scaled(rows + i * width, width, load_four(weights + i), scratch);
    clear(direction);
    for (std::size_t i = 0; i < count; ++i) {
        double *row = rows + i * width;
        for (std::size_t j = 0; j < width; j += 4) {
            const Four gap = load_four(row + j) - load_four(scratch + j);
            store_four(gap, row + j);
            store_four(load_four(direction + j) + weights[i] * gap * gap, direction + j);
        }
    }
    std::size_t widest = 0;
    for (std::size_t j = 1; j < width; ++j)
        if (direction[j] > direction[widest]) widest = j;
    const bool varies = direction[widest] > 0.0;
    clear(direction);
    if (!varies) return;
    for (std::size_t step = 0; step < n_steps; ++step) {
        clear(scratch);
        for (std::size_t i = 0; i < count; i += 4) {
            const double *four = rows + i * width, *column = four + widest;
            // The first step multiplies by the axis of the widest column.
            const Four along =
                step == 0 ? Four{column[0], column[width], column[2 * width], column[3 * width]}
                          : four_products(four, width, direction);
            add_four_scaled(four, width, load_four(weights + i) * along, scratch);
        }
        double largest = 0.0;
        for (std::size_t j = 0; j < width; ++j) {
            const double size = __builtin_fabs(scratch[j]);
            largest = size > largest ? size : largest;
        }
        // Only its direction matters; scaled so that nothing overflows.
        for (std::size_t j = 0; j < width; ++j)
            direction[j] = largest > 0.0 ? scratch[j] / largest : 0.0;
    }
}

}  // namespace
}  // namespace kmeander
