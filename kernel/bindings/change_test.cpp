// Bindings of the change test: a value that Python holds from batch to batch.
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/handles.hpp"
#include "tracking/change_test.hpp"

namespace bindings {
namespace {

using kmeander::Cells;
using kmeander::ChangeTest;
using kmeander::Partition;

// Python holds a box, since nanobind knows no pointers to const.
struct ChangeTestBox {
    std::shared_ptr<const ChangeTest> test;
};

using ChangeTuple = std::tuple<int, int, int, int, double, double, double>;

std::shared_ptr<const Cells> cells_of(const WindowHandle &handle, const Partition &partition,
                                      const Centroids &centroids) {
    const kmeander::DecayedWindow &window = handle.window();
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(k > 0 && window.size() > 0, "no centroids or batches");
    window.need_columns(d);
    return std::make_shared<Cells>(window, partition, aligned(centroids.data()), k, d);
}

ChangeTestBox begin_stream(const WindowHandle &handle, const Partition &partition,
                           const Centroids &centroids, std::size_t period) {
    const Released released;
    return {std::make_shared<ChangeTest>(cells_of(handle, partition, centroids), period)};
}

ChangeTestBox begin_chapter(const ChangeTestBox &self, const WindowHandle &handle,
                            const Partition &partition, const Centroids &centroids,
                            const std::vector<std::int32_t> &renewed, std::size_t period) {
    const Released released;
    const Cells &before = self.test->cells();
    need(centroids.shape(0) == before.k() && centroids.shape(1) == before.d(),
         "another number of clusters or columns");
    need(kmeander::are_labels(renewed, before.k()), "no such cell");
    return {self.test->in_chapter(cells_of(handle, partition, centroids), renewed, period)};
}

std::tuple<ChangeTestBox, std::vector<ChangeTuple>, std::size_t> after(
    const ChangeTestBox &self, const BatchHandle &batch, const Partition &arrived,
    const std::tuple<double, double, double, double> &levels, std::size_t n_phases) {
    ChangeTest::Outcome outcome;
    {
        const Released released;
        need_rows(batch.view().rows, self.test->cells().d());
        const auto [share, place, spread, together] = levels;
        outcome = self.test->after(
            batch.view(), arrived,
            {.share = share, .place = place, .spread = spread, .together = together}, n_phases);
    }
    std::vector<ChangeTuple> changes;
    for (const kmeander::FoundChange &change : outcome.changes)
        changes.emplace_back(static_cast<int>(change.kind), change.n_batches, change.cell,
                             change.column, change.value, change.was, change.z);
    return {ChangeTestBox{std::move(outcome.next)}, std::move(changes), outcome.n_far};
}

nb::ndarray<nb::numpy, const double> copied(const std::vector<double> &values) {
    auto *copy = new std::vector<double>(values);
    const nb::capsule owner(
        copy, [](void *held) noexcept { delete static_cast<std::vector<double> *>(held); });
    return nb::ndarray<nb::numpy, const double>(copy->data(), {copy->size()}, owner);
}

// What a change test is made of, in the order of its constructor.
nb::tuple saved(const ChangeTestBox &self) {
    const Cells &cells = self.test->cells();
    const kmeander::ChangeTestArrays arrays = self.test->arrays();
    return nb::make_tuple(
        nb::make_tuple(cells.k(), cells.d(), self.test->period(), arrays.n_in_chapter, arrays.phase,
                       arrays.n_plain, arrays.in_season ? 1 : 0, arrays.n_tested),
        cells.n_independent(),
        nb::make_tuple(copied(cells.centres()), copied(cells.inverse()), copied(arrays.latest),
                       copied(arrays.latest_phases), copied(arrays.older), copied(arrays.origin),
                       copied(arrays.farthest), copied(arrays.phases), copied(arrays.is_known),
                       copied(arrays.noise_squares), copied(arrays.noise_counts),
                       copied(arrays.noise_families), copied(arrays.together),
                       copied(arrays.totals)));
}

void restore(ChangeTestBox *place, const std::vector<std::size_t> &counts, double n_independent,
             const std::vector<Weights> &arrays) {
    need(counts.size() == 8 && arrays.size() == 14, "not a saved change test");
    const std::size_t k = counts[0], d = counts[1], period = counts[2];
    const auto span = [&](std::size_t at) { return span_of(arrays[at]); };
    need(k > 0 && d > 0 && k <= span(0).size() && span(0).size() % k == 0 &&
             span(0).size() / k == d && span(1).size() == span(0).size() &&
             period <= span(8).size(),
         "cells do not fit each other");
    const auto vector_of = [&](std::size_t at) {
        return std::vector<double>(span(at).begin(), span(at).end());
    };
    auto cells = std::make_shared<Cells>(vector_of(0), vector_of(1), k, d, n_independent);
    const kmeander::SavedChangeTest state = {.n_in_chapter = counts[3],
                                             .latest = span(2),
                                             .older = span(4),
                                             .farthest = span(6),
                                             .origin = span(5),
                                             .latest_phases = span(3),
                                             .phases = span(7),
                                             .is_known = span(8),
                                             .phase = counts[4],
                                             .n_plain = counts[5],
                                             .n_tested = counts[7],
                                             .in_season = counts[6] != 0,
                                             .noise_squares = span(9),
                                             .noise_counts = span(10),
                                             .noise_families = span(11),
                                             .together = span(12),
                                             .totals = span(13)};
    new (place) ChangeTestBox{std::make_shared<ChangeTest>(std::move(cells), period, state)};
}

}  // namespace

void define_change_test(nb::module_ &module) {
    using namespace nb::literals;
    nb::class_<ChangeTestBox>(module, "ChangeTest", nb::is_final())
        .def("__init__", &restore, "counts"_a, "n_independent"_a, "arrays"_a.noconvert())
        .def_static("begin", &begin_stream, "window"_a, "partition"_a, "centroids"_a.noconvert(),
                    "period"_a)
        .def("in_chapter", &begin_chapter, "window"_a, "partition"_a, "centroids"_a.noconvert(),
             "renewed"_a, "period"_a)
        .def("after", &after, "batch"_a, "arrived"_a, "levels"_a, "n_phases"_a)
        .def_prop_ro("noise",
                     [](const ChangeTestBox &self) {
                         const kmeander::UsualNoise noise = self.test->usual_noise();
                         return std::make_tuple(noise.share, noise.place, noise.spread,
                                                noise.n_batches);
                     })
        .def_prop_ro("n_in_chapter",
                     [](const ChangeTestBox &self) { return self.test->n_in_chapter(); })
        .def_prop_ro("period", [](const ChangeTestBox &self) { return self.test->period(); })
        .def_prop_ro("saved", &saved)
        .def("__reduce__", [](nb::handle_t<ChangeTestBox> self) {
            return nb::make_tuple(self.type(), nb::object(self.attr("saved")));
        });
}

}  // namespace bindings
