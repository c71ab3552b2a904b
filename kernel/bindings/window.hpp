// What the files of the border share that work on remembered batches and divisions of them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "kmeans/partition.hpp"

namespace border {

// A batch in memory: the arrays are kept alive as long as it is.
struct Remembered {
    Points points;
    std::optional<Weights> weights;
    kmeander::PointsView rows;
    const double *shares;  // the weights, or null
    double mass;           // weight of all points

    Remembered(Points given, std::optional<Weights> given_weights, double mass)
        : points(std::move(given)),
          weights(std::move(given_weights)),
          rows(rows_of(points)),
          shares(data_or_null(weights, rows.count)),
          mass(mass) {
        need_rows(rows, rows.columns);
    }
};

// Batches in order of arrival, one aged t weighing rho**t. They are kept alive; nothing is ever
// changed.
class Window {
public:
    Window(nb::tuple batches, const std::vector<double> &ages, double rho);

    std::size_t size() const { return batches_.size(); }
    const Remembered &operator[](std::size_t b) const { return *batches_[b]; }
    const Remembered &back() const { return *batches_.back(); }
    const double *decay() const { return decay_.data(); }  // what each batch weighs
    std::size_t n_points() const { return n_points_; }
    double mass() const { return mass_; }  // decayed
    // Points of equal weight whose mean would scatter as the decayed mean of these.
    double n_effective() const { return n_effective_; }
    bool has_weights() const { return has_weights_; }

    // Refuse to work on it with centroids in d columns; returns the number of points.
    std::size_t need_columns(std::size_t d) const {
        need(size() > 0, "no batches");
        for (const Remembered *batch : batches_) need_rows(batch->rows, d);
        return n_points_;
    }

private:
    nb::tuple held_;
    std::vector<const Remembered *> batches_;
    std::vector<double> decay_;
    std::size_t n_points_ = 0;
    double mass_ = 0.0, n_effective_ = 0.0;
    bool has_weights_ = false;
};

// Labels of the last points that a division knows: batches before them may have gone.
inline const std::int32_t *last_labels(const kmeander::Division &division, std::size_t n_points,
                                       std::size_t k) {
    const kmeander::Buffer<std::int32_t> &labels = division.points->labels;
    need(labels.size() >= n_points, "labels and points differ in length");
    const std::int32_t *end = labels.data() + labels.size();
    need(are_labels(end - n_points, end, k), "labels of no cluster");
    return end - n_points;
}

// What only reads a division.
void define_reading(nb::module_ &module);

}  // namespace border
