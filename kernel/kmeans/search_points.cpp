// Points of a window by cluster: their costs, and what a cluster's removal would cost.
#include "kmeans/search_points.hpp"

#include <algorithm>
#include <cmath>

namespace kmeander {
namespace {

double operations_of(const std::vector<WorkingBatch> &batches) {
    double operations = 0.0;
    for (const WorkingBatch &batch : batches)
        operations += 1.0 * batch.rows.count * batch.rows.columns;
    return operations;
}

}  // namespace

SearchPoints::SearchPoints(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
                           std::size_t n_threads)
    : batches_(batches),
      k_(k),
      d_(batches.front().rows.columns),
      centroids_(centroids),
      set_(instruction_set()),
      operations_(operations_of(batches)),
      team_(worth_starting(n_threads, operations_)),
      packed_(k, d_),
      scratch_(team_.size(), d_),
      clusters_(k) {
    std::size_t n_points = 0;
    for (const WorkingBatch &batch : batches_) n_points += batch.rows.count;
    points_.reserve(n_points);
    for (std::uint32_t b = 0; b < batches_.size(); ++b)
        for (std::uint32_t i = 0; i < batches_[b].rows.count; ++i)
            points_.push_back({b, i, batches_[b].decay * weight_of(batches_[b], i)});
    members_.resize(n_points);
    packed_.pack(centroids_);
    measure_own();
    group();
}

double SearchPoints::squared_to(const SearchPoint &point, const double *place) const {
    double squared;
    set_.squared_to(batches_[point.batch].rows, point.row, point.row + 1, place, &squared);
    return squared;
}

void SearchPoints::set_reach(SearchPoint &point) {
    point.reach = std::sqrt(point.own) + std::sqrt(point.second);
}

void SearchPoints::measure_own() {
    team_.run(n_chunks(points_.size()), operations_, [&](std::size_t chunk, std::size_t) {
        const std::size_t end = std::min((chunk + 1) * kChunkRows, points_.size());
        for (std::size_t i = chunk * kChunkRows; i < end; ++i) {
            SearchPoint &point = points_[i];
            const WorkingBatch &batch = batches_[point.batch];
            const double lower = std::max(0.0F, batch.lower[point.row]);
            point.own = squared_to(point, centroids_ + batch.labels[point.row] * d_);
            // The own centroid is the nearest, however loose the bound has become.
            point.second = std::max(point.own, lower * lower);
            set_reach(point);
        }
    });
    n_distances_ += static_cast<std::int64_t>(points_.size());
}

void SearchPoints::group() {
    for (SearchCluster &cluster : clusters_) cluster.end = 0;
    for (const SearchPoint &point : points_) ++clusters_[label_of(point)].end;
    std::size_t end = 0;
    for (SearchCluster &cluster : clusters_) {
        cluster.begin = end;
        end += cluster.end;
        cluster.end = cluster.begin;
    }
    for (std::uint32_t i = 0; i < points_.size(); ++i)
        members_[clusters_[label_of(points_[i])].end++] = i;
    team_.run(k_, operations_, [&](std::size_t c, std::size_t) { add_up(clusters_[c]); });
}

void SearchPoints::add_up(SearchCluster &cluster) const {
    cluster.cost = cluster.loss = cluster.reach = 0.0;
    cluster.exact = true;
    for (std::size_t m = cluster.begin; m < cluster.end; ++m) {
        const SearchPoint &point = points_[members_[m]];
        cluster.reach = std::max(cluster.reach, point.reach);
        if (point.weight <= 0.0) continue;
        cluster.cost += point.weight * point.own;
        cluster.loss += point.weight * (point.second - point.own);
        cluster.exact = cluster.exact && point.exact;
    }
}

void SearchPoints::find_seconds(std::size_t c) {
    SearchCluster &cluster = clusters_[c];
    std::vector<std::uint32_t> unknown;
    for (std::size_t m = cluster.begin; m < cluster.end; ++m)
        if (!points_[members_[m]].exact) unknown.push_back(members_[m]);
    measure(unknown, [&](SearchPoint &point, std::int32_t label, double, double second) {
        // Another centroid may be as near, or nearer by a rounding.
        const bool tied = label != static_cast<std::int32_t>(c);
        point.second = tied ? point.own : std::max(second, point.own);
        point.exact = true;
        set_reach(point);
    });
    add_up(cluster);
}

void SearchPoints::measure(const std::vector<std::uint32_t> &positions, const Found &found) {
    const std::size_t n_groups = (positions.size() + kGroupRows - 1) / kGroupRows;
    const double operations = static_cast<double>(positions.size() * k_ * d_);
    team_.run(n_groups, operations, [&](std::size_t group, std::size_t worker) {
        const std::size_t begin = group * kGroupRows;
        const std::size_t count = std::min(kGroupRows, positions.size() - begin);
        const double *rows[kGroupRows] = {};
        for (std::size_t i = 0; i < count; ++i) {
            const SearchPoint &point = points_[positions[begin + i]];
            rows[i] = point_at(batches_[point.batch].rows, point.row, scratch_.of(worker) + i * d_);
        }
        std::int32_t labels[kGroupRows];
        double squared[kGroupRows], second[kGroupRows];
        set_.nearest(rows, count, d_, packed_.blocks(), packed_.all(), packed_.n_blocks(), labels,
                     squared, second);
        for (std::size_t i = 0; i < count; ++i)
            found(points_[positions[begin + i]], labels[i], squared[i], second[i]);
    });
    n_distances_ += static_cast<std::int64_t>(positions.size() * k_);
}

}  // namespace kmeander
