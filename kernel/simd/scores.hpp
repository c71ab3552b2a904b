// Scores of rows in cells, and statistics beside their noise. For loops.cpp alone.
#pragma once

#include "simd/sums.hpp"

namespace kmeander {
namespace {

inline Vec splat(double value) { return value - Vec{}; }

void add_scores(const PointsView &rows, const double *weights, double unit,
                const std::int32_t *labels, const double *centres, const double *inverse,
                double clip, std::size_t k, double *room, double *sums, double *far) {
    const std::size_t d = rows.columns, lanes = kLanes;
    const Vec high = splat(clip), low = -high;
    for (std::size_t i = 0; i < rows.count; ++i) {
        const std::size_t c = static_cast<std::size_t>(labels[i]);
        const double weight = weights == nullptr ? unit : unit * weights[i];
        // In one loop for both types: another would be free to round otherwise.
        const double *x = room;
        if (rows.is_float32)
            widen(rows, i, room);
        else
            x = row<double>(rows, i);
        const double *__restrict centre = centres + c * d, *__restrict scale = inverse + c * d;
        double *__restrict score_sums = sums + 4 * k + c * d;
        double *__restrict square_sums = score_sums + k * d;
        Vec clipped_squares = {}, squares = {};
        std::size_t j = 0;
        for (; j + lanes <= d; j += lanes) {
            const Vec score = (load(x + j) - load(centre + j)) * load(scale + j);
            const Vec below = score < high ? score : high;
            const Vec clipped = below > low ? below : low;
            const Vec square = clipped * clipped;
            store(score_sums + j, load(score_sums + j) + weight * clipped);
            store(square_sums + j, load(square_sums + j) + weight * square);
            clipped_squares += square;
            squares += score * score;
        }
        double spread = 0.0, distance = 0.0;
        for (int l = 0; l < kLanes; ++l) {
            spread += clipped_squares[l];
            distance += squares[l];
        }
        for (; j < d; ++j) {
            const double score = (x[j] - centre[j]) * scale[j];
            const double below = score < clip ? score : clip;
            const double clipped = below > -clip ? below : -clip;
            score_sums[j] += weight * clipped;
            square_sums[j] += weight * clipped * clipped;
            spread += clipped * clipped;
            distance += score * score;
        }
        spread /= static_cast<double>(d);
        sums[c] += weight;
        sums[k + c] += weight * weight;
        sums[2 * k + c] += weight * spread;
        sums[3 * k + c] += weight * spread * spread;
        far[i] = distance / static_cast<double>(d);
    }
}

// Logarithms of numbers of at least 1, to ten digits: mantissa by a series, exponent from the bits.
inline Vec log_of(Vec value) {
    const Index bits = (Index)value;
    Index exponent = (bits >> 52) - 1023;
    Vec mantissa = (Vec)((bits & 0x000FFFFFFFFFFFFFLL) | 0x3FF0000000000000LL);
    const Index large = mantissa > 1.4142135623730951;
    mantissa = large ? 0.5 * mantissa : mantissa;
    exponent = exponent - large;  // a true comparison is -1
    // Small integers as doubles: added to the bits of 1.5 * 2**52, they are its last digits.
    const Vec whole = (Vec)(exponent + 0x4338000000000000LL) - 6755399441055744.0;
    const Vec s = (mantissa - 1.0) / (mantissa + 1.0), t = s * s;
    const Vec series =
        1.0 + t * (1.0 / 3 + t * (1.0 / 5 + t * (1.0 / 7 + t * (1.0 / 9 + t * (1.0 / 11)))));
    return 0.6931471805599453 * whole + 2.0 * s * series;
}

// One register of statistics; see `judge` in instruction_set.hpp.
inline Vec judge_some(const NoiseRule &rule, Vec squares, double doubt_of_rows, Vec long_sums,
                      Vec long_counts, Vec &sums, Vec &counts) {
    const Vec drawn = (sums + rule.prior_sum) / (counts + rule.prior_count);
    const Vec learned = drawn > 1.0 ? drawn : splat(1.0);
    const Vec noise = 1.0 + (learned - 1.0) * rule.rows;
    // Noise that lasts adds up over batches: the fewer of them have brought something new.
    const Vec lasting = (long_sums + rule.long_sum) / (long_counts + rule.long_count);
    const Vec most_lasting = lasting > learned ? lasting / learned : splat(1.0);
    const Vec doubt =
        1.0 / (rule.prior_freedom + counts * rule.per_batch / most_lasting) + noise * doubt_of_rows;
    const Vec scale = (8.0 + doubt) / (8.0 + 3.0 * doubt);
    const Vec most = rule.cap * noise;
    sums = rule.kept * sums + (squares < most ? squares : most);
    counts = rule.kept * counts + 1.0;
    return scale * scale * log_of(1.0 + squares / noise * doubt) / doubt;
}

void judge(const NoiseRule &rule, const double *squares, std::size_t count, double rows,
           double *sums, double *counts, const double *long_sums, const double *long_counts,
           double *deviates) {
    const double doubt_of_rows = 1.0 / (4.0 * (rows > 1.0 ? rows : 1.0));
    const std::size_t lanes = kLanes;
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        Vec sum = load(sums + i), number = load(counts + i);
        store(deviates + i, judge_some(rule, load(squares + i), doubt_of_rows, load(long_sums + i),
                                       load(long_counts + i), sum, number));
        store(sums + i, sum);
        store(counts + i, number);
    }
    if (i == count) return;
    const std::size_t rest = (count - i) * sizeof(double);
    Vec square = {}, sum = {}, number = {}, long_sum = {}, long_number = {};
    __builtin_memcpy(&square, squares + i, rest);
    __builtin_memcpy(&sum, sums + i, rest);
    __builtin_memcpy(&number, counts + i, rest);
    __builtin_memcpy(&long_sum, long_sums + i, rest);
    __builtin_memcpy(&long_number, long_counts + i, rest);
    const Vec deviate = judge_some(rule, square, doubt_of_rows, long_sum, long_number, sum, number);
    __builtin_memcpy(deviates + i, &deviate, rest);
    __builtin_memcpy(sums + i, &sum, rest);
    __builtin_memcpy(counts + i, &number, rest);
}

}  // namespace
}  // namespace kmeander
