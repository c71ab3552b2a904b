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
#include <utility>
#include <variant>
#include <vector>

#include "assignment.hpp"
#include "changes.hpp"
#include "lloyd.hpp"
#include "matching.hpp"
#include "seeding.hpp"
#include "summaries.hpp"
#include "swaps.hpp"
#include "valleys.hpp"

namespace nb = nanobind;

namespace {

using Float64Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Float32Rows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Points = std::variant<Float64Rows, Float32Rows>;
using Centroids = Float64Rows;
using Weights = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out3 = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

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

std::tuple<double, double> measure(const Points &points, std::optional<Weights> weights,
                                   const Centroids &centroids, Out1<std::int32_t> labels,
                                   Out1<float> upper, Out1<float> lower, std::size_t n_threads) {
    const kmeander::Rows rows = rows_of(points);
    need_rows(rows, centroids.shape(1));
    need(centroids.shape(0) > 0, "no centroids");
    for (const std::size_t length : {labels.shape(0), upper.shape(0), lower.shape(0)})
        need(length == rows.count, "outputs are too short");
    const double *shares = data_or_null(weights, rows.count);
    const nb::gil_scoped_release release;
    const kmeander::Measured found =
        kmeander::measure(rows, shares, aligned(centroids.data()), centroids.shape(0), n_threads,
                          labels.data(), upper.data(), lower.data());
    return {found.error, found.relative};
}

std::tuple<std::size_t, std::int64_t> seed(const Points &points, std::optional<Weights> weights,
                                           const Weights &uniforms, Out1<std::int64_t> chosen,
                                           Out1<std::int32_t> labels, Out1<float> upper,
                                           Out1<float> lower, std::size_t n_threads) {
    const kmeander::Rows rows = rows_of(points);
    need_rows(rows, rows.columns);
    need(uniforms.shape(0) > 0 && chosen.shape(0) == uniforms.shape(0), "no uniforms");
    for (const std::size_t length : {labels.shape(0), upper.shape(0), lower.shape(0)})
        need(length == rows.count, "outputs are too short");
    const double *shares = data_or_null(weights, rows.count);
    const nb::gil_scoped_release release;
    const kmeander::Seeds seeds =
        kmeander::seed(rows, shares, uniforms.data(), uniforms.shape(0), n_threads, chosen.data(),
                       labels.data(), upper.data(), lower.data());
    return {seeds.count, seeds.n_distances};
}

// A label outside the clusters would be followed out of the arrays.
bool are_labels(const std::int32_t *begin, const std::int32_t *end, std::size_t k) {
    bool all = true;  // without a way out, so that many are looked at at once
    for (const std::int32_t *label = begin; label < end; ++label)
        all &= static_cast<std::uint32_t>(*label) < static_cast<std::uint32_t>(k);
    return all;
}

using Report = std::tuple<std::int64_t, std::int64_t, bool, double, double, double, double, double,
                          std::vector<std::int32_t>>;

Report lloyd(
    const std::vector<Points> &points, const std::vector<std::optional<Weights>> &weights,
    const Weights &decay, Out1<std::int32_t> labels, Out1<float> upper, Out1<float> lower,
    std::optional<Centroids> snapshot, std::size_t n_bounded,
    std::optional<Centroids> newest_snapshot, Out2 masses, Out3 sums, Out2 scatter,
    std::size_t n_summed, Out2 centroids, Out1<double> cluster_masses, std::size_t max_iter,
    double shift, std::size_t n_threads) {
    const std::size_t n_batches = points.size();
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(n_batches > 0 && k > 0, "no batches or no centroids");
    for (const std::size_t length : {weights.size(), decay.shape(0), masses.shape(0), sums.shape(0),
                                     scatter.shape(0)})
        need(length == n_batches, "one entry per batch is needed");
    need(masses.shape(1) == k && scatter.shape(1) == k && sums.shape(1) == k && sums.shape(2) == d,
         "masses, sums or scatter do not fit the centroids");
    need(cluster_masses.shape(0) == k, "cluster_masses needs one entry per cluster");
    for (const auto &known : {snapshot, newest_snapshot})
        need(!known || (known->shape(0) == k && known->shape(1) == d),
             "a snapshot does not fit the centroids");
    need(n_summed <= n_bounded && n_bounded <= n_batches && (snapshot || n_bounded == 0),
         "more sums than bounds, or more bounds than batches");
    std::vector<kmeander::Batch> batches;
    std::size_t begin = 0;
    for (std::size_t b = 0; b < n_batches; ++b) {
        const kmeander::Rows rows = rows_of(points[b]);
        need_rows(rows, d);
        const std::size_t end = begin + rows.count;
        need(end <= labels.shape(0), "labels and points differ in length");
        const bool is_newest = b + 1 == n_batches;
        const double *known = nullptr;
        if (b < n_bounded) known = aligned(snapshot->data());
        else if (is_newest && newest_snapshot) known = aligned(newest_snapshot->data());
        need(known == nullptr || are_labels(labels.data() + begin, labels.data() + end, k),
             "bounds without labels");
        batches.push_back({rows, data_or_null(weights[b], rows.count), decay.data()[b],
                           labels.data() + begin, upper.data() + begin, lower.data() + begin, known,
                           masses.data() + b * k, sums.data() + b * k * d, scatter.data() + b * k,
                           b < n_summed});
        begin = end;
    }
    for (const std::size_t length : {labels.shape(0), upper.shape(0), lower.shape(0)})
        need(length == begin, "labels or bounds and points differ in length");
    const auto interrupted = [] {
        const nb::gil_scoped_acquire acquire;
        return PyErr_CheckSignals() != 0;
    };
    try {
        const nb::gil_scoped_release release;
        const kmeander::LloydReport report =
            kmeander::lloyd(batches, k, centroids.data(), {max_iter, shift, n_threads, interrupted},
                            cluster_masses.data());
        return {report.n_iter,       report.n_distances, report.converged,
                report.first.window, report.first.newest, report.last.window,
                report.last.newest,  report.left_out,     report.reseeded};
    } catch (const kmeander::Interrupted &) {
        throw nb::python_error();  // what the signal's handler raised, KeyboardInterrupt as a rule
    }
}

std::tuple<std::int64_t, std::int64_t, std::vector<std::int32_t>> swap(
    const std::vector<Points> &points, const std::vector<std::optional<Weights>> &weights,
    const Weights &decay, Out1<std::int32_t> labels, Out1<float> upper, Out1<float> lower,
    Out2 centroids, const Weights &uniforms, std::size_t n_threads) {
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(!points.empty() && k > 0, "no batches or no centroids");
    for (const std::size_t length : {weights.size(), decay.shape(0)})
        need(length == points.size(), "one entry per batch is needed");
    std::vector<kmeander::Batch> batches;
    std::size_t begin = 0;
    for (std::size_t b = 0; b < points.size(); ++b) {
        const kmeander::Rows rows = rows_of(points[b]);
        need_rows(rows, d);
        batches.push_back({rows, data_or_null(weights[b], rows.count), decay.data()[b],
                           labels.data() + begin, upper.data() + begin, lower.data() + begin,
                           centroids.data(), nullptr, nullptr, nullptr, false});
        begin += rows.count;
    }
    for (const std::size_t length : {labels.shape(0), upper.shape(0), lower.shape(0)})
        need(length == begin, "labels or bounds and points differ in length");
    need(are_labels(labels.data(), labels.data() + begin, k), "bounds without labels");
    const nb::gil_scoped_release release;
    const kmeander::SwapReport report = kmeander::swap_centroids(
        batches, k, centroids.data(), uniforms.data(), uniforms.shape(0), n_threads);
    return {report.n_swaps, report.n_distances, report.swapped};
}

void valleys(const std::vector<Points> &points, const std::vector<std::optional<Weights>> &weights,
             const Weights &decay, const Labels &labels,
             const Centroids &centroids, const Weights &masses, std::size_t rows_per_cluster,
             double shallow, Out1<std::int32_t> neighbours, Out1<double> as_one,
             Out1<double> as_two) {
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(!points.empty() && k > 0 && rows_per_cluster > 0, "no batches, centroids or rows");
    for (const std::size_t length : {weights.size(), decay.shape(0)})
        need(length == points.size(), "one entry per batch is needed");
    for (const std::size_t length :
         {masses.shape(0), neighbours.shape(0), as_one.shape(0), as_two.shape(0)})
        need(length == k, "one entry per cluster is needed");
    std::vector<kmeander::Batch> batches;
    std::size_t begin = 0;
    for (std::size_t b = 0; b < points.size(); ++b) {
        const kmeander::Rows rows = rows_of(points[b]);
        need_rows(rows, d);
        // Labels are only read.
        batches.push_back({rows, data_or_null(weights[b], rows.count), decay.data()[b],
                           const_cast<std::int32_t *>(labels.data()) + begin, nullptr, nullptr,
                           nullptr, nullptr, nullptr, nullptr, false});
        begin += rows.count;
    }
    need(labels.shape(0) == begin, "labels and points differ in length");
    need(are_labels(labels.data(), labels.data() + begin, k), "labels of no cluster");
    const nb::gil_scoped_release release;
    kmeander::score_valleys(batches, aligned(centroids.data()), k, masses.data(),
                            rows_per_cluster, shallow, neighbours.data(), as_one.data(), as_two.data());
}

void merge_costs(const Centroids &previous, const Weights &previous_masses, const Centroids &current,
                 const Weights &current_masses, Out2 squared, Out2 costs) {
    const std::size_t n = previous.shape(0), m = current.shape(0);
    need(previous.shape(1) == current.shape(1), "centroids differ in columns");
    need(previous_masses.shape(0) == n && current_masses.shape(0) == m,
         "one mass per centroid is needed");
    for (const Out2 &out : {squared, costs})
        need(out.shape(0) == n && out.shape(1) == m, "outputs do not fit the centroids");
    kmeander::merge_costs({aligned(previous.data()), aligned(previous_masses.data()), n},
                          {aligned(current.data()), aligned(current_masses.data()), m},
                          previous.shape(1), squared.data(), costs.data());
}

std::tuple<std::size_t, double> summarise(const Points &points, std::optional<Weights> weights,
                                          Out2 means, Out1<double> masses) {
    const kmeander::Rows rows = rows_of(points);
    need_rows(rows, means.shape(1));
    const std::size_t m = means.shape(0);
    need(m > 0 && masses.shape(0) == m, "means and masses differ in length");
    const double *shares = data_or_null(weights, rows.count);
    const nb::gil_scoped_release release;
    const kmeander::Summaries found =
        kmeander::summarise(rows, shares, m, means.data(), masses.data());
    return {found.count, found.within};
}

using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows3 = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Named = std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>,
                         std::vector<std::int32_t>>;

Named compare(const Float64Rows &masses, const Rows3 &sums, const Float64Rows &scatter,
              const Weights &decay, std::optional<Weights> points_per_mass,
              std::optional<Flags> is_whole, const Numbers &oldest, const Numbers &since,
              const Weights &moved, double moved_level, double share_level, Out2 evidence) {
    const std::size_t n_batches = masses.shape(0), k = masses.shape(1);
    need(n_batches > 0 && k > 0, "no batches or no clusters");
    need(sums.shape(0) == n_batches && sums.shape(1) == k && scatter.shape(0) == n_batches &&
             scatter.shape(1) == k,
         "masses, sums and scatter do not fit each other");
    need(decay.shape(0) == n_batches && oldest.shape(0) == n_batches &&
             (!is_whole || is_whole->shape(0) == n_batches),
         "one entry per batch is needed");
    need(since.shape(0) == k && moved.shape(0) == k, "one entry per cluster is needed");
    need(evidence.shape(0) == kmeander::n_evidence && evidence.shape(1) == k,
         "evidence has the wrong shape");
    const kmeander::Totals totals{n_batches,     k,           sums.shape(2),
                                  masses.data(), sums.data(), scatter.data()};
    const kmeander::Chapters chapters{
        decay.data(), data_or_null(points_per_mass, n_batches),
        is_whole ? reinterpret_cast<const std::uint8_t *>(is_whole->data()) : nullptr,
        oldest.data(), since.data()};
    const nb::gil_scoped_release release;
    const kmeander::Suspects found = kmeander::compare(totals, chapters, moved.data(), moved_level,
                                                       share_level, evidence.data());
    return {found.moved, found.share, found.elsewhere};
}

void moments(const std::vector<Points> &points, const std::vector<std::optional<Weights>> &weights,
             const Weights &decay, const Labels &labels, const Centroids &centroids,
             Out1<double> masses, Out2 sums, Out2 squares) {
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    for (const std::size_t length : {weights.size(), decay.shape(0)})
        need(length == points.size(), "one entry per batch is needed");
    need(masses.shape(0) == k && sums.shape(0) == k && sums.shape(1) == d &&
             squares.shape(0) == k && squares.shape(1) == d,
         "masses, sums or squares do not fit the centroids");
    need(are_labels(labels.data(), labels.data() + labels.shape(0), k), "labels of no cluster");
    std::vector<std::pair<kmeander::Rows, const double *>> batches;
    std::size_t n_rows = 0;
    for (std::size_t b = 0; b < points.size(); ++b) {
        const kmeander::Rows rows = rows_of(points[b]);
        need_rows(rows, d);
        batches.emplace_back(rows, data_or_null(weights[b], rows.count));
        n_rows += rows.count;
    }
    need(labels.shape(0) == n_rows, "labels and points differ in length");
    const nb::gil_scoped_release release;
    std::fill_n(masses.data(), k, 0.0);
    std::fill_n(sums.data(), k * d, 0.0);
    std::fill_n(squares.data(), k * d, 0.0);
    const std::int32_t *next = labels.data();
    for (std::size_t b = 0; b < batches.size(); ++b) {
        const auto &[rows, shares] = batches[b];
        kmeander::instruction_set().add_moments(rows, shares, decay.data()[b], next,
                                                centroids.data(), masses.data(), sums.data(),
                                                squares.data());
        next += rows.count;
    }
}

using OutPoints =
    std::variant<Out2, nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;

std::int64_t first_beyond(const Points &points, double limit, std::optional<OutPoints> copy) {
    const kmeander::Rows rows = rows_of(points);
    void *to = nullptr;
    if (copy)
        std::visit([&](const auto &out) {
            need(out.shape(0) == rows.count && out.shape(1) == rows.columns &&
                     sizeof(*out.data()) == (rows.is_float32 ? sizeof(float) : sizeof(double)),
                 "a copy does not fit the points");
            to = out.data();
        }, *copy);
    const nb::gil_scoped_release release;
    return kmeander::first_beyond(rows, limit, to);
}

const char *instruction_set() { return kmeander::instruction_set().name; }

}  // namespace

NB_MODULE(_kernel, module) {
    using namespace nb::literals;
    module.doc() = "The compiled kernel; see _kernel.pyi for what it promises.";
    module.def("nearest", &nearest, "points"_a, "centroids"_a, "labels"_a.noconvert(),
               "squared"_a.noconvert(), "n_threads"_a);
    module.def("measure", &measure, "points"_a, "weights"_a.none(), "centroids"_a,
               "labels"_a.noconvert(), "upper"_a.noconvert(), "lower"_a.noconvert(), "n_threads"_a);
    module.def("seed", &seed, "points"_a, "weights"_a.none(), "uniforms"_a, "chosen"_a.noconvert(),
               "labels"_a.noconvert(), "upper"_a.noconvert(), "lower"_a.noconvert(), "n_threads"_a);
    module.def("lloyd", &lloyd, "points"_a, "weights"_a, "decay"_a, "labels"_a.noconvert(),
               "upper"_a.noconvert(), "lower"_a.noconvert(), "snapshot"_a.none(), "n_bounded"_a,
               "newest_snapshot"_a.none(), "masses"_a.noconvert(), "sums"_a.noconvert(),
               "scatter"_a.noconvert(), "n_summed"_a, "centroids"_a.noconvert(),
               "cluster_masses"_a.noconvert(), "max_iter"_a, "shift"_a, "n_threads"_a);
    module.def("swap", &swap, "points"_a, "weights"_a, "decay"_a, "labels"_a.noconvert(),
               "upper"_a.noconvert(), "lower"_a.noconvert(), "centroids"_a.noconvert(),
               "uniforms"_a, "n_threads"_a);
    module.def("valleys", &valleys, "points"_a, "weights"_a, "decay"_a, "labels"_a, "centroids"_a,
               "masses"_a, "rows_per_cluster"_a, "shallow"_a, "neighbours"_a.noconvert(),
               "as_one"_a.noconvert(), "as_two"_a.noconvert());
    module.def("merge_costs", &merge_costs, "previous"_a, "previous_masses"_a, "current"_a,
               "current_masses"_a, "squared"_a.noconvert(), "costs"_a.noconvert());
    module.def("summarise", &summarise, "points"_a, "weights"_a.none(), "means"_a.noconvert(),
               "masses"_a.noconvert());
    module.def("compare", &compare, "masses"_a, "sums"_a, "scatter"_a, "decay"_a,
               "points_per_mass"_a.none(), "is_whole"_a.none(), "oldest"_a, "since"_a, "moved"_a,
               "moved_level"_a, "share_level"_a, "evidence"_a.noconvert());
    module.def("moments", &moments, "points"_a, "weights"_a, "decay"_a, "labels"_a, "centroids"_a,
               "masses"_a.noconvert(), "sums"_a.noconvert(), "squares"_a.noconvert());
    module.def("first_beyond", &first_beyond, "points"_a, "limit"_a,
               "copy"_a.noconvert().none() = nb::none());
    module.def("instruction_set", &instruction_set);
}
