// What the files of the border share that work on remembered batches and divisions of them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "division.hpp"

namespace border {

// A batch in memory: the arrays are kept alive as long as it is.
struct Remembered {
    Points points;
    std::optional<Weights> weights;
    kmeander::Rows rows;
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
using Window = std::vector<const Remembered *>;

inline std::size_t count_points(const Window &window, std::size_t d) {
    need(!window.empty(), "no batches");
    std::size_t n_points = 0;
    for (const Remembered *batch : window) {
        need(batch != nullptr, "no batches");
        need_rows(batch->rows, d);
        n_points += batch->rows.count;
    }
    return n_points;
}

// Labels of the last points that a division knows: batches before them may have gone.
inline const std::int32_t *last_labels(const kmeander::Division &division, std::size_t n_points, std::size_t k) {
    const kmeander::Buffer<std::int32_t> &labels = division.points->labels;
    need(labels.size() >= n_points, "labels and points differ in length");
    const std::int32_t *end = labels.data() + labels.size();
    need(are_labels(end - n_points, end, k), "labels of no cluster");
    return end - n_points;
}

// What only reads a division.
void define_reading(nb::module_ &module);

}  // namespace border
