// Noise between batches: sums of squares, and what a statistic means beside them.
#include "tracking/batch_noise.hpp"

#include <algorithm>
#include <cmath>

namespace kmeander {

namespace {

// Batches after which what a statistic has shown counts 1/e.
constexpr double kMemory = 300.0;

// A square counts at most as this many times its expectation: a true change must not teach that
// changes are usual.
constexpr double kCap = 9.0;

// Batches for which the family counts: until it is known, and at least and at most then.
constexpr double kFirstShrinkage = 30.0;
constexpr double kLeastShrinkage = 4.0, kMostShrinkage = 100.0;
// Batches from which it is known.
constexpr double kBatchesToCompare = 10.0;

// Degrees of freedom of a family's noise before its first batch.
constexpr double kFirstFreedom = 6.0, kEarlyFreedom = 14.0;

// Batches, in units of the scale, for which the noise of the next smaller scale counts.
constexpr double kScalePrior = 2.0;

}  // namespace

double normal_from_student(double squared, double freedom) {
    const double scale = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0);
    return scale * std::sqrt(freedom * std::log1p(squared / freedom));
}

BatchNoise::BatchNoise(std::size_t size, const double *squares, const double *counts,
                       const double *batches)
    : size_(size),
      squares_(squares, squares + kScales * size),
      counts_(counts, counts + kScales * size) {
    std::copy_n(batches, kScales, batches_.begin());
}

void BatchNoise::begin_batch() {
    for (std::size_t scale = 0; scale < kScales; ++scale) families_[scale] = family_noise(scale);
}

double BatchNoise::family_noise(std::size_t scale) const {
    double sum = 0.0, count = 0.0;
    for (std::size_t i = 0; i < size_; ++i) {
        sum += squares_[scale * size_ + i];
        count += counts_[scale * size_ + i];
    }
    const double before = scale == 0 ? 1.0 : families_[scale - 1];
    const double weight = kScalePrior * static_cast<double>(kScaleBatches[scale]);
    const double own = count > 0.0 ? sum / count : 1.0;
    return (batches_[scale] * own + weight * before) / (batches_[scale] + weight);
}

double BatchNoise::shrinkage() const {
    const double n = batches_[0];
    double sum = 0.0, count = 0.0;
    for (std::size_t i = 0; i < size_; ++i) {
        sum += squares_[i];
        count += counts_[i];
    }
    if (!(sum > 0.0)) return kMostShrinkage;
    const double mean = sum / count;
    double variance = 0.0, known = 0.0;
    for (std::size_t i = 0; i < size_; ++i) {
        if (counts_[i] <= 0.0) continue;
        const double off = squares_[i] / counts_[i] / mean - 1.0;
        variance += off * off;
        known += 1.0;
    }
    variance /= known;
    // The mean square of n normal deviates varies by 2 / n; what remains is that of the D.
    const double between =
        std::max(variance - 2.0 / n, 0.0) + 4.0 / n * std::sqrt(2.0 / static_cast<double>(size_));
    return std::clamp(2.0 / between, kLeastShrinkage, kMostShrinkage);
}

void BatchNoise::begin(std::size_t scale, double rows, bool is_early) {
    scale_ = scale;
    has_judged_ = false;
    const double batches = static_cast<double>(kScaleBatches[scale]);
    const double shrunk_by = batches_[0] >= kBatchesToCompare ? shrinkage() : kFirstShrinkage;
    const double alike = std::sqrt(static_cast<double>(size_)) * batches_[scale] / batches;
    const double longest = static_cast<double>(kScaleBatches.back());
    rule_ = {
        .prior_sum = shrunk_by * batches * families_[scale],
        .prior_count = shrunk_by * batches,
        .prior_freedom = std::min(shrunk_by, (is_early ? kEarlyFreedom : kFirstFreedom) + alike),
        .per_batch = 1.0 / batches,
        .long_sum = shrunk_by * longest * families_[kScales - 1],
        // Longer scales count their batches by blocks, which is enough.
        .long_count = scale == 0 ? shrunk_by * longest : HUGE_VAL,
        .rows = std::max(rows, 1.0),
        .cap = kCap,
        .kept = 1.0 - 1.0 / kMemory};
}

void BatchNoise::judge(std::size_t first, std::size_t count, const double *squares, double rows,
                       double *deviates) {
    has_judged_ = true;
    const std::size_t at = scale_ * size_ + first, longest = (kScales - 1) * size_ + first;
    instruction_set().judge(rule_, squares, count, rows, squares_.data() + at, counts_.data() + at,
                            squares_.data() + longest, counts_.data() + longest, deviates);
}

void BatchNoise::end() {
    if (has_judged_) batches_[scale_] = (1.0 - 1.0 / kMemory) * batches_[scale_] + 1.0;
}

void BatchNoise::forget(std::size_t i) {
    for (std::size_t scale = 0; scale < kScales; ++scale)
        squares_[scale * size_ + i] = counts_[scale * size_ + i] = 0.0;
}

}  // namespace kmeander
