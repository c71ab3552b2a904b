// Nearest centroids by leading coordinates: packing, thresholds, and the second look.
#include "kmeans/leading_screen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "kmeans/points.hpp"
#include "parallel/costs.hpp"
#include "simd/rounding.hpp"

namespace kmeander {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargestFloat = std::numeric_limits<float>::max();
constexpr float kTiniest = std::numeric_limits<float>::min();
// Rounding of a float, and what was left out beside it; as in simd/screen.hpp.
constexpr float kRounding = 0x1p-24F, kSlack = 1.1F;
// As a share of its length, how far a point may be off: it and its coordinates have been rounded.
constexpr double kPointOff = 0x1p-22;
// As a share of its squared length, how far the squared length of a rest may be off: axes may not
// be quite orthonormal, and sums are rounded.
constexpr double kRestOff = 1e-10;
// (R + e)^2 <= (1 + s) R^2 + (1 + 1 / s) e^2 for any s: so a centroid's e does not depend on R.
constexpr double kShareApart = 0x1p-20;
// Beyond this, scores might overflow: nothing is ruled out.
constexpr double kLargest = 1e36;

}  // namespace

LeadingScreen::LeadingScreen(std::shared_ptr<const Axes> axes, std::size_t k)
    : axes_(std::move(axes)),
      k_(k),
      d_(axes_->d()),
      stride_(axes_->stride()),
      padded_(axes_->padded()),
      n_blocks_((k + instruction_set().floats - 1) / instruction_set().floats),
      set_(instruction_set()),
      share_(0.5F * kSlack * kRounding * static_cast<float>(d_ + 2)),
      tiny_(2.0F * std::sqrt(static_cast<float>(d_) * kTiniest)),
      n_leading_(axes_->count()),
      order_(k),
      places_(k),
      moved_(k),
      rows_(k * padded_),
      lengths_(k),
      bias_(n_blocks_ * set_.floats) {
    std::fill_n(bias_.data(), bias_.size(), -kInfinity);
}

// Another axis costs a column of all pairs, and saves distances.
void LeadingScreen::choose_leading(const ScreenCount &counted) {
    const double n_pairs = static_cast<double>(counted.n_pairs - counted_.n_pairs);
    const double n_left = static_cast<double>(counted.n_left - counted_.n_left);
    counted_ = counted;
    // The first pass is not like the others: its centroids may be points.
    if (n_leading_ == 0 || n_pairs <= 0.0 || ++n_passes_ < 2) return;
    const double width = static_cast<double>(d_);
    const double look = costs::kPerCandidateValue * width * n_left / n_pairs;
    if (look > costs::kMostLook && n_leading_ == axes_->count()) {
        if (static_cast<double>(n_leading_) + look > width) n_leading_ = 0;
    } else if (look > costs::kMostLook) {
        n_leading_ += Axes::kStep;
    } else if (look < costs::kLeastLook && n_leading_ > Axes::kStep) {
        n_leading_ -= Axes::kStep;
    }
}

// Put the centroids in order, those that have moved farthest first.
void LeadingScreen::sort(const float *moved) {
    std::iota(order_.begin(), order_.end(), 0U);
    if (moved != nullptr)
        std::stable_sort(
            order_.begin(), order_.end(),
            [moved](std::uint32_t one, std::uint32_t other) { return moved[one] > moved[other]; });
    for (std::size_t place = 0; place < k_; ++place) {
        places_[order_[place]] = static_cast<std::uint32_t>(place);
        moved_[place] = moved == nullptr ? kInfinity : moved[order_[place]];
    }
}

std::size_t LeadingScreen::n_in_question(float lower, float upper) const {
    // A little less, for what is rounded where a bound is moved.
    const float gap = lower - upper - 4e-6F * lower;
    if (!(gap > 0.0F)) return k_;
    const auto first = std::partition_point(moved_.begin(), moved_.end(),
                                            [gap](float moved) { return moved >= gap; });
    return static_cast<std::size_t>(first - moved_.begin());
}

void LeadingScreen::pack(const double *centroids, const float *moved, const ScreenCount &counted) {
    choose_leading(counted);
    sort(moved);
    columns_ = n_leading_ == 0 ? d_ : n_leading_;
    score_off_ = static_cast<double>(kSlack * kRounding) * static_cast<double>(columns_ + 5);
    centroids_ = centroids;
    const std::size_t floats = set_.floats, per_block = floats * (columns_ + 1);
    values_.resize(n_blocks_ * per_block);
    std::fill_n(values_.data() + (n_blocks_ - 1) * per_block, per_block, 0.0F);
    Buffer<float> entries(kGroupRows * stride_);
    for (std::size_t begin = 0; begin < k_; begin += kGroupRows) {
        const std::size_t count = std::min(kGroupRows, k_ - begin);
        const void *places[kGroupRows];
        for (std::size_t i = 0; i < count; ++i) places[i] = centroids + (begin + i) * d_;
        float *rows = rows_.data() + begin * padded_;
        set_.centre(places, false, count, d_, axes_->centre(), padded_, rows);
        axes_->lead(rows, count, entries.data());
        for (std::size_t i = 0; i < count; ++i)
            pack_one(begin + i, rows + i * padded_, entries.data() + i * stride_);
    }
}

void LeadingScreen::pack_one(std::size_t c, const float *row, const float *entry) {
    const float *from = n_leading_ == 0 ? row : entry;
    const float rest = axes_->rest(entry, n_leading_);
    const std::size_t floats = set_.floats, place = places_[c];
    float *lane = values_.data() + place / floats * floats * (columns_ + 1) + place % floats;
    for (std::size_t j = 0; j < columns_; ++j) lane[j * floats] = from[j];
    lane[columns_ * floats] = rest;
    const double squared = axes_->squared(entry), error = off(axes_->squared(entry), rest);
    // Where it is not a number, nothing is ruled out.
    bias_[place] = static_cast<float>(-0.5 * squared + score_off_ * squared +
                                      (0.51 + 0.51 / kShareApart) * error * error) +
                   kTiniest;
    lengths_[c] = rounded_up(std::sqrt(axes_->squared(entry))) + kTiniest;
}

// How far the leading coordinates and the rest may be off.
float LeadingScreen::off(float squared, float rest) const {
    const double length = std::sqrt(static_cast<double>(squared));
    double error = kPointOff * length;
    if (n_leading_ > 0 && length > 0.0)
        error +=
            kRestOff * squared / std::max(static_cast<double>(rest), std::sqrt(kRestOff) * length);
    return static_cast<float>(error) + kTiniest;
}

// Bounds of a distance whose square in single precision is given, between a point and a centroid
// whose lengths sum to `lengths` at most.
float LeadingScreen::bound_above(float squared, float lengths) const {
    const float distance = std::sqrt(squared);
    return rounded_up(distance + share_ * distance + kSlack * kRounding * lengths + tiny_);
}

// Of a point alone the length is given. Not smaller for a larger square.
float LeadingScreen::bound_below(float squared, float length) const {
    const float distance = std::sqrt(std::min(squared, kLargestFloat));
    return rounded_down(distance - share_ * distance -
                        (kSlack * kRounding * (2.0F * length + distance) + tiny_));
}

// What the score of a centroid that may be within reach is not below.
float LeadingScreen::threshold(float squared, float off, float reach) const {
    const double wide = squared, farthest = static_cast<double>(reach) + off;
    const double beyond = (1.0 + 2.0 * kShareApart) * farthest * farthest;
    if (!(wide < kLargest && beyond < kLargest)) return -kInfinity;
    const double limit = 0.5 * (wide - beyond) - 0.5 * (score_off_ + kPointOff) * wide -
                         static_cast<double>(kTiniest) * static_cast<double>(columns_ + 4);
    return static_cast<float>(limit - kPointOff * std::fabs(limit));
}

ScreenCount LeadingScreen::find_nearest(const Group &group, Scratch &scratch, std::int32_t *labels,
                                        float *upper, float *lower) const {
    const std::size_t count = group.count;
    scratch.rows.resize(kGroupRows * padded_);
    const auto row = [&](std::size_t i) { return scratch.rows.data() + i * padded_; };
    // A row is read only where it is needed: a window is larger than the caches.
    bool is_read[kGroupRows] = {};
    const auto read = [&](std::size_t i) {
        if (is_read[i]) return;
        set_.centre(group.points + i, group.is_float32, 1, d_, axes_->centre(), padded_, row(i));
        is_read[i] = true;
    };
    for (std::size_t i = 0; i < count && n_leading_ == 0; ++i) read(i);
    const float *rows[kGroupRows];
    float rests[kGroupRows];
    for (std::size_t i = 0; i < count; ++i) {
        rows[i] = n_leading_ == 0 ? row(i) : group.entries[i];
        rests[i] = axes_->rest(group.entries[i], n_leading_);
    }
    const LeadingRows points = {rows, rests, count};
    LeadingBlocks blocks = {values_.data(), bias_.data(), n_blocks_, columns_};
    ScreenCount counted;
    if (std::find(labels, labels + count, -1) != labels + count) {
        std::uint32_t best[kGroupRows];
        set_.list_best(points, blocks, best);
        counted.n_columns += static_cast<std::int64_t>(count * k_ * columns_);
        for (std::size_t i = 0; i < count; ++i)
            if (labels[i] < 0)
                labels[i] =
                    static_cast<std::int32_t>(order_[std::min<std::size_t>(best[i], k_ - 1)]);
    }
    bool is_measured[kGroupRows] = {};  // the distance to the own centroid
    float own[kGroupRows], reaches[kGroupRows], lengths[kGroupRows], thresholds[kGroupRows];
    std::size_t n_places = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t near = static_cast<std::uint32_t>(labels[i]);
        const float squared = axes_->squared(group.entries[i]);
        lengths[i] = rounded_up(std::sqrt(squared)) + kTiniest;
        upper[i] = group.own[i];
        if (!(upper[i] < group.others[i])) {
            read(i);
            set_.squared_narrow(row(i), rows_.data(), padded_, &near, 1, own + i);
            upper[i] = bound_above(own[i], lengths[i] + lengths_[near]);
            counted.n_distances += 1;
            is_measured[i] = true;
        }
        const float margin = std::min(group.margins[i], costs::kMostMargin * upper[i]);
        reaches[i] = rounded_up(upper[i] + std::max(margin, 1e-4F * upper[i]));
        thresholds[i] = threshold(squared, off(squared, rests[i]), reaches[i]);
        n_places = std::max(n_places, n_in_question(group.others[i], upper[i]));
    }
    blocks.count = (n_places + set_.floats - 1) / set_.floats;
    n_places = std::min(blocks.count * set_.floats, k_);
    const std::size_t room = blocks.count * set_.floats + kSpare;
    scratch.found.resize(kGroupRows * room);
    std::uint32_t n_found[kGroupRows];
    set_.list_candidates(points, blocks, thresholds, scratch.found.data(), room, n_found);
    counted.n_pairs = static_cast<std::int64_t>(count * n_places);
    counted.n_columns += counted.n_pairs * static_cast<std::int64_t>(columns_);
    const float next_moved = n_places < k_ ? moved_[n_places] : -kInfinity;
    scratch.squared.resize(std::max(scratch.squared.size(), room));
    float *squared = scratch.squared.data();
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t *found = scratch.found.data() + i * room;
        const std::uint32_t near = static_cast<std::uint32_t>(labels[i]);
        std::size_t n = 0;  // that are not what makes up the last block, nor the own
        for (std::size_t f = 0; f < n_found[i] && found[f] < k_; ++f)
            if (order_[found[f]] != near) found[n++] = order_[found[f]];
        // What is ruled out by its score, or because it has not moved that far.
        float others = rounded_down(reaches[i]);
        if (n_places < k_) others = std::min(others, rounded_down(group.others[i] - next_moved));
        if (n == 0 && others > upper[i]) {
            lower[i] = others;
            continue;
        }
        read(i);
        set_.squared_narrow(row(i), rows_.data(), padded_, found, n, squared);
        if (!is_measured[i]) {
            set_.squared_narrow(row(i), rows_.data(), padded_, &near, 1, own + i);
            counted.n_distances += 1;
        }
        counted.n_distances += static_cast<std::int64_t>(n);
        counted.n_left += static_cast<std::int64_t>(n);
        found[n] = near;
        squared[n++] = own[i];
        float best = kInfinity, second = kInfinity;
        std::size_t where = n - 1;
        for (std::size_t f = 0; f < n; ++f) {
            if (squared[f] < best) {
                second = best;
                best = squared[f];
                where = f;
            } else {
                second = std::min(second, squared[f]);
            }
        }
        labels[i] = static_cast<std::int32_t>(found[where]);
        upper[i] = bound_above(best, lengths[i] + lengths_[found[where]]);
        lower[i] = bound_below(second, lengths[i]);
        if (!(lower[i] > upper[i]))
            counted.n_distances += decide(group.points[i], group.is_float32, found, n, squared,
                                          lengths[i], scratch, labels[i], upper[i], lower[i]);
        // What was ruled out, by its score or because it has not moved that far.
        lower[i] = std::min(lower[i], rounded_down(reaches[i]));
        if (n_places < k_)
            lower[i] = std::min(lower[i], rounded_down(group.others[i] - next_moved));
    }
    return counted;
}

// Measure in double the candidates that single precision does not tell from the nearest.
std::int64_t LeadingScreen::decide(const void *point, bool is_float32, const std::uint32_t *found,
                                   std::size_t n_found, const float *squared, float length,
                                   Scratch &scratch, std::int32_t &label, float &upper,
                                   float &lower) const {
    const std::size_t lanes = set_.lanes;
    std::vector<std::uint32_t> close, blocks;
    float beyond = kInfinity;
    for (std::size_t f = 0; f < n_found; ++f) {
        const float below = bound_below(squared[f], length);
        if (below > upper)
            beyond = std::min(beyond, below);
        else
            close.push_back(found[f]);
    }
    std::sort(close.begin(), close.end());  // of equals the first is found
    for (std::uint32_t b = 0; b * lanes < close.size(); ++b) blocks.push_back(b);
    scratch.block.assign(blocks.size() * lanes * d_, std::numeric_limits<double>::infinity());
    for (std::size_t c = 0; c < close.size(); ++c) {
        const double *centroid = centroids_ + close[c] * d_;
        double *lane = scratch.block.data() + c / lanes * lanes * d_ + c % lanes;
        for (std::size_t j = 0; j < d_; ++j) lane[j * lanes] = centroid[j];
    }
    scratch.wide.resize(d_);
    const double *wide = point_at({point, is_float32, 1, d_}, 0, scratch.wide.data());
    std::int32_t nearest;
    double best, second;
    set_.nearest(&wide, 1, d_, scratch.block.data(), blocks.data(), blocks.size(), &nearest, &best,
                 &second);
    label = static_cast<std::int32_t>(close[static_cast<std::size_t>(nearest)]);
    upper = kmeander::bound_above(best);
    lower = std::min(kmeander::bound_below(second), beyond);
    return static_cast<std::int64_t>(close.size());
}

}  // namespace kmeander
