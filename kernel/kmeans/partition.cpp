// Partition: made of arrays, sliced, and numbered anew.
#include "kmeans/partition.hpp"

#include <algorithm>
#include <utility>

#include "kmeans/checks.hpp"

namespace kmeander {
namespace {

template <class T>
void fill(Buffer<T> &buffer, std::span<const T> values) {
    buffer.resize(values.size());
    std::copy(values.begin(), values.end(), buffer.data());
}

std::shared_ptr<PointArrays> arrays_of(std::span<const float> upper, std::span<const float> lower,
                                       std::span<const double> snapshot, std::size_t k,
                                       std::size_t d, std::shared_ptr<const Axes> axes) {
    need(axes == nullptr || axes->d() == d, "axes do not fit the centroids");
    need(upper.size() == lower.size(), "the two bounds differ in length");
    auto arrays = std::make_shared<PointArrays>();
    fill(arrays->upper, upper);
    fill(arrays->lower, lower);
    arrays->snapshot.assign(snapshot.begin(), snapshot.end());
    arrays->k = k;
    arrays->d = d;
    arrays->axes = std::move(axes);
    return arrays;
}

}  // namespace

Bounds::Bounds(std::span<const float> upper, std::span<const float> lower,
               std::span<const double> snapshot, std::size_t k, std::size_t d,
               std::shared_ptr<const Axes> axes)
    : arrays_(arrays_of(upper, lower, snapshot, k, d, std::move(axes))),
      first_(0),
      count_(upper.size()) {}

Bounds::Bounds(std::shared_ptr<const PointArrays> arrays, std::size_t first, std::size_t count)
    : arrays_(std::move(arrays)), first_(first), count_(count) {}

ClusterSums::ClusterSums(std::shared_ptr<const SumArrays> arrays)
    : arrays_(std::move(arrays)), count_(arrays_->n_batches) {}

ClusterSums ClusterSums::slice(std::size_t first, std::size_t count) const {
    need(first + count <= count_, "more batches gone than there were");
    ClusterSums rest = *this;
    rest.first_ += first;
    rest.count_ = count;
    return rest;
}

Partition::Partition(std::shared_ptr<const PointArrays> points, std::optional<ClusterSums> sums)
    : points_(std::move(points)), count_(points_->labels.size()), sums_(std::move(sums)) {}

Partition::Partition(std::span<const std::int32_t> labels, const Bounds *bounds,
                     const ClusterSums *sums)
    : count_(labels.size()) {
    std::shared_ptr<PointArrays> points;
    if (bounds == nullptr) {
        points = std::make_shared<PointArrays>();
    } else {
        need(bounds->upper().size() == count_, "labels and bounds differ in length");
        need(are_labels(labels, bounds->k()), "bounds without labels");
        points = arrays_of(bounds->upper(), bounds->lower(), bounds->snapshot(), bounds->k(),
                           bounds->d(), bounds->axes());
    }
    fill(points->labels, labels);
    points_ = std::move(points);
    if (sums != nullptr) sums_ = *sums;
}

std::span<const std::int32_t> Partition::last_labels(std::size_t n_points, std::size_t k) const {
    need(count_ >= n_points, "labels and points differ in length");
    const std::span<const std::int32_t> last = labels().last(n_points);
    need(are_labels(last, k), "labels of no cluster");
    return last;
}

Partition Partition::without(std::size_t n_batches, std::size_t n_points) const {
    need(n_points <= count_, "more points gone than there were");
    Partition rest = *this;
    rest.first_ += n_points;
    rest.count_ -= n_points;
    if (sums_) {
        need(n_batches <= sums_->n_batches(), "more batches gone than there were");
        rest.sums_ = sums_->slice(n_batches, sums_->n_batches() - n_batches);
    }
    return rest;
}

Partition Partition::of_first_batch(std::size_t n_points) const {
    need(n_points <= count_, "labels and points differ in length");
    Partition first = *this;
    first.count_ = n_points;
    if (sums_) first.sums_ = sums_->slice(0, 1);
    return first;
}

Partition Partition::without_sums() const { return with_sums(std::nullopt); }

Partition Partition::with_sums(std::optional<ClusterSums> sums) const {
    Partition other = *this;
    other.sums_ = std::move(sums);
    return other;
}

Partition Partition::renumbered(std::span<const std::int64_t> order) const {
    const std::size_t k = order.size(), d = points_->d;
    need(has_bounds() && points_->k == k, "bounds of another number of clusters");
    const Bounds known = bounds();
    std::vector<std::int32_t> numbers(k, -1);
    auto points = std::make_shared<PointArrays>();
    points->snapshot.resize(k * d);
    points->k = k;
    points->d = d;
    points->axes = known.axes();
    for (std::size_t c = 0; c < k; ++c) {
        const std::int64_t from = order[c];
        need(from >= 0 && static_cast<std::size_t>(from) < k && numbers[from] < 0, "not an order");
        numbers[from] = static_cast<std::int32_t>(c);
        std::copy_n(known.snapshot().data() + static_cast<std::size_t>(from) * d, d,
                    points->snapshot.data() + c * d);
    }
    points->labels.resize(count_);
    std::transform(labels().begin(), labels().end(), points->labels.data(),
                   [&](std::int32_t label) { return numbers[label]; });
    fill(points->upper, known.upper());
    fill(points->lower, known.lower());
    return Partition(std::move(points));
}

}  // namespace kmeander
