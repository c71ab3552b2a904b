// The Python module, and bindings of functions on arrays. Only kernel/bindings knows Python types.
//
// Shapes are checked by the callers in Python, once; here only what would read or write outside an
// array is refused. Arrays are never converted: another dtype or order is a TypeError. The GIL is
// released while the kernel works.
#include "bindings/arrays.hpp"

#include <nanobind/stl/pair.h>

#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/handles.hpp"
#include "kmeans/coreset.hpp"
#include "kmeans/distances.hpp"
#include "tracking/matching.hpp"
#include "tracking/medians.hpp"

namespace nb = nanobind;
using namespace bindings;

namespace {

void nearest(const Points &points, const Centroids &centroids, Out1<std::int32_t> labels,
             Out1<double> squared, std::size_t n_threads) {
    const kmeander::PointsView rows = view_of(points);
    need_rows(rows, centroids.shape(1));
    need(centroids.shape(0) > 0, "no centroids");
    need(labels.shape(0) == rows.count && squared.shape(0) == rows.count, "outputs are too short");
    const Released released;
    kmeander::nearest(rows, aligned(centroids.data()), centroids.shape(0), n_threads, labels.data(),
                      squared.data());
}

void distances_to(const Points &points, const Centroids &centroids, const In1<std::int32_t> &labels,
                  Out1<double> squared, std::size_t n_threads) {
    const kmeander::PointsView rows = view_of(points);
    need_rows(rows, centroids.shape(1));
    need(labels.shape(0) == rows.count && squared.shape(0) == rows.count, "arrays are too short");
    const auto k = static_cast<std::int32_t>(centroids.shape(0));
    for (std::size_t i = 0; i < rows.count; ++i)
        need(labels.data()[i] >= 0 && labels.data()[i] < k, "a label has no centroid");
    const Released released;
    kmeander::distances_to(rows, aligned(centroids.data()), labels.data(), n_threads,
                           squared.data());
}

void merge_costs(const Centroids &previous, const Weights &previous_masses,
                 const Centroids &current, const Weights &current_masses, Out2 squared,
                 Out2 costs) {
    const std::size_t n = previous.shape(0), m = current.shape(0);
    need(previous.shape(1) == current.shape(1), "centroids differ in columns");
    need(previous_masses.shape(0) == n && current_masses.shape(0) == m,
         "one mass per centroid is needed");
    for (const Out2 *out : {&squared, &costs})
        need(out->shape(0) == n && out->shape(1) == m, "outputs do not fit the centroids");
    kmeander::merge_costs({aligned(previous.data()), aligned(previous_masses.data()), n},
                          {aligned(current.data()), aligned(current_masses.data()), m},
                          previous.shape(1), squared.data(), costs.data());
}

void average(const Centroids &previous, const Weights &previous_masses, const Centroids &current,
             const Weights &current_masses, const In1<std::int64_t> &partners, Out2 means) {
    const std::size_t n = previous.shape(0), m = current.shape(0), d = previous.shape(1);
    need(current.shape(1) == d, "centroids differ in columns");
    need(previous_masses.shape(0) == n && current_masses.shape(0) == m && partners.shape(0) == n,
         "one mass and partner per centroid is needed");
    need(means.shape(0) == n && means.shape(1) == d, "outputs do not fit the centroids");
    for (std::size_t c = 0; c < n; ++c)
        need(aligned(partners.data())[c] < static_cast<std::int64_t>(m),
             "a partner that there is not");
    kmeander::average({aligned(previous.data()), aligned(previous_masses.data()), n},
                      {aligned(current.data()), aligned(current_masses.data()), m}, partners.data(),
                      d, means.data());
}

std::tuple<std::size_t, double> summarise(const Points &points, std::optional<Weights> weights,
                                          Out2 means, Out1<double> masses) {
    const kmeander::PointsView rows = view_of(points);
    need_rows(rows, means.shape(1));
    const std::size_t m = means.shape(0);
    need(m > 0 && masses.shape(0) == m, "means and masses differ in length");
    const double *row_weights = data_or_null(weights, rows.count);
    const Released released;
    const kmeander::CoresetSize found =
        kmeander::summarise(rows, row_weights, m, means.data(), masses.data());
    return {found.count, found.within};
}

using OutPoints =
    std::variant<Out2, nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;

std::int64_t first_beyond(const Points &points, double limit, std::optional<OutPoints> copy) {
    const kmeander::PointsView rows = view_of(points);
    void *to = nullptr;
    if (copy)
        std::visit(
            [&](const auto &out) {
                need(out.shape(0) == rows.count && out.shape(1) == rows.columns &&
                         sizeof(*out.data()) == (rows.is_float32 ? sizeof(float) : sizeof(double)),
                     "a copy does not fit the points");
                to = out.data();
            },
            *copy);
    const Released released;
    return kmeander::first_beyond(rows, limit, to);
}

std::tuple<double, double, double> medians(
    const std::vector<std::pair<double, double>> &estimates) {
    need(!estimates.empty(), "no estimates");
    const kmeander::Medians found = kmeander::medians(estimates);
    return {found.value, found.deviation, found.square};
}

const char *instruction_set() { return kmeander::instruction_set().name; }

}  // namespace

NB_MODULE(_kernel, module) {
    using namespace nb::literals;
    // A model that is alive when Python ends, as after an error, is no fault that users should read
    // of.
    nb::set_leak_warnings(false);
    bindings::register_interruption();
    module.doc() = "The compiled kernel; see _kernel.pyi for what it promises.";
    module.def("nearest", &nearest, "points"_a.noconvert(), "centroids"_a.noconvert(),
               "labels"_a.noconvert(), "squared"_a.noconvert(), "n_threads"_a);
    module.def("distances_to", &distances_to, "points"_a.noconvert(), "centroids"_a.noconvert(),
               "labels"_a.noconvert(), "squared"_a.noconvert(), "n_threads"_a);
    module.def("merge_costs", &merge_costs, "previous"_a.noconvert(),
               "previous_masses"_a.noconvert(), "current"_a.noconvert(),
               "current_masses"_a.noconvert(), "squared"_a.noconvert(), "costs"_a.noconvert());
    module.def("average", &average, "previous"_a.noconvert(), "previous_masses"_a.noconvert(),
               "current"_a.noconvert(), "current_masses"_a.noconvert(), "partners"_a.noconvert(),
               "means"_a.noconvert());
    module.def("summarise", &summarise, "points"_a.noconvert(), "weights"_a.noconvert().none(),
               "means"_a.noconvert(), "masses"_a.noconvert());
    module.def("first_beyond", &first_beyond, "points"_a.noconvert(), "limit"_a,
               "copy"_a.noconvert().none() = nb::none());
    module.def("medians", &medians, "estimates"_a);
    module.def("instruction_set", &instruction_set);
    bindings::define_classes(module);
    bindings::define_kmeans(module);
    bindings::define_tracking(module);
    bindings::define_change_test(module);
}
