// Bindings of K-means on batches and windows. The GIL is released while the kernel works.
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/handles.hpp"
#include "kmeans/distances.hpp"
#include "kmeans/seeding.hpp"
#include "kmeans/window_fit.hpp"

namespace bindings {
namespace {

using kmeander::Partition;
using kmeander::PointArrays;

void cluster_masses(const WindowHandle &window, const Partition &partition, Out1<double> masses) {
    const Released released;
    window.window().cluster_masses(partition, {masses.data(), masses.shape(0)});
}

std::tuple<double, double, Partition> measure(const BatchHandle &batch, const Centroids &centroids,
                                              std::size_t n_threads) {
    const kmeander::BatchView &view = batch.view();
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need_rows(view.rows, d);
    need(k > 0, "no centroids");
    const std::span<const double> places = span_of(centroids);
    const Released released;
    const auto points = std::make_shared<PointArrays>(view.rows.count);
    points->snapshot.assign(places.begin(), places.end());
    points->k = k;
    points->d = d;
    const kmeander::MeanError found =
        kmeander::measure(view.rows, view.weights, places.data(), k, n_threads,
                          points->labels.data(), points->upper.data(), points->lower.data());
    return {found.error, found.relative, Partition(points)};
}

std::tuple<std::size_t, std::int64_t, Partition> seed(const BatchHandle &batch,
                                                      const Weights &uniforms,
                                                      Out1<std::int64_t> chosen,
                                                      std::size_t n_threads) {
    need(uniforms.shape(0) > 0 && chosen.shape(0) == uniforms.shape(0), "no uniforms");
    const kmeander::BatchView &view = batch.view();
    const std::span<const double> draws = span_of(uniforms);
    const Released released;
    const auto points = std::make_shared<PointArrays>(view.rows.count);
    const kmeander::SeedingReport seeds = kmeander::seed(
        view.rows, view.weights, draws.data(), draws.size(), n_threads, chosen.data(),
        points->labels.data(), points->upper.data(), points->lower.data(), points->snapshot);
    points->k = seeds.count;
    points->d = view.rows.columns;
    return {seeds.count, seeds.n_distances, Partition(points)};
}

using LloydTuple = std::tuple<Partition, std::int64_t, std::int64_t, bool, double, double, double,
                              double, std::vector<std::int32_t>>;

LloydTuple lloyd(const WindowHandle &window, const Partition *older, const Partition *newest,
                 Out2 centroids, Out1<double> cluster_masses, std::optional<Centroids> before,
                 std::optional<Out1<double>> moved, std::size_t max_iter, double shift,
                 bool on_sphere, std::size_t n_threads) {
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(cluster_masses.shape(0) == k, "cluster_masses needs one entry per cluster");
    need(before.has_value() == moved.has_value() &&
             (!before || (before->shape(0) == k && before->shape(1) == d && moved->shape(0) == k)),
         "places before do not fit the centroids");
    const Released released;
    kmeander::LloydFit fit = kmeander::fit_window(
        window.window(), {older, newest}, centroids.data(), {k, d},
        {.max_iter = max_iter, .shift = shift, .n_threads = n_threads, .on_sphere = on_sphere},
        cluster_masses.data());
    if (before)
        kmeander::displacements(aligned(before->data()), centroids.data(), k, d, moved->data());
    kmeander::LloydReport &report = fit.report;
    return {std::move(fit.partition), report.n_iter,       report.n_distances,
            report.converged,         report.first.window, report.last.window,
            report.last.newest,       report.left_out,     std::move(report.reseeded)};
}

using SwapTuple = std::tuple<Partition, std::int64_t, std::int64_t, std::vector<std::int32_t>>;

std::optional<SwapTuple> swap(const WindowHandle &window, const Partition *older,
                              const Partition *newest, Out2 centroids, const Weights &uniforms,
                              bool on_sphere, std::size_t n_threads) {
    const std::span<const double> draws = span_of(uniforms);
    const Released released;
    std::optional<kmeander::SwapFit> fit = kmeander::search_window(
        window.window(), {older, newest}, centroids.data(),
        {centroids.shape(0), centroids.shape(1)}, draws, n_threads, on_sphere);
    if (!fit) return std::nullopt;
    return SwapTuple(std::move(fit->partition), fit->report.n_swaps, fit->report.n_distances,
                     std::move(fit->report.swapped));
}

std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>, std::int64_t> exchange(
    const WindowHandle &window, const Partition &found, Out2 centroids, const Weights &uniforms,
    std::size_t n_threads) {
    const std::span<const double> draws = span_of(uniforms);
    const Released released;
    kmeander::SplitMergeReport report =
        kmeander::exchange_clusters(window.window(), found, centroids.data(),
                                    {centroids.shape(0), centroids.shape(1)}, draws, n_threads);
    return {std::move(report.split), std::move(report.removed), report.n_distances};
}

}  // namespace

void define_kmeans(nb::module_ &module) {
    using namespace nb::literals;
    module.def("cluster_masses", &cluster_masses, "window"_a, "partition"_a,
               "masses"_a.noconvert());
    module.def("measure", &measure, "batch"_a, "centroids"_a.noconvert(), "n_threads"_a);
    module.def("seed", &seed, "batch"_a, "uniforms"_a.noconvert(), "chosen"_a.noconvert(),
               "n_threads"_a);
    module.def("lloyd", &lloyd, "window"_a, "older"_a.none(), "newest"_a.none(),
               "centroids"_a.noconvert(), "cluster_masses"_a.noconvert(),
               "before"_a.noconvert().none(), "moved"_a.noconvert().none(), "max_iter"_a, "shift"_a,
               "on_sphere"_a, "n_threads"_a);
    module.def("swap", &swap, "window"_a, "older"_a.none(), "newest"_a.none(),
               "centroids"_a.noconvert(), "uniforms"_a.noconvert(), "on_sphere"_a, "n_threads"_a);
    module.def("exchange", &exchange, "window"_a, "found"_a, "centroids"_a.noconvert(),
               "uniforms"_a.noconvert(), "n_threads"_a);
}

}  // namespace bindings
