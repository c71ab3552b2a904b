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
constexpr double kFirstShrinkage = 20.0;
constexpr double kLeastShrinkage = 4.0, kMostShrinkage = 100.0;
// Batches from which it is known, and from which what was known a dozen batches ago will do.
constexpr double kBatchesToCompare = 10.0, kBatchesToLookBack = 18.0;

// Degrees of freedom of a family's noise before its first batch.
constexpr double kFirstFreedom = 6.0;

// Batches, in units of the scale, for which the noise of the next smaller scale counts.
constexpr double kScalePrior = 2.0;

}  // namespace

double normal_from_student(double squared, double freedom) {
    const double scale = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0);
    return scale * std::sqrt(freedom * std::log1p(squared / freedom));
}

BatchNoise::BatchNoise(std::size_t size, const double *squares, const double *counts,
                       const double *of_family)
    : size_(size),
      squares_(squares, squares + kScales * size),
      counts_(counts, counts + kScales * size) {
    for (std::size_t i = 0; i < of_family_.size(); ++i)
        std::copy_n(of_family + i * kScales, kScales, of_family_[i].begin());
}

void BatchNoise::begin_batch() {
    const auto begun = of_family_.begin() + kBegun;
    std::shift_right(begun, of_family_.end(), 1);
    for (std::size_t scale = 0; scale < kScales; ++scale) (*begun)[scale] = family_noise(scale);
    for (std::size_t scale = 0; scale < kScales; ++scale) {
        const bool looks_back = n_batches(0) >= kBatchesToLookBack;
        const std::size_t ago = looks_back ? kScaleBatches[scale] - 1 : 0;
        families_[scale] = of_family_[kBegun + ago][scale];
    }
}

double BatchNoise::family_noise(std::size_t scale) const {
    double sum = of_family_[kForgottenSquares][scale], count = of_family_[kForgottenCounts][scale];
    for (std::size_t i = 0; i < size_; ++i) {
        sum += squares_[scale * size_ + i];
        count += counts_[scale * size_ + i];
    }
    const double before = scale == 0 ? 1.0 : of_family_[kBegun][scale - 1];
    const double weight = kScalePrior * static_cast<double>(kScaleBatches[scale]);
    const double own = count > 0.0 ? sum / count : 1.0;
    return (n_batches(scale) * own + weight * before) / (n_batches(scale) + weight);
}

double BatchNoise::shrinkage() const {
    const double n = n_batches(0);
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

void BatchNoise::begin(std::size_t scale, double rows) {
    scale_ = scale;
    has_judged_ = false;
    const double batches = static_cast<double>(kScaleBatches[scale]);
    const double shrunk_by = n_batches(0) >= kBatchesToCompare ? shrinkage() : kFirstShrinkage;
    const double alike = std::sqrt(static_cast<double>(size_)) * n_batches(scale) / batches;
    const double longest = static_cast<double>(kScaleBatches.back());
    rule_ = {.prior_sum = shrunk_by * batches * families_[scale],
             .prior_count = shrunk_by * batches,
             .prior_freedom = std::min(shrunk_by, freedom(kFirstFreedom + alike)),
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
    if (!has_judged_) return;
    for (const std::size_t number : {kBatches, kForgottenSquares, kForgottenCounts})
        of_family_[number][scale_] *= 1.0 - 1.0 / kMemory;
    of_family_[kBatches][scale_] += 1.0;
}

double BatchNoise::doubt(double rows) const {
    const double noise = 1.0 + (std::max(families_[scale_], 1.0) - 1.0) * rule_.rows;
    return noise / (4.0 * std::max(rows, 1.0));
}

double BatchNoise::freedom(double of_excess) const {
    // Nobody knows the excess better than to its own chance.
    const double excess = std::max(families_[scale_] - 1.0, std::sqrt(2.0 / of_excess));
    const double times = (1.0 + excess) / excess;
    return of_excess * times * times;
}

void BatchNoise::forget(std::size_t i) {
    for (std::size_t scale = 0; scale < kScales; ++scale) {
        double &square = squares_[scale * size_ + i], &count = counts_[scale * size_ + i];
        of_family_[kForgottenSquares][scale] += square;
        of_family_[kForgottenCounts][scale] += count;
        square = count = 0.0;
    }
}

}  // namespace kmeander
