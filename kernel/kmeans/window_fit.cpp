// Lloyd and local search on a window: what is known is copied, then brought up to date.
#include "kmeans/window_fit.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kmeans/checks.hpp"
#include "parallel/costs.hpp"
#include "parallel/team.hpp"

namespace kmeander {
namespace {

// The known partitions that have bounds, checked against the window.
KnownPartitions bounded(const KnownPartitions &known, const DecayedWindow &window,
                        CentroidsShape shape) {
    need(shape.k > 0, "no centroids");
    window.need_columns(shape.d);
    const auto with_bounds = [](const Partition *partition) {
        return partition != nullptr && partition->has_bounds() ? partition : nullptr;
    };
    const KnownPartitions found = {with_bounds(known.older), with_bounds(known.newest)};
    const std::size_t n_newest = window.newest().rows.count;
    if (found.older != nullptr)
        need(found.older->n_points() == window.n_points() ||
                 found.older->n_points() == window.n_points() - n_newest,
             "labels and points differ in length");
    if (found.newest != nullptr)
        need(found.newest->n_points() == n_newest, "labels and points differ in length");
    for (const Partition *partition : {found.older, found.newest})
        need(partition == nullptr ||
                 (partition->bounds().k() == shape.k && partition->bounds().d() == shape.d),
             "a snapshot does not fit the centroids");
    return found;
}

// Labels and bounds of all points, begun with what is known of them.
std::shared_ptr<PointArrays> begin_points(const KnownPartitions &known, std::size_t n_points,
                                          std::size_t n_threads) {
    auto points = std::make_shared<PointArrays>(n_points);
    const double operations = costs::kPerCopiedPoint * static_cast<double>(n_points);
    Team team(worth_starting(n_threads, operations));
    const auto copy = [&](const Partition &from, std::size_t to) {
        const std::int32_t *labels = from.labels().data();
        const Bounds bounds = from.bounds();
        const float *upper = bounds.upper().data(), *lower = bounds.lower().data();
        const std::size_t n_copied = from.n_points();
        const std::size_t n_parts = (n_copied + costs::kCopiedPoints - 1) / costs::kCopiedPoints;
        team.run(n_parts, operations, [&](std::size_t part, std::size_t) {
            const std::size_t begin = part * costs::kCopiedPoints;
            const std::size_t count = std::min(costs::kCopiedPoints, n_copied - begin);
            std::copy_n(labels + begin, count, points->labels.data() + to + begin);
            std::copy_n(upper + begin, count, points->upper.data() + to + begin);
            std::copy_n(lower + begin, count, points->lower.data() + to + begin);
        });
    };
    if (known.older != nullptr) copy(*known.older, 0);
    if (known.newest != nullptr) copy(*known.newest, n_points - known.newest->n_points());
    return points;
}

// The batches of the window with their part of labels and bounds.
std::vector<WorkingBatch> working_batches(const DecayedWindow &window, PointArrays &points) {
    std::vector<WorkingBatch> batches;
    batches.reserve(window.size());
    std::size_t begin = 0;
    for (std::size_t b = 0; b < window.size(); ++b) {
        batches.push_back({.rows = window[b].rows,
                           .weights = window[b].weights,
                           .decay = window.decay()[b],
                           .labels = points.labels.data() + begin,
                           .upper = points.upper.data() + begin,
                           .lower = points.lower.data() + begin});
        begin += window[b].rows.count;
    }
    return batches;
}

void set_snapshot(PointArrays &points, const double *centroids, CentroidsShape shape) {
    points.snapshot.assign(centroids, centroids + shape.k * shape.d);
    points.k = shape.k;
    points.d = shape.d;
}

// Whether all points are known, at these centroids.
bool are_known_at(const KnownPartitions &known, const DecayedWindow &window,
                  const double *centroids) {
    std::size_t n_known = known.older == nullptr ? 0 : known.older->n_points();
    if (n_known < window.n_points() && known.newest != nullptr) n_known += known.newest->n_points();
    if (n_known < window.n_points()) return false;
    for (const Partition *partition : {known.older, known.newest}) {
        if (partition == nullptr) continue;
        const Bounds bounds = partition->bounds();
        if (!std::equal(bounds.snapshot().begin(), bounds.snapshot().end(), centroids))
            return false;
    }
    return true;
}

// Axes for the leading coordinates by which points are assigned: those by which they were, or new
// ones; null where bounds alone are better.
std::shared_ptr<const Axes> axes_of(const KnownPartitions &known, const DecayedWindow &window,
                                    const double *centroids, CentroidsShape shape) {
    if (!is_screened(shape.k, shape.d)) return nullptr;
    for (const Partition *partition : {known.older, known.newest})
        if (partition != nullptr && partition->bounds().axes() != nullptr)
            return partition->bounds().axes();
    if (are_apart(window.newest().rows, centroids, shape.k)) return nullptr;
    return find_axes(window.newest().rows);
}

// That there are no directions which lead, from now on.
std::shared_ptr<const Axes> without_axes(const Axes &axes) {
    return std::make_shared<const Axes>(axes.values().first(axes.d()), axes.d());
}

}  // namespace

LloydFit fit_window(const DecayedWindow &window, const KnownPartitions &given, double *centroids,
                    CentroidsShape shape, const LloydLimits &limits, double *masses) {
    const KnownPartitions known = bounded(given, window, shape);
    const auto [k, d] = shape;
    const std::shared_ptr<PointArrays> points =
        begin_points(known, window.n_points(), limits.n_threads);
    const auto sums = std::make_shared<SumArrays>(window.size(), k, d);
    std::size_t n_summed = 0;  // batches whose sums are known
    if (known.older != nullptr && known.older->sums()) {
        const ClusterSums &before = *known.older->sums();
        if (before.k() == k && before.d() == d) {
            n_summed = std::min(before.n_batches(), window.size());
            std::copy_n(before.masses(), n_summed * k, sums->masses.data());
            std::copy_n(before.sums(), n_summed * k * d, sums->sums.data());
            std::copy_n(before.scatter(), n_summed * k, sums->scatter.data());
        }
    }
    std::vector<WorkingBatch> batches = working_batches(window, *points);
    const std::size_t n_older = known.older == nullptr ? 0 : known.older->n_points();
    std::size_t begin = 0;
    for (std::size_t b = 0; b < batches.size(); ++b) {
        WorkingBatch &batch = batches[b];
        if (begin < n_older)
            batch.snapshot = known.older->bounds().snapshot().data();
        else if (b + 1 == batches.size() && known.newest != nullptr)
            batch.snapshot = known.newest->bounds().snapshot().data();
        batch.masses = sums->masses.data() + b * k;
        batch.sums = sums->sums.data() + b * k * d;
        batch.scatter = sums->scatter.data() + b * k;
        batch.summed = b < n_summed;
        begin += batch.rows.count;
    }
    LloydLimits here = limits;
    here.axes = axes_of(known, window, centroids, shape);
    std::vector<std::shared_ptr<const LeadingPoints>> leading;
    if (here.axes != nullptr) {
        Team team(worth_starting(limits.n_threads, static_cast<double>(window.n_points() * d) *
                                                       static_cast<double>(here.axes->count())));
        for (std::size_t b = 0; b < window.size(); ++b) {
            leading.push_back(window[b].leading->of(here.axes, window[b].rows, team));
            batches[b].leading = leading.back()->entries.data();
        }
    }
    LloydReport report = lloyd(batches, k, centroids, here, masses);
    set_snapshot(*points, centroids, shape);
    points->axes = report.axes_serve ? here.axes : without_axes(*here.axes);
    return {Partition(points, ClusterSums(sums)), std::move(report)};
}

std::optional<SwapFit> search_window(const DecayedWindow &window, const KnownPartitions &given,
                                     double *centroids, CentroidsShape shape,
                                     std::span<const double> uniforms, std::size_t n_threads,
                                     bool on_sphere) {
    const KnownPartitions known = bounded(given, window, shape);
    if (!are_known_at(known, window, centroids)) return std::nullopt;
    const std::shared_ptr<PointArrays> points = begin_points(known, window.n_points(), n_threads);
    std::vector<WorkingBatch> batches = working_batches(window, *points);
    SwapReport report = swap_centroids(batches, shape.k, centroids, uniforms.data(),
                                       uniforms.size(), n_threads, on_sphere);
    set_snapshot(*points, centroids, shape);
    std::optional<ClusterSums> sums;
    // Without a swap no label has changed.
    if (report.n_swaps == 0 && known.older != nullptr) sums = known.older->sums();
    return SwapFit{Partition(points, std::move(sums)), std::move(report)};
}

SplitMergeReport exchange_clusters(const DecayedWindow &window, const Partition &found,
                                   double *centroids, CentroidsShape shape,
                                   std::span<const double> uniforms, std::size_t n_threads) {
    const KnownPartitions known = bounded({&found, nullptr}, window, shape);
    need(are_known_at(known, window, centroids), "the partition is not at these centroids");
    need(uniforms.size() == 2 * shape.k, "two uniforms per cluster are needed");
    const std::shared_ptr<PointArrays> points = begin_points(known, window.n_points(), n_threads);
    std::vector<WorkingBatch> batches = working_batches(window, *points);
    return split_and_merge(batches, shape.k, centroids, uniforms.data(), n_threads);
}

}  // namespace kmeander
