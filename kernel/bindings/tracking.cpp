// The border, for what reads a division: whether K fits, what has changed, where points went.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/window.hpp"
#include "tracking/explanation.hpp"
#include "tracking/modality.hpp"
#include "tracking/significance.hpp"

namespace border {
namespace {

using kmeander::Division;

void valleys(const Window &window, std::size_t first, const Division &division,
             const Centroids &centroids, const Weights &masses, std::size_t rows_per_cluster,
             double shallow, Out1<std::int32_t> neighbours, Out1<double> as_one,
             Out1<double> as_two) {
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(k > 0 && rows_per_cluster > 0, "no centroids or rows");
    const std::size_t n_points = window.need_columns(d);
    need(first < window.size(), "no such batch");
    for (const std::size_t length :
         {masses.shape(0), neighbours.shape(0), as_one.shape(0), as_two.shape(0)})
        need(length == k, "one entry per cluster is needed");
    const std::int32_t *next = last_labels(division, n_points, k);
    for (std::size_t b = 0; b < first; ++b) next += window[b].rows.count;
    std::vector<kmeander::LabelledBatch> batches;
    for (std::size_t b = first; b < window.size(); ++b) {
        batches.push_back({.rows = window[b].rows,
                           .weights = window[b].shares,
                           .decay = window.decay()[b],
                           .labels = next});
        next += window[b].rows.count;
    }
    const nb::gil_scoped_release release;
    kmeander::score_valleys(batches, aligned(centroids.data()), k, masses.data(), rows_per_cluster,
                            shallow, neighbours.data(), as_one.data(), as_two.data());
}

using Named =
    std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>, std::vector<std::int32_t>>;

Named compare(const Division &division, const Window &window,
              std::optional<Weights> points_per_mass, std::optional<In1<bool>> is_whole,
              const In1<std::int64_t> &oldest, const In1<std::int64_t> &since, const Weights &moved,
              double moved_level, double share_level, Out2 evidence) {
    need(division.totals != nullptr, "a division without totals");
    const Division::Totals &known = *division.totals;
    const std::size_t n_batches = known.n_batches, k = known.k;
    need(window.size() == n_batches && oldest.shape(0) == n_batches &&
             (!is_whole || is_whole->shape(0) == n_batches),
         "one entry per batch is needed");
    need(since.shape(0) == k && moved.shape(0) == k, "one entry per cluster is needed");
    need(evidence.shape(0) == kmeander::n_evidence && evidence.shape(1) == k,
         "evidence has the wrong shape");
    const kmeander::SumsView totals{
        n_batches, k, known.d, known.masses.data(), known.sums.data(), known.scatter.data()};
    const kmeander::ComparedBatches compared{
        window.decay(), data_or_null(points_per_mass, n_batches),
        is_whole ? reinterpret_cast<const std::uint8_t *>(is_whole->data()) : nullptr,
        oldest.data(), since.data()};
    kmeander::CandidateChanges found = kmeander::compare(totals, compared, moved.data(),
                                                         moved_level, share_level, evidence.data());
    return {std::move(found.moved), std::move(found.share), std::move(found.elsewhere)};
}

// Weight that went from each cluster before to each cluster now: decayed in all batches, and in the
// newest, whose points `arrived` divides by the clusters before.
void flows(const Window &window, const Division *known, std::size_t points_gone,
           const Division &arrived, const Division &found, Out2 flow, Out2 newest) {
    const std::size_t k = flow.shape(0);
    need(window.size() > 0, "no batches");
    for (const Out2 &table : {flow, newest})
        need(table.shape(0) == k && table.shape(1) == k, "flows are from each cluster to each");
    const std::size_t n_points = window.n_points();
    const std::size_t n_older = n_points - window.back().rows.count;
    need(n_older == 0 || (known != nullptr && known->n_points() >= points_gone + n_older),
         "labels and points differ in length");
    need(arrived.n_points() == window.back().rows.count, "labels and points differ in length");
    const std::int32_t *now = last_labels(found, n_points, k);
    const std::int32_t *then = nullptr;
    if (n_older > 0) {
        then = known->points->labels.data() + points_gone;
        need(are_labels(then, then + n_older, k), "labels of no cluster");
    }
    std::fill_n(flow.data(), k * k, 0.0);
    std::fill_n(newest.data(), k * k, 0.0);
    for (std::size_t b = 0; b < window.size(); ++b) {
        const Remembered &batch = window[b];
        const bool is_newest = b + 1 == window.size();
        if (is_newest) then = last_labels(arrived, batch.rows.count, k);
        for (std::size_t i = 0; i < batch.rows.count; ++i) {
            const double weight = batch.shares == nullptr ? 1.0 : batch.shares[i];
            const std::size_t pair =
                static_cast<std::size_t>(then[i]) * k + static_cast<std::size_t>(now[i]);
            flow.data()[pair] += window.decay()[b] * weight;
            if (is_newest) newest.data()[pair] += weight;
        }
        then += batch.rows.count;
        now += batch.rows.count;
    }
}

using Cell = std::tuple<double, double, double>;
using Explained = std::tuple<double, std::vector<double>, std::vector<double>,
                             std::vector<std::tuple<std::size_t, std::size_t, Cell, Cell>>>;

// Why the batch, divided by `arrived`, costs more under `centroids` than the first batches of the
// window did, whose points are the last that `division` knows.
Explained explain(const Window &window, std::size_t n_batches, const Division &division,
                  double within, const Remembered &batch, const Division &arrived,
                  double batch_within, const Centroids &centroids, std::size_t n_parts,
                  std::size_t n_threads) {
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(k > 0 && n_batches > 0 && n_batches <= window.size(), "no centroids or batches");
    window.need_columns(d);
    need_rows(batch.rows, d);
    std::size_t n_points = 0;
    for (std::size_t b = 0; b < n_batches; ++b) n_points += window[b].rows.count;
    const std::int32_t *next = last_labels(division, n_points, k);
    const std::int32_t *labels = last_labels(arrived, batch.rows.count, k);
    kmeander::ErrorDecomposition found;
    {
        const nb::gil_scoped_release release;
        kmeander::Moments older(centroids.data(), k, d), newest(centroids.data(), k, d);
        std::vector<kmeander::LabelledBatch> before;
        for (std::size_t b = 0; b < n_batches; ++b) {
            before.push_back({window[b].rows, window[b].shares, window.decay()[b], next});
            next += window[b].rows.count;
        }
        older.add(before, n_threads);
        newest.add({{batch.rows, batch.shares, 1.0, labels}}, 1);
        older.add_hidden(within);
        newest.add_hidden(batch_within);
        found = kmeander::explain(older, newest, k, d, n_parts);
    }
    const auto told = [](const kmeander::Moments::CellMoments &cell) {
        return Cell(cell.share, cell.mean, cell.variance);
    };
    std::vector<std::tuple<std::size_t, std::size_t, Cell, Cell>> parts;
    for (const kmeander::ErrorDecomposition::ErrorPart &part : found.parts)
        parts.emplace_back(part.cluster, part.column, told(part.before), told(part.now));
    return {found.difference, std::move(found.clusters), std::move(found.columns),
            std::move(parts)};
}

}  // namespace

void define_reading(nb::module_ &module) {
    using namespace nb::literals;
    module.def("valleys", &valleys, "window"_a, "first"_a, "division"_a, "centroids"_a, "masses"_a,
               "rows_per_cluster"_a, "shallow"_a, "neighbours"_a.noconvert(),
               "as_one"_a.noconvert(), "as_two"_a.noconvert());
    module.def("compare", &compare, "division"_a, "window"_a, "points_per_mass"_a.none(),
               "is_whole"_a.none(), "oldest"_a, "since"_a, "moved"_a, "moved_level"_a,
               "share_level"_a, "evidence"_a.noconvert());
    module.def("flows", &flows, "window"_a, "known"_a.none(), "points_gone"_a, "arrived"_a,
               "found"_a, "flow"_a.noconvert(), "newest"_a.noconvert());
    module.def("explain", &explain, "window"_a, "n_batches"_a, "division"_a, "within"_a, "batch"_a,
               "arrived"_a, "batch_within"_a, "centroids"_a, "n_parts"_a, "n_threads"_a);
}

}  // namespace border
