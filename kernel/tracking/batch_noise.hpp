// Noise between batches: how much more statistics vary from batch to batch than independent rows
// would make them vary, learned from the stream itself.
//
// A statistic is a z: a difference over its standard deviation if rows were independent. Where
// they are not, its square is D in the mean, not 1; D is the design effect of survey statistics.
// Each statistic learns its own, and is drawn towards those of its family as far as these agree
// with one another (empirical Bayes); those of long spans are drawn towards those of short ones.
// A family does not forget what its statistics have shown when another cluster takes a cell.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "simd/instruction_set.hpp"

namespace kmeander {

// The last batches that are compared with those before them: in one, a few, and a dozen.
constexpr std::size_t kScales = 3;
constexpr std::array<std::size_t, kScales> kScaleBatches = {1, 4, 12};

// Student's t with that freedom, squared, as the normal deviate that is as rare (Wallace 1959).
double normal_from_student(double squared, double freedom);

// What each statistic of one family has shown so far: a family is the shares, the places or the
// spreads of all cells.
class BatchNoise {
public:
    explicit BatchNoise(std::size_t size)
        : size_(size), squares_(kScales * size), counts_(kScales * size) {}
    BatchNoise(std::size_t size, const double *squares, const double *counts,
               const double *of_family);

    // Another batch begins: what the family has shown before the batches of each scale is what
    // these are judged beside, so that a change does not hide itself.
    void begin_batch();

    // Get ready to judge the statistics of one scale. `rows` is how many times the usual rows its
    // batches have: with more rows the noise between batches counts for more.
    void begin(std::size_t scale, double rows);

    // The squares of the normal deviates that are as rare as those of the statistics [first, first
    // + count), whose `squares` are given, are beside their noise; learn these. `rows` is the
    // number of rows that they are about.
    void judge(std::size_t first, std::size_t count, const double *squares, double rows,
               double *deviates);

    void end();

    // One over the degrees of freedom that a statistic about so many rows has at most: of few rows
    // that count nobody knows the distribution.
    double doubt(double rows) const;

    // Degrees of freedom of a design effect, of which only the part beyond 1 is learned, from what
    // gives that part so many.
    double freedom(double of_excess) const;

    // The statistic forgets what it has learned; a new cluster took the place of an old one.
    void forget(std::size_t i);

    // The design effect of the family in single batches.
    double usual() const { return family_noise(0); }
    // And over the longest span, before the present batch.
    double lasting() const { return of_family_[kBegun].back(); }
    double n_batches(std::size_t scale) const { return of_family_[kBatches][scale]; }

    std::size_t size() const { return size_; }
    const std::vector<double> &squares() const { return squares_; }
    const std::vector<double> &counts() const { return counts_; }
    // By scale: batches, squares and counts that were forgotten, the design effect at the beginning
    // of each of the last batches.
    static constexpr std::size_t kNumbersOfFamily = 3 + kScaleBatches.back();
    using OfFamily = std::array<std::array<double, kScales>, kNumbersOfFamily>;
    const OfFamily &of_family() const { return of_family_; }

private:
    enum : std::size_t { kBatches, kForgottenSquares, kForgottenCounts, kBegun };

    double family_noise(std::size_t scale) const;
    // Batches for which the family counts: many if its statistics are alike.
    double shrinkage() const;

    std::size_t size_;
    std::vector<double> squares_, counts_;  // (scales, size), both forgetting
    OfFamily of_family_{};
    std::array<double, kScales> families_ = {1.0, 1.0, 1.0};  // that the batch is judged beside

    std::size_t scale_ = 0;  // that is judged
    NoiseRule rule_{};
    bool has_judged_ = false;
};

}  // namespace kmeander
