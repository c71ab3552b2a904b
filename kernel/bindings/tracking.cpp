// Bindings of what a batch did to the clusters: modality, spread, flows, explanation.
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/handles.hpp"
#include "kmeans/partition.hpp"
#include "tracking/explanation.hpp"
#include "tracking/flows.hpp"
#include "tracking/modality.hpp"
#include "tracking/spread.hpp"

namespace bindings {
namespace {

using kmeander::DecayedWindow;
using kmeander::Partition;

void score_dips(const WindowHandle &handle, std::size_t first, const Partition &partition,
                const Centroids &centroids, const Weights &masses, std::size_t rows_per_cluster,
                double shallow, Out1<std::int32_t> neighbours, Out1<double> as_one,
                Out1<double> as_two) {
    const DecayedWindow &window = handle.window();
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(k > 0 && rows_per_cluster > 0, "no centroids or rows");
    window.need_columns(d);
    need(first < window.size(), "no such batch");
    for (const std::size_t length :
         {masses.shape(0), neighbours.shape(0), as_one.shape(0), as_two.shape(0)})
        need(length == k, "one entry per cluster is needed");
    const double *places = aligned(centroids.data()), *weights = aligned(masses.data());
    const Released released;
    std::size_t n_points = 0;
    for (std::size_t b = first; b < window.size(); ++b) n_points += window[b].rows.count;
    need(partition.n_points() >= window.n_points(), "labels and points differ in length");
    kmeander::score_dips(window.labelled(first, window.size(), partition.last_labels(n_points, k)),
                         places, k, weights, rows_per_cluster, shallow, neighbours.data(),
                         as_one.data(), as_two.data());
}

void find_variance(const Partition &partition, std::optional<Weights> points_per_mass,
                   std::optional<In1<bool>> is_whole, Out1<double> variance) {
    need(partition.sums().has_value(), "a partition without sums");
    const kmeander::ClusterSums &sums = *partition.sums();
    const std::size_t n_batches = sums.n_batches();
    need(!is_whole || is_whole->shape(0) == n_batches, "one entry per batch is needed");
    need(variance.shape(0) == sums.k(), "one entry per cluster is needed");
    kmeander::find_variance(
        sums, data_or_null(points_per_mass, n_batches),
        is_whole ? reinterpret_cast<const std::uint8_t *>(is_whole->data()) : nullptr,
        variance.data());
}

void flows(const WindowHandle &handle, const Partition *older, const Partition &arrived,
           const Partition &found, Out2 flow, Out2 newest) {
    const std::size_t k = flow.shape(0);
    for (const Out2 *table : {&flow, &newest})
        need(table->shape(0) == k && table->shape(1) == k, "flows are from each cluster to each");
    const Released released;
    kmeander::count_flows(handle.window(), older, arrived, found, k, flow.data(), newest.data());
}

using CellTuple = std::tuple<double, double, double>;
using ExplanationTuple =
    std::tuple<double, std::vector<double>, std::vector<double>,
               std::vector<std::tuple<std::size_t, std::size_t, CellTuple, CellTuple>>>;

CellTuple tuple_of(const kmeander::Moments::CellMoments &cell) {
    return {cell.share, cell.mean, cell.variance};
}

ExplanationTuple explain(const WindowHandle &handle, std::size_t n_batches,
                         const Partition &partition, double within, const BatchHandle &batch,
                         const Partition &arrived, double batch_within, const Centroids &centroids,
                         std::size_t n_parts, std::size_t n_threads) {
    const DecayedWindow &window = handle.window();
    const kmeander::BatchView &view = batch.view();
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(k > 0 && n_batches > 0 && n_batches <= window.size(), "no centroids or batches");
    window.need_columns(d);
    need_rows(view.rows, d);
    const double *places = aligned(centroids.data());
    kmeander::ErrorDecomposition found;
    {
        const Released released;
        std::size_t n_points = 0;
        for (std::size_t b = 0; b < n_batches; ++b) n_points += window[b].rows.count;
        kmeander::Moments older(places, k, d), newest(places, k, d);
        older.add(window.labelled(0, n_batches, partition.last_labels(n_points, k)), n_threads);
        newest.add({{.rows = view.rows,
                     .weights = view.weights,
                     .labels = arrived.last_labels(view.rows.count, k).data()}},
                   1);
        older.add_hidden(within);
        newest.add_hidden(batch_within);
        found = kmeander::explain(older, newest, k, d, n_parts);
    }
    std::vector<std::tuple<std::size_t, std::size_t, CellTuple, CellTuple>> parts;
    for (const kmeander::ErrorDecomposition::ErrorPart &part : found.parts)
        parts.emplace_back(part.cluster, part.column, tuple_of(part.before), tuple_of(part.now));
    return {found.difference, std::move(found.clusters), std::move(found.columns),
            std::move(parts)};
}

}  // namespace

void define_tracking(nb::module_ &module) {
    using namespace nb::literals;
    module.def("score_dips", &score_dips, "window"_a, "first"_a, "partition"_a,
               "centroids"_a.noconvert(), "masses"_a.noconvert(), "rows_per_cluster"_a, "shallow"_a,
               "neighbours"_a.noconvert(), "as_one"_a.noconvert(), "as_two"_a.noconvert());
    module.def("find_variance", &find_variance, "partition"_a,
               "points_per_mass"_a.noconvert().none(), "is_whole"_a.noconvert().none(),
               "variance"_a.noconvert());
    module.def("flows", &flows, "window"_a, "older"_a.none(), "arrived"_a, "found"_a,
               "flow"_a.noconvert(), "newest"_a.noconvert());
    module.def("explain", &explain, "window"_a, "n_batches"_a, "partition"_a, "within"_a, "batch"_a,
               "arrived"_a, "batch_within"_a, "centroids"_a.noconvert(), "n_parts"_a,
               "n_threads"_a);
}

}  // namespace bindings
