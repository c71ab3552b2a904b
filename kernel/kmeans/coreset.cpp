// Coreset by repeated cuts: the group of largest scatter is cut in two at its mean.
#include "kmeans/coreset.hpp"

#include <algorithm>
#include <queue>
#include <vector>

#include "parallel/interruption.hpp"

namespace kmeander {
namespace {

// From the top down: the group with the largest scatter is cut in two at its mean, across the
// column in which it is widest, until there are enough groups. So what they hide is small, and
// each row is looked at about log2(m) times.
class CoresetBuilder {
public:
    CoresetBuilder(const PointsView &rows, const double *weights)
        : d_(rows.columns), weights_(weights), points_(rows.count * d_), mean_(d_), widths_(d_) {
        for (std::size_t i = 0; i < rows.count; ++i) {
            instruction_set().widen(rows, i, points_.data() + i * d_);
            if (weight(i) > 0.0) order_.push_back(i);
        }
    }

    void cut(std::size_t m) {
        if (!order_.empty()) add({0, order_.size()});
        while (groups_.size() < m && !cuts_.empty()) {
            check_interruption();
            const CoresetCut cut = cuts_.top();
            cuts_.pop();
            const CoresetGroup whole = groups_[cut.group];
            const auto middle = std::stable_partition(
                order_.begin() + static_cast<std::ptrdiff_t>(whole.begin),
                order_.begin() + static_cast<std::ptrdiff_t>(whole.end),
                [&](std::size_t i) { return points_[i * d_ + cut.column] < cut.at; });
            std::size_t place = static_cast<std::size_t>(middle - order_.begin());
            // The mean of values that differ in their last digit alone may lie outside them.
            place = std::clamp(place, whole.begin + 1, whole.end - 1);
            groups_[cut.group].end = place;
            plan_cut(cut.group);
            add({place, whole.end});
        }
    }

    CoresetSize write(double *means, double *masses) {
        CoresetSize found = {groups_.size(), 0.0};
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            masses[g] = measure(groups_[g]);
            std::copy(mean_.begin(), mean_.end(), means + g * d_);
            for (const double width : widths_) found.within += width;
        }
        return found;
    }

private:
    struct CoresetGroup {  // the rows order_[begin, end)
        std::size_t begin, end;
    };
    struct CoresetCut {  // of a group, between the values below `at` in a column and the others
        double scatter;
        std::size_t group, column;
        double at;
        bool operator<(
            const CoresetCut &other) const {  // a tie goes to the group that was there first
            return scatter != other.scatter ? scatter < other.scatter : group > other.group;
        }
    };

    double weight(std::size_t i) const { return weights_ == nullptr ? 1.0 : weights_[i]; }

    void add(CoresetGroup group) {
        groups_.push_back(group);
        plan_cut(groups_.size() - 1);
    }

    void plan_cut(std::size_t g) {
        if (groups_[g].end - groups_[g].begin < 2) return;
        measure(groups_[g]);
        double scatter = 0.0;
        for (const double width : widths_) scatter += width;
        if (scatter <= 0.0) return;  // its rows are equal
        const auto column = static_cast<std::size_t>(
            std::max_element(widths_.begin(), widths_.end()) - widths_.begin());
        cuts_.push({scatter, g, column, mean_[column]});
    }

    // Mean, and weighted squared distance to it per column; returns the weight.
    double measure(const CoresetGroup &group) {
        // Told from the first row: equal rows have that row as their mean, to the last digit.
        const double *first = points_.data() + order_[group.begin] * d_;
        std::fill(mean_.begin(), mean_.end(), 0.0);
        std::fill(widths_.begin(), widths_.end(), 0.0);
        double mass = 0.0;
        for (std::size_t at = group.begin; at < group.end; ++at) {
            const double *x = points_.data() + order_[at] * d_;
            const double w = weight(order_[at]);
            mass += w;
            for (std::size_t j = 0; j < d_; ++j) mean_[j] += w * (x[j] - first[j]);
        }
        for (std::size_t j = 0; j < d_; ++j) mean_[j] = first[j] + mean_[j] / mass;
        for (std::size_t at = group.begin; at < group.end; ++at) {
            const double *x = points_.data() + order_[at] * d_;
            const double w = weight(order_[at]);
            for (std::size_t j = 0; j < d_; ++j)
                widths_[j] += w * (x[j] - mean_[j]) * (x[j] - mean_[j]);
        }
        return mass;
    }

    const std::size_t d_;
    const double *weights_;
    std::vector<double> points_;  // all rows as doubles
    std::vector<double> mean_, widths_;
    std::vector<std::size_t> order_;  // rows with weight, group by group
    std::vector<CoresetGroup> groups_;
    std::priority_queue<CoresetCut> cuts_;
};

}  // namespace

CoresetSize summarise(const PointsView &rows, const double *weights, std::size_t m, double *means,
                      double *masses) {
    CoresetBuilder cutter(rows, weights);
    cutter.cut(m);
    return cutter.write(means, masses);
}

}  // namespace kmeander
