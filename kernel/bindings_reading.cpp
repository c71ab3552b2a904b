// The border, for what reads a division: whether K fits, what has changed, where points went.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings_window.hpp"
#include "changes.hpp"
#include "valleys.hpp"

namespace border {
namespace {

using kmeander::Division;

void valleys(const Window &window, std::size_t first, const Weights &decay, const Division &division,
             const Centroids &centroids, const Weights &masses, std::size_t rows_per_cluster,
             double shallow, Out1<std::int32_t> neighbours, Out1<double> as_one,
             Out1<double> as_two) {
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(k > 0 && rows_per_cluster > 0, "no centroids or rows");
    const std::size_t n_points = count_points(window, d);
    need(decay.shape(0) == window.size() && first < window.size(), "one entry per batch is needed");
    for (const std::size_t length :
         {masses.shape(0), neighbours.shape(0), as_one.shape(0), as_two.shape(0)})
        need(length == k, "one entry per cluster is needed");
    // Labels are only read.
    auto *next = const_cast<std::int32_t *>(last_labels(division, n_points, k));
    for (std::size_t b = 0; b < first; ++b) next += window[b]->rows.count;
    std::vector<kmeander::Batch> batches;
    for (std::size_t b = first; b < window.size(); ++b) {
        batches.push_back({window[b]->rows, window[b]->shares, decay.data()[b], next, nullptr,
                           nullptr, nullptr, nullptr, nullptr, nullptr, false});
        next += window[b]->rows.count;
    }
    const nb::gil_scoped_release release;
    kmeander::score_valleys(batches, aligned(centroids.data()), k, masses.data(), rows_per_cluster,
                            shallow, neighbours.data(), as_one.data(), as_two.data());
}

using Named = std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>,
                         std::vector<std::int32_t>>;

Named compare(const Division &division, const Weights &decay, std::optional<Weights> points_per_mass,
              std::optional<In1<bool>> is_whole, const In1<std::int64_t> &oldest,
              const In1<std::int64_t> &since, const Weights &moved, double moved_level,
              double share_level, Out2 evidence) {
    need(division.totals != nullptr, "a division without totals");
    const Division::Totals &known = *division.totals;
    const std::size_t n_batches = known.n_batches, k = known.k;
    need(decay.shape(0) == n_batches && oldest.shape(0) == n_batches &&
             (!is_whole || is_whole->shape(0) == n_batches),
         "one entry per batch is needed");
    need(since.shape(0) == k && moved.shape(0) == k, "one entry per cluster is needed");
    need(evidence.shape(0) == kmeander::n_evidence && evidence.shape(1) == k,
         "evidence has the wrong shape");
    const kmeander::Totals totals{
        n_batches, k, known.d, known.masses.data(), known.sums.data(), known.scatter.data()};
    const kmeander::Chapters chapters{
        decay.data(), data_or_null(points_per_mass, n_batches),
        is_whole ? reinterpret_cast<const std::uint8_t *>(is_whole->data()) : nullptr,
        oldest.data(), since.data()};
    kmeander::Suspects found = kmeander::compare(totals, chapters, moved.data(), moved_level,
                                                 share_level, evidence.data());
    return {std::move(found.moved), std::move(found.share), std::move(found.elsewhere)};
}

// Weight that went from each cluster before to each cluster now: decayed in all batches, and in the
// newest, whose points `arrived` divides by the clusters before.
void flows(const Window &window, const Weights &decay, const Division *known, std::size_t points_gone,
           const Division &arrived, const Division &found, Out2 flow, Out2 newest) {
    const std::size_t k = flow.shape(0);
    need(!window.empty() && decay.shape(0) == window.size(), "one entry per batch is needed");
    for (const Out2 &table : {flow, newest})
        need(table.shape(0) == k && table.shape(1) == k, "flows are from each cluster to each");
    const std::size_t n_points = count_points(window, window.front()->rows.columns);
    const std::size_t n_older = n_points - window.back()->rows.count;
    need(n_older == 0 || (known != nullptr && known->n_points() >= points_gone + n_older),
         "labels and points differ in length");
    need(arrived.n_points() == window.back()->rows.count, "labels and points differ in length");
    const std::int32_t *now = last_labels(found, n_points, k);
    const std::int32_t *then = nullptr;
    if (n_older > 0) {
        then = known->points->labels.data() + points_gone;
        need(are_labels(then, then + n_older, k), "labels of no cluster");
    }
    std::fill_n(flow.data(), k * k, 0.0);
    std::fill_n(newest.data(), k * k, 0.0);
    for (std::size_t b = 0; b < window.size(); ++b) {
        const Remembered &batch = *window[b];
        const bool is_newest = b + 1 == window.size();
        if (is_newest) then = last_labels(arrived, batch.rows.count, k);
        for (std::size_t i = 0; i < batch.rows.count; ++i) {
            const double weight = batch.shares == nullptr ? 1.0 : batch.shares[i];
            const std::size_t pair = static_cast<std::size_t>(then[i]) * k +
                                     static_cast<std::size_t>(now[i]);
            flow.data()[pair] += decay.data()[b] * weight;
            if (is_newest) newest.data()[pair] += weight;
        }
        then += batch.rows.count;
        now += batch.rows.count;
    }
}

void moments(const Window &window, const Weights &decay, const Division &division,
             const Centroids &centroids, Out1<double> masses, Out2 sums, Out2 squares) {
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    const std::size_t n_points = count_points(window, d);
    need(decay.shape(0) == window.size(), "one entry per batch is needed");
    need(masses.shape(0) == k && sums.shape(0) == k && sums.shape(1) == d &&
             squares.shape(0) == k && squares.shape(1) == d,
         "masses, sums or squares do not fit the centroids");
    const std::int32_t *next = last_labels(division, n_points, k);
    const nb::gil_scoped_release release;
    std::fill_n(masses.data(), k, 0.0);
    std::fill_n(sums.data(), k * d, 0.0);
    std::fill_n(squares.data(), k * d, 0.0);
    for (std::size_t b = 0; b < window.size(); ++b) {
        kmeander::instruction_set().add_moments(window[b]->rows, window[b]->shares, decay.data()[b],
                                                next, centroids.data(), masses.data(), sums.data(),
                                                squares.data());
        next += window[b]->rows.count;
    }
}

}  // namespace

void define_reading(nb::module_ &module) {
    using namespace nb::literals;
    module.def("valleys", &valleys, "window"_a, "first"_a, "decay"_a, "division"_a, "centroids"_a,
               "masses"_a, "rows_per_cluster"_a, "shallow"_a, "neighbours"_a.noconvert(),
               "as_one"_a.noconvert(), "as_two"_a.noconvert());
    module.def("compare", &compare, "division"_a, "decay"_a, "points_per_mass"_a.none(),
               "is_whole"_a.none(), "oldest"_a, "since"_a, "moved"_a, "moved_level"_a,
               "share_level"_a, "evidence"_a.noconvert());
    module.def("flows", &flows, "window"_a, "decay"_a, "known"_a.none(), "points_gone"_a, "arrived"_a,
               "found"_a, "flow"_a.noconvert(), "newest"_a.noconvert());
    module.def("moments", &moments, "window"_a, "decay"_a, "division"_a, "centroids"_a,
               "masses"_a.noconvert(), "sums"_a.noconvert(), "squares"_a.noconvert());
}

}  // namespace border
