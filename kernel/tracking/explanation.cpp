// Explanation of a drift: moments per cluster and column, and the shares of the change.
#include "tracking/explanation.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "parallel/costs.hpp"
#include "parallel/team.hpp"

namespace kmeander {
Moments::Moments(const double *centroids, std::size_t k, std::size_t d)
    : centroids_(centroids), k_(k), d_(d), masses_(k), sums_(k * d), squares_(k * d) {}

void Moments::add(const std::vector<LabelledBatch> &batches, std::size_t n_threads) {
    double n_values = 0.0;
    for (const LabelledBatch &batch : batches)
        n_values += static_cast<double>(batch.rows.count * d_);
    const double operations = costs::kPerMomentValue * n_values;
    Team team(worth_starting(n_threads, operations));
    std::vector<Moments> parts(team.size(), Moments(centroids_, k_, d_));
    for (std::size_t first = 0; first < batches.size(); first += parts.size()) {
        const std::size_t n_together = std::min(parts.size(), batches.size() - first);
        team.run(n_together, operations, [&](std::size_t part, std::size_t) {
            parts[part].clear();
            parts[part].add(batches[first + part]);
        });
        for (std::size_t part = 0; part < n_together; ++part) add(parts[part]);
    }
}

void Moments::add(const LabelledBatch &batch) {
    instruction_set().add_moments(batch.rows, batch.weights, batch.decay, batch.labels, centroids_,
                                  masses_.data(), sums_.data(), squares_.data());
}

void Moments::add(const Moments &other) {
    const auto add_to = [](std::vector<double> &values, const std::vector<double> &added) {
        std::transform(values.begin(), values.end(), added.begin(), values.begin(), std::plus<>());
    };
    add_to(masses_, other.masses_);
    add_to(sums_, other.sums_);
    add_to(squares_, other.squares_);
}

void Moments::clear() {
    for (std::vector<double> *values : {&masses_, &sums_, &squares_})
        std::fill(values->begin(), values->end(), 0.0);
}

double Moments::mass() const { return std::accumulate(masses_.begin(), masses_.end(), 0.0); }

void Moments::add_hidden(double within) {
    if (!(within > 0.0)) return;
    const double total = std::accumulate(squares_.begin(), squares_.end(), 0.0), all = mass();
    for (std::size_t c = 0; c < k_; ++c) {
        const double even = masses_[c] / all / static_cast<double>(d_);
        for (std::size_t j = 0; j < d_; ++j) {
            double &square = squares_[c * d_ + j];
            square += within * (total > 0.0 ? square / total : even);
        }
    }
}

std::vector<double> Moments::parts() const {
    std::vector<double> parts = squares_;
    const double all = mass();
    for (double &part : parts) part /= all;
    return parts;
}

Moments::CellMoments Moments::cell(std::size_t cluster, std::size_t column) const {
    const double own = masses_[cluster];
    if (!(own > 0.0)) return {0.0, 0.0, 0.0};
    const double mean = sums_[cluster * d_ + column] / own;
    const double square = squares_[cluster * d_ + column] / own;
    return {own / mass(), mean, std::max(square - mean * mean, 0.0)};
}

ErrorDecomposition explain(const Moments &older, const Moments &newest, std::size_t k,
                           std::size_t d, std::size_t n_parts) {
    std::vector<double> table = newest.parts();
    const std::vector<double> before = older.parts();
    ErrorDecomposition found{0.0, std::vector<double>(k), std::vector<double>(d), {}};
    for (std::size_t i = 0; i < k * d; ++i) {
        table[i] -= before[i];
        found.difference += table[i];
    }
    if (found.difference == 0.0) return found;
    for (std::size_t c = 0; c < k; ++c)
        for (std::size_t j = 0; j < d; ++j) {
            table[c * d + j] /= found.difference;
            found.clusters[c] += table[c * d + j];
            found.columns[j] += table[c * d + j];
        }
    std::vector<std::size_t> order(k);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
        return found.clusters[one] > found.clusters[other];
    });
    for (std::size_t p = 0; p < std::min(n_parts, k) && found.clusters[order[p]] > 0.0; ++p) {
        const std::size_t c = order[p];
        const auto first = table.begin() + static_cast<std::ptrdiff_t>(c * d);
        const std::size_t j = static_cast<std::size_t>(
            std::max_element(first, first + static_cast<std::ptrdiff_t>(d)) - first);
        found.parts.push_back({c, j, older.cell(c, j), newest.cell(c, j)});
    }
    return found;
}

}  // namespace kmeander
