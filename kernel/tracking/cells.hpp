// Cells: a partition that stands still while the centroids move, and the scores of rows in it.
//
// A chapter of a stream, from one change to the next, is looked at in one set of cells: the
// nearest of reference centroids, with the spread of each column in each cell. What a batch adds
// to them is then a series of the same quantities, whatever the model learns meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmeans/buffer.hpp"
#include "kmeans/partition.hpp"
#include "kmeans/window.hpp"

namespace kmeander {

// Sums over the rows of one batch or of several, by cell. Rows weigh 1 in the mean of their batch.
class ScoreSums {
public:
    ScoreSums(std::size_t k, std::size_t d) : k_(k), d_(d), values_(size_of(k, d)) {}
    ScoreSums(std::size_t k, std::size_t d, const double *values)
        : k_(k), d_(d), values_(values, values + size_of(k, d)) {}

    static std::size_t size_of(std::size_t k, std::size_t d) { return k * (2 * d + 4); }

    void clear() { values_.assign(values_.size(), 0.0); }
    // Add `share` times the rows of `other`.
    void add(const ScoreSums &other, double share = 1.0);
    // Let all rows count `share` of what they did.
    void decay(double share);

    double mass(std::size_t c) const { return values_[c]; }
    // Rows of equal weight whose mean would scatter as theirs (Kish).
    double rows(std::size_t c) const { return effective(values_[c], values_[k_ + c]); }
    double total_mass() const;
    double total_rows() const;

    // Of the mean squared scores of the rows.
    const double *spread(std::size_t c) const { return values_.data() + 2 * k_ + c; }
    const double *spread_squares(std::size_t c) const { return values_.data() + 3 * k_ + c; }
    const double *scores(std::size_t c) const { return values_.data() + 4 * k_ + c * d_; }
    const double *score_squares(std::size_t c) const { return scores(c) + k_ * d_; }

    const std::vector<double> &values() const { return values_; }
    double *values_to_add() { return values_.data(); }  // as `add_scores` wants them

private:
    static double effective(double mass, double squares) {
        return squares > 0.0 ? mass * mass / squares : 0.0;
    }

    std::size_t k_, d_;
    // Mass, squared weights, mean squared score and its square (k each), then the scores and their
    // squares (k, d each).
    std::vector<double> values_;
};

class Cells {
public:
    // Scores are clipped here: what a far row can do to a mean is bounded.
    static constexpr double kClip = 3.0;

    // Around `centroids`, with the spread of the rows of the window that `partition` puts to each.
    Cells(const DecayedWindow &window, const Partition &partition, const double *centroids,
          std::size_t k, std::size_t d);
    Cells(std::vector<double> centres, std::vector<double> inverse, std::size_t k, std::size_t d,
          double n_independent)
        : k_(k),
          d_(d),
          centres_(std::move(centres)),
          inverse_(std::move(inverse)),
          n_independent_(n_independent) {}

    std::size_t k() const { return k_; }
    std::size_t d() const { return d_; }
    const std::vector<double> &centres() const { return centres_; }
    // One over the standard deviation of each column in each cell.
    const std::vector<double> &inverse() const { return inverse_; }
    // Columns that would vary independently as much as these do together.
    double n_independent() const { return n_independent_; }

    // The cell of each row of a batch; `arrived` knows the row's distances to other centroids.
    std::vector<std::int32_t> assign(const BatchView &batch, const Partition &arrived) const;

    // Add the rows of a batch; the squared distance of each, in standard deviations and per
    // column, goes to `far`.
    void add(const BatchView &batch, const std::vector<std::int32_t> &labels, ScoreSums &sums,
             Buffer<double> &far) const;

private:
    void find_spread(const DecayedWindow &window, const std::int32_t *labels);
    void find_independent(const BatchView &batch, const std::int32_t *labels);

    std::size_t k_, d_;
    std::vector<double> centres_, inverse_;
    double n_independent_ = 1.0;
};

}  // namespace kmeander
