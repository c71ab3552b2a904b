// Compiled once per instruction set, with KMEANDER_SET (its name) and KMEANDER_LANES set.
//
// No standard header with inline functions is included: the linker would keep one copy
// of such a function for the whole module, and it might be the one that needs AVX2.
#include "instruction_set.hpp"

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

const double *widened(const double *values, std::size_t, double *) { return values; }

const double *widened(const float *values, std::size_t count, double *scratch) {
    for (std::size_t i = 0; i < count; ++i) scratch[i] = values[i];
    return scratch;
}

// Points x (P of them) against B blocks of centroids: P * B sums stay in registers.
template <int P, int B>
inline void tile(const double *x, std::size_t d, const double *blocks, Index first, Vec *best,
                 Index *where) {
    Vec sums[P][B] = {};
    for (std::size_t j = 0; j < d; ++j) {
        Vec centroids[B];
        for (int b = 0; b < B; ++b) centroids[b] = load(blocks + (b * d + j) * kLanes);
        for (int p = 0; p < P; ++p) {
            const double value = x[p * d + j];
            for (int b = 0; b < B; ++b) {
                const Vec difference = value - centroids[b];
                sums[p][b] = sums[p][b] + difference * difference;
            }
        }
    }
    for (int p = 0; p < P; ++p) {
        for (int b = 0; b < B; ++b) {
            const Index closer = sums[p][b] < best[p];
            best[p] = closer ? sums[p][b] : best[p];
            where[p] = closer ? first + b * kLanes : where[p];
        }
    }
}

template <int P, int B>
inline void sweep(const double *x, std::size_t count, std::size_t d, const double *blocks,
                  Index first, Vec *best, Index *where) {
    std::size_t i = 0;
    for (; i + P <= count; i += P) tile<P, B>(x + i * d, d, blocks, first, best + i, where + i);
    for (; i < count; ++i) tile<1, B>(x + i * d, d, blocks, first, best + i, where + i);
}

template <class T>
void nearest_of(const Rows &rows, std::size_t begin, std::size_t end, const double *blocks,
                std::size_t n_blocks, double *scratch, std::int32_t *labels, double *squared) {
    const std::size_t d = rows.columns;
    const double infinity = __builtin_inf();
    Index lane_index = {};
    for (int l = 0; l < kLanes; ++l) lane_index[l] = l;
    for (std::size_t start = begin; start < end; start += kGroupRows) {
        const std::size_t count = end - start < kGroupRows ? end - start : kGroupRows;
        const double *x = widened(row<T>(rows, start), count * d, scratch);
        Vec best[kGroupRows];
        Index where[kGroupRows];
        for (std::size_t i = 0; i < count; ++i) {
            best[i] = infinity - Vec{};
            where[i] = lane_index;
        }
        std::size_t b = 0;
        for (; b + 2 <= n_blocks; b += 2) {
            const Index first = lane_index + static_cast<std::int64_t>(b) * kLanes;
            sweep<4, 2>(x, count, d, blocks + b * d * kLanes, first, best, where);
        }
        if (b < n_blocks) {
            const Index first = lane_index + static_cast<std::int64_t>(b) * kLanes;
            sweep<8, 1>(x, count, d, blocks + b * d * kLanes, first, best, where);
        }
        for (std::size_t i = 0; i < count; ++i) {
            double distance = best[i][0];
            std::int64_t label = where[i][0];
            for (int l = 1; l < kLanes; ++l) {
                if (best[i][l] < distance || (best[i][l] == distance && where[i][l] < label)) {
                    distance = best[i][l];
                    label = where[i][l];
                }
            }
            labels[start - begin + i] = static_cast<std::int32_t>(label);
            squared[start - begin + i] = distance;
        }
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
void add_rows_of(const Rows &rows, std::size_t begin, std::size_t end, std::size_t first,
                 std::size_t last, const double *weights, const std::int32_t *labels,
                 double *sums) {
    const std::size_t d = rows.columns;
    for (std::size_t i = begin; i < end; ++i) {
        const T *x = row<T>(rows, i);
        double *sum = sums + static_cast<std::size_t>(labels[i]) * d;
        if (weights == nullptr) {
            for (std::size_t j = first; j < last; ++j) sum[j] += x[j];
        } else {
            const double weight = weights[i];
            for (std::size_t j = first; j < last; ++j) sum[j] = sum[j] + weight * x[j];
        }
    }
}

void nearest(const Rows &rows, std::size_t begin, std::size_t end, const double *blocks,
             std::size_t n_blocks, double *scratch, std::int32_t *labels, double *squared) {
    const auto run = rows.is_float32 ? nearest_of<float> : nearest_of<double>;
    run(rows, begin, end, blocks, n_blocks, scratch, labels, squared);
}

void squared_to(const Rows &rows, std::size_t begin, std::size_t end, const double *point,
                double *squared) {
    const auto run = rows.is_float32 ? squared_to_of<float> : squared_to_of<double>;
    run(rows, begin, end, point, squared);
}

void add_rows(const Rows &rows, std::size_t begin, std::size_t end, std::size_t first,
              std::size_t last, const double *weights, const std::int32_t *labels, double *sums) {
    const auto run = rows.is_float32 ? add_rows_of<float> : add_rows_of<double>;
    run(rows, begin, end, first, last, weights, labels, sums);
}

}  // namespace

extern const InstructionSet KMEANDER_SET;
const InstructionSet KMEANDER_SET = {KMEANDER_SET_NAME, kLanes, nearest, squared_to, add_rows};

}  // namespace kmeander
