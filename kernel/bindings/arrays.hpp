// What the files of the border share: arrays as Python hands them over.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>

#include "simd/instruction_set.hpp"

namespace border {

namespace nb = nanobind;

using Float64Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Float32Rows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Points = std::variant<Float64Rows, Float32Rows>;
using Centroids = Float64Rows;
using Weights = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void need(bool fits, const char *what) {
    if (!fits) throw std::invalid_argument(std::string("kernel: ") + what);
}

template <class T>
const T *aligned(const T *data) {
    need(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0, "an array is not aligned");
    return data;
}

inline kmeander::PointsView rows_of(const Points &points) {
    if (const auto *wide = std::get_if<Float64Rows>(&points))
        return {aligned(wide->data()), false, wide->shape(0), wide->shape(1)};
    const auto &narrow = std::get<Float32Rows>(points);
    return {aligned(narrow.data()), true, narrow.shape(0), narrow.shape(1)};
}

inline void need_rows(const kmeander::PointsView &rows, std::size_t columns) {
    need(rows.count > 0 && columns > 0, "no points");
    need(rows.columns == columns, "points and centroids differ in columns");
}

inline const double *data_or_null(const std::optional<Weights> &weights, std::size_t count) {
    if (!weights) return nullptr;
    need(weights->shape(0) == count, "weights and points differ in length");
    return aligned(weights->data());
}

// A label outside the clusters would be followed out of the arrays.
inline bool are_labels(const std::int32_t *begin, const std::int32_t *end, std::size_t k) {
    bool all = true;  // without a way out, so that many are looked at at once
    for (const std::int32_t *label = begin; label < end; ++label)
        all &= static_cast<std::uint32_t>(*label) < static_cast<std::uint32_t>(k);
    return all;
}

// What works on remembered batches and divisions of them.
void define_window(nb::module_ &module);

}  // namespace border
