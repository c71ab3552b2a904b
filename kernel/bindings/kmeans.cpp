// The border, for what a window holds: batches and the division of their points.
//
// Both are made once and looked at by every step that the batch is remembered; so Python hands over
// objects, not arrays, which would each have to be asked what they are.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/window.hpp"
#include "kmeans/distances.hpp"
#include "kmeans/lloyd.hpp"
#include "kmeans/local_search.hpp"
#include "kmeans/seeding.hpp"
#include "parallel/costs.hpp"
#include "parallel/team.hpp"

namespace border {

Window::Window(nb::tuple batches, const std::vector<double> &ages, double rho)
    : held_(std::move(batches)), decay_(ages.size()) {
    need(ages.size() == held_.size(), "one entry per batch is needed");
    double spread = 0.0;
    for (std::size_t b = 0; b < ages.size(); ++b) {
        need(nb::isinstance<Remembered>(held_[b]), "no batches");
        const Remembered *batch = nb::cast<const Remembered *>(held_[b]);
        batches_.push_back(batch);
        decay_[b] = std::pow(rho, ages[b]);
        const double decayed = decay_[b] * batch->mass;
        n_points_ += batch->rows.count;
        mass_ += decayed;
        spread += decayed * decayed / static_cast<double>(batch->rows.count);
        has_weights_ = has_weights_ || batch->shares != nullptr;
    }
    if (spread > 0.0) n_effective_ = mass_ * mass_ / spread;
}

namespace {

using kmeander::Buffer;
using kmeander::Division;

template <class T>
void fill(Buffer<T> &buffer, const T *from, std::size_t count) {
    buffer.resize(count);
    std::copy_n(from, count, buffer.data());
}

using In3 = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void make_division(Division *place, const In1<std::int32_t> &labels,
                   std::optional<In1<float>> upper, std::optional<In1<float>> lower,
                   std::optional<Centroids> snapshot, std::optional<Float64Rows> masses,
                   std::optional<In3> sums, std::optional<Float64Rows> scatter) {
    need(upper.has_value() == lower.has_value() && upper.has_value() == snapshot.has_value() &&
             masses.has_value() == sums.has_value() && masses.has_value() == scatter.has_value(),
         "bounds or totals are incomplete");
    const std::size_t n_points = labels.shape(0);
    auto points = std::make_shared<Division::Points>();
    fill(points->labels, labels.data(), n_points);
    if (snapshot) {
        need(upper->shape(0) == n_points && lower->shape(0) == n_points,
             "labels and bounds differ in length");
        fill(points->upper, upper->data(), n_points);
        fill(points->lower, lower->data(), n_points);
        points->snapshot.assign(snapshot->data(),
                                snapshot->data() + snapshot->shape(0) * snapshot->shape(1));
        need(are_labels(labels.data(), labels.data() + n_points, snapshot->shape(0)),
             "bounds without labels");
    }
    std::shared_ptr<Division::Totals> totals;
    if (masses) {
        const std::size_t n_batches = sums->shape(0), k = sums->shape(1), d = sums->shape(2);
        for (const auto &table : {*masses, *scatter})
            need(table.shape(0) == n_batches && table.shape(1) == k,
                 "masses, sums and scatter do not fit each other");
        totals = std::make_shared<Division::Totals>();
        totals->n_batches = n_batches;
        totals->k = k;
        totals->d = d;
        fill(totals->masses, masses->data(), n_batches * k);
        fill(totals->sums, sums->data(), n_batches * k * d);
        fill(totals->scatter, scatter->data(), n_batches * k);
    }
    new (place) Division{std::move(points), std::move(totals)};
}

// Arrays of a division, for Python to read; they keep it alive.
template <class T>
using Shown = nb::ndarray<nb::numpy, const T>;

template <class T>
Shown<T> shown(const T *data, std::initializer_list<std::size_t> shape, nb::handle owner) {
    return Shown<T>(data, shape, owner);
}

Shown<std::int32_t> show_labels(nb::handle_t<Division> self) {
    const Division &division = *nb::inst_ptr<Division>(self);
    return shown(division.points->labels.data(), {division.n_points()}, self);
}

nb::object show_bounds(nb::handle_t<Division> self) {
    const Division &division = *nb::inst_ptr<Division>(self);
    if (!division.has_bounds()) return nb::none();
    return nb::make_tuple(shown(division.points->upper.data(), {division.n_points()}, self),
                          shown(division.points->lower.data(), {division.n_points()}, self));
}

// (k * d,): only who made it knows its shape.
Shown<double> show_snapshot(nb::handle_t<Division> self) {
    const Division &division = *nb::inst_ptr<Division>(self);
    return shown(division.points->snapshot.data(), {division.points->snapshot.size()}, self);
}

nb::object show_totals(nb::handle_t<Division> self) {
    const Division &division = *nb::inst_ptr<Division>(self);
    if (!division.totals) return nb::none();
    const Division::Totals &totals = *division.totals;
    return nb::make_tuple(shown(totals.masses.data(), {totals.n_batches, totals.k}, self),
                          shown(totals.sums.data(), {totals.n_batches, totals.k, totals.d}, self),
                          shown(totals.scatter.data(), {totals.n_batches, totals.k}, self));
}

Shown<double> show_decay(nb::handle_t<Window> self) {
    const Window &window = *nb::inst_ptr<Window>(self);
    return shown(window.decay(), {window.size()}, self);
}

Division without_totals(const Division &division) { return {division.points, nullptr}; }

// The same clusters under other numbers: the one at `order[c]` becomes number c.
Division renumbered(const Division &division, const In1<std::int64_t> &order, std::size_t d) {
    const std::size_t k = order.shape(0);
    need(division.points->snapshot.size() == k * d, "bounds of another number of clusters");
    std::vector<std::int32_t> ids(k, -1);
    auto points = std::make_shared<Division::Points>();
    points->snapshot.resize(k * d);
    for (std::size_t c = 0; c < k; ++c) {
        const std::int64_t from = order.data()[c];
        need(from >= 0 && static_cast<std::size_t>(from) < k && ids[from] < 0, "not an order");
        ids[from] = static_cast<std::int32_t>(c);
        std::copy_n(division.points->snapshot.data() + static_cast<std::size_t>(from) * d, d,
                    points->snapshot.data() + c * d);
    }
    const std::size_t n_points = division.n_points();
    points->labels.resize(n_points);
    for (std::size_t i = 0; i < n_points; ++i) points->labels[i] = ids[division.points->labels[i]];
    fill(points->upper, division.points->upper.data(), n_points);
    fill(points->lower, division.points->lower.data(), n_points);
    return {std::move(points), nullptr};
}

// Decayed mass of each cluster in the batches that the division knows, after those that have gone.
void cluster_masses(const Window &window, const Division &division, std::size_t batches_gone,
                    std::size_t points_gone, Out1<double> masses) {
    const std::size_t k = masses.shape(0), n_points = division.n_points();
    std::fill_n(masses.data(), k, 0.0);
    if (division.totals) {
        const Division::Totals &totals = *division.totals;
        need(totals.k == k && batches_gone <= totals.n_batches &&
                 totals.n_batches - batches_gone <= window.size(),
             "totals do not fit the window");
        for (std::size_t b = batches_gone; b < totals.n_batches; ++b)
            for (std::size_t c = 0; c < k; ++c)
                masses.data()[c] += window.decay()[b - batches_gone] * totals.masses[b * k + c];
        return;
    }
    need(points_gone <= n_points, "more points gone than there were");
    const std::int32_t *next = division.points->labels.data() + points_gone;
    const std::int32_t *end = division.points->labels.data() + n_points;
    need(are_labels(next, end, k), "labels of no cluster");
    std::vector<double> added(k);
    for (std::size_t b = 0; b < window.size() && next < end; ++b) {
        const Remembered &batch = window[b];
        need(batch.rows.count <= static_cast<std::size_t>(end - next),
             "labels and points differ in length");
        std::fill(added.begin(), added.end(), 0.0);
        for (std::size_t i = 0; i < batch.rows.count; ++i)
            added[static_cast<std::size_t>(next[i])] += batch.shares ? batch.shares[i] : 1.0;
        for (std::size_t c = 0; c < k; ++c) masses.data()[c] += window.decay()[b] * added[c];
        next += batch.rows.count;
    }
}

std::tuple<double, double, Division> measure(const Remembered &batch, const Centroids &centroids,
                                             std::size_t n_threads) {
    need_rows(batch.rows, centroids.shape(1));
    need(centroids.shape(0) > 0, "no centroids");
    const std::size_t n_points = batch.rows.count, k = centroids.shape(0);
    const double *places = aligned(centroids.data());
    auto points = std::make_shared<Division::Points>();
    const nb::gil_scoped_release release;
    points->labels.resize(n_points);
    points->upper.resize(n_points);
    points->lower.resize(n_points);
    points->snapshot.assign(places, places + k * batch.rows.columns);
    const kmeander::MeanError found =
        kmeander::measure(batch.rows, batch.shares, places, k, n_threads, points->labels.data(),
                          points->upper.data(), points->lower.data());
    return {found.error, found.relative, Division{std::move(points), nullptr}};
}

std::tuple<std::size_t, std::int64_t, Division> seed(const Remembered &batch,
                                                     const Weights &uniforms,
                                                     Out1<std::int64_t> chosen,
                                                     std::size_t n_threads) {
    need(uniforms.shape(0) > 0 && chosen.shape(0) == uniforms.shape(0), "no uniforms");
    const std::size_t n_points = batch.rows.count, d = batch.rows.columns;
    auto points = std::make_shared<Division::Points>();
    const nb::gil_scoped_release release;
    points->labels.resize(n_points);
    points->upper.resize(n_points);
    points->lower.resize(n_points);
    const kmeander::SeedingReport seeds = kmeander::seed(
        batch.rows, batch.shares, uniforms.data(), uniforms.shape(0), n_threads, chosen.data(),
        points->labels.data(), points->upper.data(), points->lower.data());
    points->snapshot.resize(seeds.count * d);
    for (std::size_t s = 0; s < seeds.count; ++s)
        kmeander::instruction_set().widen(batch.rows, static_cast<std::size_t>(chosen.data()[s]),
                                          points->snapshot.data() + s * d);
    return {seeds.count, seeds.n_distances, Division{std::move(points), nullptr}};
}

// What is known of the points of a window: of its first batches by `known`, without those that it
// begins with and that have gone since, and of the newest.
struct KnownOf {
    const Division *known;
    std::size_t batches_gone, points_gone;
    const Division *newest;

    std::size_t n_points() const { return known == nullptr ? 0 : known->n_points() - points_gone; }
};

KnownOf check_known(const Division *known, std::size_t batches_gone, std::size_t points_gone,
                    const Division *newest, const Window &window, std::size_t n_points,
                    std::size_t n_places) {
    if (known != nullptr && !known->has_bounds()) known = nullptr;
    if (newest != nullptr && !newest->has_bounds()) newest = nullptr;
    const KnownOf found{known, batches_gone, points_gone, newest};
    if (known != nullptr) {
        need(points_gone <= known->n_points(), "more points gone than there were");
        const std::size_t older = n_points - window.back().rows.count;
        need(found.n_points() == n_points || found.n_points() == older,
             "labels and points differ in length");
        need(known->points->snapshot.size() == n_places, "a snapshot does not fit the centroids");
        need(!known->totals || batches_gone <= known->totals->n_batches,
             "more batches gone than there were");
    }
    if (newest != nullptr) {
        need(newest->n_points() == window.back().rows.count, "labels and points differ in length");
        need(newest->points->snapshot.size() == n_places, "a snapshot does not fit the centroids");
    }
    return found;
}

// Points that one task copies, and about how many multiplications would take as long as to copy
// one.

// Room for the points of a window, begun with what is known of them.
std::shared_ptr<Division::Points> begin_points(const KnownOf &found, std::size_t n_points,
                                               std::size_t n_threads) {
    auto points = std::make_shared<Division::Points>();
    points->labels.resize(n_points);
    points->upper.resize(n_points);
    points->lower.resize(n_points);
    const double operations = kmeander::costs::kPerCopiedPoint * static_cast<double>(n_points);
    kmeander::Team team(kmeander::worth_starting(n_threads, operations));
    const auto copy = [&](const Division::Points &from, std::size_t first, std::size_t to) {
        const std::size_t n_copied = from.labels.size() - first;
        const std::size_t n_parts =
            (n_copied + kmeander::costs::kCopiedPoints - 1) / kmeander::costs::kCopiedPoints;
        team.run(n_parts, operations, [&](std::size_t part, std::size_t) {
            const std::size_t begin = part * kmeander::costs::kCopiedPoints;
            const std::size_t count = std::min(kmeander::costs::kCopiedPoints, n_copied - begin);
            const std::size_t source = first + begin, target = to + begin;
            std::copy_n(from.labels.data() + source, count, points->labels.data() + target);
            std::copy_n(from.upper.data() + source, count, points->upper.data() + target);
            std::copy_n(from.lower.data() + source, count, points->lower.data() + target);
        });
    };
    if (found.known != nullptr) copy(*found.known->points, found.points_gone, 0);
    if (found.newest != nullptr)
        copy(*found.newest->points, 0, n_points - found.newest->n_points());
    return points;
}

using Report = std::tuple<Division, std::int64_t, std::int64_t, bool, double, double, double,
                          double, std::vector<std::int32_t>>;

Report lloyd(const Window &window, const Division *known, std::size_t batches_gone,
             std::size_t points_gone, const Division *newest, Out2 centroids,
             Out1<double> cluster_masses, std::optional<Centroids> before,
             std::optional<Out1<double>> moved, std::size_t max_iter, double shift,
             std::size_t n_threads) {
    const std::size_t n_batches = window.size();
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(k > 0, "no centroids");
    const std::size_t n_points = window.need_columns(d);
    need(cluster_masses.shape(0) == k, "cluster_masses needs one entry per cluster");
    need(before.has_value() == moved.has_value() &&
             (!before || (before->shape(0) == k && before->shape(1) == d && moved->shape(0) == k)),
         "places before do not fit the centroids");
    const KnownOf found =
        check_known(known, batches_gone, points_gone, newest, window, n_points, k * d);
    const auto interrupted = [] {
        const nb::gil_scoped_acquire acquire;
        return PyErr_CheckSignals() != 0;
    };
    try {
        const nb::gil_scoped_release release;
        const std::shared_ptr<Division::Points> points = begin_points(found, n_points, n_threads);
        const auto totals = std::make_shared<Division::Totals>();
        totals->n_batches = n_batches;
        totals->k = k;
        totals->d = d;
        totals->masses.resize(n_batches * k);
        totals->sums.resize(n_batches * k * d);
        totals->scatter.resize(n_batches * k);
        std::size_t n_summed = 0;  // batches whose totals are known
        const Division::Totals *summed =
            found.known == nullptr ? nullptr : found.known->totals.get();
        if (summed != nullptr && summed->k == k && summed->d == d) {
            n_summed = std::min(summed->n_batches - batches_gone, n_batches);
            const std::size_t first = batches_gone * k;
            std::copy_n(summed->masses.data() + first, n_summed * k, totals->masses.data());
            std::copy_n(summed->sums.data() + first * d, n_summed * k * d, totals->sums.data());
            std::copy_n(summed->scatter.data() + first, n_summed * k, totals->scatter.data());
        }
        std::vector<kmeander::WorkingBatch> batches;
        batches.reserve(n_batches);
        std::size_t begin = 0;
        for (std::size_t b = 0; b < n_batches; ++b) {
            const double *snapshot = nullptr;
            if (begin < found.n_points())
                snapshot = found.known->points->snapshot.data();
            else if (b + 1 == n_batches && found.newest != nullptr)
                snapshot = found.newest->points->snapshot.data();
            batches.push_back({.rows = window[b].rows,
                               .weights = window[b].shares,
                               .decay = window.decay()[b],
                               .labels = points->labels.data() + begin,
                               .upper = points->upper.data() + begin,
                               .lower = points->lower.data() + begin,
                               .snapshot = snapshot,
                               .masses = totals->masses.data() + b * k,
                               .sums = totals->sums.data() + b * k * d,
                               .scatter = totals->scatter.data() + b * k,
                               .summed = b < n_summed});
            begin += window[b].rows.count;
        }
        kmeander::LloydReport report =
            kmeander::lloyd(batches, k, centroids.data(), {max_iter, shift, n_threads, interrupted},
                            cluster_masses.data());
        points->snapshot.assign(centroids.data(), centroids.data() + k * d);
        for (std::size_t c = 0; before && c < k; ++c) {
            const double *now = centroids.data() + c * d, *then = before->data() + c * d;
            double squared;
            kmeander::instruction_set().squared_pairs(&now, &then, 1, d, &squared);
            moved->data()[c] = std::sqrt(squared);
        }
        return {Division{points, totals}, report.n_iter,       report.n_distances,
                report.converged,         report.first.window, report.last.window,
                report.last.newest,       report.left_out,     std::move(report.reseeded)};
    } catch (const kmeander::Interrupted &) {
        throw nb::python_error();  // what the signal's handler raised, KeyboardInterrupt as a rule
    }
}

// Known parts as one, if both are known at `centroids` and cover all points. Its totals are those
// of the first, of which batches may have gone.
std::optional<Division> joined(const Window &window, const Division *known,
                               std::size_t batches_gone, std::size_t points_gone,
                               const Division *newest, const Centroids &centroids) {
    const std::size_t n_places = centroids.shape(0) * centroids.shape(1);
    const std::size_t n_points = window.need_columns(centroids.shape(1));
    const KnownOf found =
        check_known(known, batches_gone, points_gone, newest, window, n_points, n_places);
    std::size_t n_known = found.n_points();
    if (n_known < n_points && found.newest != nullptr) n_known += found.newest->n_points();
    if (n_known < n_points) return std::nullopt;
    for (const Division *part : {found.known, found.newest})
        if (part != nullptr && !std::equal(part->points->snapshot.begin(),
                                           part->points->snapshot.end(), centroids.data()))
            return std::nullopt;
    const std::shared_ptr<Division::Points> points = begin_points(found, n_points, 1);
    points->snapshot.assign(centroids.data(), centroids.data() + n_places);
    return Division{points, found.known == nullptr ? nullptr : found.known->totals};
}

std::tuple<Division, std::int64_t, std::int64_t, std::vector<std::int32_t>> swap(
    const Window &window, const Division &division, Out2 centroids, const Weights &uniforms,
    std::size_t n_threads) {
    const std::size_t k = centroids.shape(0), d = centroids.shape(1);
    need(k > 0, "no centroids");
    const std::size_t n_points = window.need_columns(d);
    need(division.n_points() == n_points && division.points->snapshot.size() == k * d,
         "bounds of other points or centroids");
    const nb::gil_scoped_release release;
    const auto points = begin_points({&division, 0, 0, nullptr}, n_points, n_threads);
    std::vector<kmeander::WorkingBatch> batches;
    std::size_t begin = 0;
    for (std::size_t b = 0; b < window.size(); ++b) {
        batches.push_back({.rows = window[b].rows,
                           .weights = window[b].shares,
                           .decay = window.decay()[b],
                           .labels = points->labels.data() + begin,
                           .upper = points->upper.data() + begin,
                           .lower = points->lower.data() + begin,
                           .snapshot = centroids.data()});
        begin += window[b].rows.count;
    }
    kmeander::SwapReport report = kmeander::swap_centroids(
        batches, k, centroids.data(), uniforms.data(), uniforms.shape(0), n_threads);
    points->snapshot.assign(centroids.data(), centroids.data() + k * d);
    // Without a swap no label has changed.
    return {Division{points, report.n_swaps == 0 ? division.totals : nullptr}, report.n_swaps,
            report.n_distances, std::move(report.swapped)};
}

}  // namespace

void define_window(nb::module_ &module) {
    using namespace nb::literals;
    nb::class_<Remembered>(module, "Rows", nb::is_final())
        .def(nb::init<Points, std::optional<Weights>, double>(), "points"_a, "weights"_a.none(),
             "mass"_a);
    nb::class_<Division>(module, "Division", nb::is_final())
        .def("__init__", &make_division, "labels"_a, "upper"_a.none() = nb::none(),
             "lower"_a.none() = nb::none(), "snapshot"_a.none() = nb::none(),
             "masses"_a.none() = nb::none(), "sums"_a.none() = nb::none(),
             "scatter"_a.none() = nb::none())
        .def_prop_ro("labels", &show_labels)
        .def_prop_ro("bounds", &show_bounds)
        .def_prop_ro("snapshot", &show_snapshot)
        .def_prop_ro("totals", &show_totals)
        .def("without_totals", &without_totals)
        .def("renumbered", &renumbered, "order"_a, "d"_a);
    nb::class_<Window>(module, "Window", nb::is_final())
        .def(nb::init<nb::tuple, const std::vector<double> &, double>(), "batches"_a, "ages"_a,
             "rho"_a)
        .def_prop_ro("decay", &show_decay)
        .def_prop_ro("n_points", &Window::n_points)
        .def_prop_ro("mass", &Window::mass)
        .def_prop_ro("n_effective", &Window::n_effective)
        .def_prop_ro("has_weights", &Window::has_weights);
    module.def("cluster_masses", &cluster_masses, "window"_a, "division"_a, "batches_gone"_a,
               "points_gone"_a, "masses"_a.noconvert());
    module.def("measure", &measure, "batch"_a, "centroids"_a, "n_threads"_a);
    module.def("seed", &seed, "batch"_a, "uniforms"_a, "chosen"_a.noconvert(), "n_threads"_a);
    module.def("lloyd", &lloyd, "window"_a, "known"_a.none(), "batches_gone"_a, "points_gone"_a,
               "newest"_a.none(), "centroids"_a.noconvert(), "cluster_masses"_a.noconvert(),
               "before"_a.none(), "moved"_a.noconvert().none(), "max_iter"_a, "shift"_a,
               "n_threads"_a);
    module.def("joined", &joined, "window"_a, "known"_a.none(), "batches_gone"_a, "points_gone"_a,
               "newest"_a.none(), "centroids"_a);
    module.def("swap", &swap, "window"_a, "division"_a, "centroids"_a.noconvert(), "uniforms"_a,
               "n_threads"_a);
    define_reading(module);
}

}  // namespace border
