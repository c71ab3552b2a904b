// The border: the one file that knows Python types.
//
// Shapes are checked by the callers in Python, once; here only what would read or write
// outside an array is refused. The GIL is released while the kernel works.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "assignment.hpp"
#include "lloyd.hpp"
#include "seeding.hpp"

namespace nb = nanobind;

namespace {

using Float64Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Float32Rows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Points = std::variant<Float64Rows, Float32Rows>;
using Centroids = Float64Rows;
using Weights = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void need(bool fits, const char *what) {
    if (!fits) throw std::invalid_argument(std::string("kernel: ") + what);
}

template <class T>
const T *aligned(const T *data) {
    need(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0, "an array is not aligned");
    return data;
}

kmeander::Rows rows_of(const Points &points) {
    if (const auto *wide = std::get_if<Float64Rows>(&points))
        return {aligned(wide->data()), false, wide->shape(0), wide->shape(1)};
    const auto &narrow = std::get<Float32Rows>(points);
    return {aligned(narrow.data()), true, narrow.shape(0), narrow.shape(1)};
}

void need_rows(const kmeander::Rows &rows, std::size_t columns) {
    need(rows.count > 0 && columns > 0, "no points");
    need(rows.columns == columns, "points and centroids differ in columns");
}

const double *data_or_null(const std::optional<Weights> &weights, std::size_t count) {
    if (!weights) return nullptr;
    need(weights->shape(0) == count, "weights and points differ in length");
    return aligned(weights->data());
}

void nearest(const Points &points, const Centroids &centroids, Out1<std::int32_t> labels,
             Out1<double> squared, std::size_t n_threads) {
    const kmeander::Rows rows = rows_of(points);
    need_rows(rows, centroids.shape(1));
    need(centroids.shape(0) > 0, "no centroids");
    need(labels.shape(0) == rows.count && squared.shape(0) == rows.count, "outputs are too short");
    const nb::gil_scoped_release release;
    kmeander::nearest(rows, aligned(centroids.data()), centroids.shape(0), n_threads, labels.data(),
                      squared.data());
}

std::tuple<std::size_t, std::int64_t> seed(const Points &points, std::optional<Weights> weights,
                                           const Weights &uniforms, Out1<std::int64_t> chosen,
                                           std::size_t n_threads) {
    const kmeander::Rows rows = rows_of(points);
    need_rows(rows, rows.columns);
    need(uniforms.shape(0) > 0 && chosen.shape(0) == uniforms.shape(0), "no uniforms");
    const double *shares = data_or_null(weights, rows.count);
    const nb::gil_scoped_release release;
    const kmeander::Seeds seeds = kmeander::seed(rows, shares, uniforms.data(), uniforms.shape(0),
                                                 n_threads, chosen.data());
    return {seeds.count, seeds.n_distances};
}

std::tuple<std::int64_t, std::int64_t, bool> lloyd(
    const std::vector<Points> &points, const std::vector<std::optional<Weights>> &weights,
    const Weights &decay, std::vector<Out1<std::int32_t>> labels, std::vector<Out1<float>> upper,
    std::vector<Out1<float>> lower, const std::vector<std::optional<Centroids>> &snapshots,
    std::vector<Out1<double>> masses, std::vector<Out2> sums, std::vector<Out1<double>> scatter,
    const std::vector<bool> &summed, Out2 centroids, Out1<double> first_errors,
    Out1<double> last_errors, Out1<std::uint8_t> reseeded, std::size_t max_iter, double shift,
    std::size_t n_threads) {
    const std::size_t n_batches = points.size();
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(n_batches > 0 && k > 0, "no batches or no centroids");
    for (const std::size_t length :
         {weights.size(), labels.size(), upper.size(), lower.size(), snapshots.size(), masses.size(),
          sums.size(), scatter.size(), summed.size(), decay.shape(0), first_errors.shape(0),
          last_errors.shape(0)})
        need(length == n_batches, "one entry per batch is needed");
    need(reseeded.shape(0) == k, "reseeded needs one entry per cluster");
    std::vector<kmeander::Batch> batches;
    for (std::size_t b = 0; b < n_batches; ++b) {
        const kmeander::Rows rows = rows_of(points[b]);
        need_rows(rows, d);
        need(labels[b].shape(0) == rows.count && upper[b].shape(0) == rows.count &&
                 lower[b].shape(0) == rows.count,
             "labels or bounds and points differ in length");
        need(masses[b].shape(0) == k && scatter[b].shape(0) == k && sums[b].shape(0) == k &&
                 sums[b].shape(1) == d,
             "masses, sums or scatter do not fit the centroids");
        const auto &snapshot = snapshots[b];
        need(!snapshot || (snapshot->shape(0) == k && snapshot->shape(1) == d),
             "a snapshot does not fit the centroids");
        // A label outside the clusters would be followed out of the arrays.
        need(!(snapshot || summed[b]) || std::all_of(labels[b].data(), labels[b].data() + rows.count,
                                                     [k](std::int32_t label) {
                                                         return label >= 0 &&
                                                                static_cast<std::size_t>(label) < k;
                                                     }),
             "bounds or sums without labels");
        batches.push_back({rows, data_or_null(weights[b], rows.count), decay.data()[b],
                           labels[b].data(), upper[b].data(), lower[b].data(),
                           snapshot ? aligned(snapshot->data()) : nullptr, masses[b].data(), sums[b].data(),
                           scatter[b].data(), summed[b]});
    }
    const auto interrupted = [] {
        const nb::gil_scoped_acquire acquire;
        return PyErr_CheckSignals() != 0;
    };
    try {
        const nb::gil_scoped_release release;
        const kmeander::LloydReport report =
            kmeander::lloyd(batches, k, centroids.data(), {max_iter, shift, n_threads, interrupted},
                            first_errors.data(), last_errors.data(), reseeded.data());
        return {report.n_iter, report.n_distances, report.converged};
    } catch (const kmeander::Interrupted &) {
        throw nb::python_error();  // what the signal's handler raised, KeyboardInterrupt as a rule
    }
}

std::int64_t first_beyond(const Points &points, double limit) {
    const kmeander::Rows rows = rows_of(points);
    const nb::gil_scoped_release release;
    return kmeander::first_beyond(rows, limit);
}

const char *instruction_set() { return kmeander::instruction_set().name; }

}  // namespace

NB_MODULE(_kernel, module) {
    using namespace nb::literals;
    module.doc() = "The compiled kernel; see _kernel.pyi for what it promises.";
    module.def("nearest", &nearest, "points"_a, "centroids"_a, "labels"_a.noconvert(),
               "squared"_a.noconvert(), "n_threads"_a);
    module.def("seed", &seed, "points"_a, "weights"_a.none(), "uniforms"_a, "chosen"_a.noconvert(),
               "n_threads"_a);
    module.def("lloyd", &lloyd, "points"_a, "weights"_a, "decay"_a, "labels"_a.noconvert(),
               "upper"_a.noconvert(), "lower"_a.noconvert(), "snapshots"_a, "masses"_a.noconvert(),
               "sums"_a.noconvert(), "scatter"_a.noconvert(), "summed"_a, "centroids"_a.noconvert(),
               "first_errors"_a.noconvert(), "last_errors"_a.noconvert(), "reseeded"_a.noconvert(),
               "max_iter"_a, "shift"_a, "n_threads"_a);
    module.def("first_beyond", &first_beyond, "points"_a, "limit"_a);
    module.def("instruction_set", &instruction_set);
}
