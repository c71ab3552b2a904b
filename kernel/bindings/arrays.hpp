// Arrays as Python hands them over, and their checks.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <span>
#include <variant>

#include "kmeans/checks.hpp"
#include "parallel/interruption.hpp"
#include "simd/instruction_set.hpp"

namespace bindings {

namespace nb = nanobind;
using kmeander::need;

using Float64Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Float32Rows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Points = std::variant<Float64Rows, Float32Rows>;
using Centroids = Float64Rows;
using Weights = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using In3 = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// An array that Python may read; it keeps its owner alive.
template <class T>
using Shown = nb::ndarray<nb::numpy, const T>;

template <class T>
Shown<T> shown(const T *data, std::initializer_list<std::size_t> shape, nb::handle owner) {
    return Shown<T>(data, shape, owner);
}

// While it lives the GIL is released, and the kernel asks whether there was a signal: Ctrl-C, or
// another whose handler raises. `register_interruption` then lets what it raised reach the caller.
class Released {
public:
    Released() : interruptible_(&signalled) {}

private:
    static bool signalled() {
        const nb::gil_scoped_acquire acquire;
        return PyErr_CheckSignals() != 0;
    }

    const kmeander::Interruptible interruptible_;
    const nb::gil_scoped_release release_;
};

inline void register_interruption() {
    nb::register_exception_translator([](const std::exception_ptr &thrown, void *) {
        try {
            std::rethrow_exception(thrown);
        } catch (const kmeander::Interrupted &) {
            // The handler's exception is set already.
        }
    });
}

template <class T>
const T *aligned(const T *data) {
    need(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0, "an array is not aligned");
    return data;
}

template <class Array>
auto span_of(const Array &array) {
    return std::span(aligned(array.data()), array.size());
}

inline kmeander::PointsView view_of(const Points &points) {
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

}  // namespace bindings
