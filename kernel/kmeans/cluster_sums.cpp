#include "kmeans/cluster_sums.hpp"

#include <algorithm>

#include "kmeans/packed_centroids.hpp"

namespace kmeander {
namespace {

// About how many multiplications would take as long as one addition to a sum that carries what it
// rounds away, to a sum of squares, and to both sums of a row that moves.
constexpr double kPerSum = 12.0, kPerSquare = 4.0, kPerMoved = 60.0;

// Rows that move are far apart: each is asked for while so many before it are added.
constexpr std::size_t kRowsAhead = 4;

bool is_marked(const std::vector<std::uint8_t> &marks, std::uint8_t from_mark) {
    return *std::max_element(marks.begin(), marks.end()) >= from_mark;
}

}  // namespace

Aggregates::Aggregates(std::vector<Batch> &batches, std::size_t k, Team &team)
    : batches_(batches),
      k_(k),
      d_(batches.front().rows.columns),
      set_(instruction_set()),
      team_(team),
      changed_(k, 1),
      masses_(k),
      benches_(team.size()),
      gaps_(batches.size() * k) {
    for (Bench &bench : benches_) {
        bench.means.resize(k * d_);
        bench.rests.resize(k * d_);
        bench.quarters.resize(k * 4);
        bench.point.resize(d_);
        bench.stale.resize(k);
    }
    for (const Batch &batch : batches) {
        // Without bounds the labels themselves are about to be found anew.
        const bool known = batch.summed && batch.snapshot != nullptr;
        marks_.emplace_back(k, known ? kExact : kLost);
        lost_.emplace_back(k, 0.0);
        counted_.push_back(known);
    }
    scatter_marks_ = marks_;
}

void Aggregates::move(const std::vector<Move> &moves) {
    if (moves.empty()) return;
    std::vector<std::size_t> first = {0};  // of each batch
    for (std::size_t m = 0; m < moves.size(); ++m) {
        changed_[static_cast<std::size_t>(moves[m].from)] = 1;
        changed_[static_cast<std::size_t>(moves[m].to)] = 1;
        if (m > 0 && moves[m].batch != moves[m - 1].batch) first.push_back(m);
    }
    first.push_back(moves.size());
    const double operations = kPerMoved * static_cast<double>(moves.size() * d_);
    team_.run(first.size() - 1, operations, [&](std::size_t item, std::size_t worker) {
        for (std::size_t m = first[item]; m < first[item + 1]; ++m) {
            const std::size_t ahead = m + kRowsAhead;
            if (ahead < moves.size()) prefetch(batches_[moves[ahead].batch].rows, moves[ahead].row);
            move(moves[m], benches_[worker]);
        }
    });
}

void Aggregates::move(const Move &move, Bench &bench) {
    Batch &batch = batches_[move.batch];
    const std::size_t source = static_cast<std::size_t>(move.from);
    const std::size_t target = static_cast<std::size_t>(move.to);
    std::uint8_t *marks = marks_[move.batch].data();
    const double weight = weight_of(batch, move.row);
    const double *point = point_at(batch.rows, move.row, bench.point.data());
    double *minus = batch.sums + source * d_, *plus = batch.sums + target * d_;
    for (std::size_t j = 0; j < d_; ++j) {
        minus[j] -= weight * point[j];
        plus[j] += weight * point[j];
    }
    batch.masses[source] -= weight;
    batch.masses[target] += weight;
    marks[target] = std::max<std::uint8_t>(marks[target], kTouched);
    marks[source] = std::max<std::uint8_t>(marks[source], kTouched);
    double &lost = lost_[move.batch][source];
    lost += weight;
    if (lost >= batch.masses[source]) marks[source] = kLost;
}

void Aggregates::refresh() { sum_marked(kLost); }

void Aggregates::settle() {
    sum_marked(kTouched);
    double operations = 0.0;
    for (std::size_t b = 0; b < batches_.size(); ++b)
        if (is_marked(scatter_marks_[b], kTouched))
            operations += kPerSquare * static_cast<double>(batches_[b].rows.count * d_);
    team_.run(batches_.size(), operations,
              [&](std::size_t b, std::size_t worker) { scatter(b, benches_[worker]); });
}

void Aggregates::sum_marked(std::uint8_t from_mark) {
    std::vector<std::size_t> changed;
    std::size_t n_rows = 0, most_rows = 0;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
        if (!is_marked(marks_[b], from_mark)) continue;
        changed.push_back(b);
        n_rows += batches_[b].rows.count;
        most_rows = std::max(most_rows, batches_[b].rows.count);
    }
    const double operations = kPerSum * static_cast<double>(n_rows * d_);
    // Threads share batches, or where one is too large each batch by clusters: a sum takes its rows
    // in order, whoever adds.
    const std::size_t slices = most_rows * team_.size() > n_rows ? std::min(team_.size(), k_) : 1;
    team_.run(changed.size() * slices, operations, [&](std::size_t item, std::size_t worker) {
        const std::size_t slice = item % slices;
        sum(changed[item / slices], from_mark, slice * k_ / slices, (slice + 1) * k_ / slices,
            benches_[worker]);
    });
    for (const std::size_t b : changed) {
        counted_[b] = 1;
        for (std::size_t c = 0; c < k_; ++c) {
            if (marks_[b][c] < from_mark) continue;
            changed_[c] = 1;
            scatter_marks_[b][c] = kTouched;
            marks_[b][c] = kExact;
            lost_[b][c] = 0.0;
        }
    }
}

// List the rows of the clusters that are `stale`.
std::size_t Aggregates::find_members(const Batch &batch, Bench &bench) const {
    bench.members.resize(batch.rows.count + kSpare);
    return set_.members(batch.labels, bench.stale.data(), k_, batch.rows.count,
                        bench.members.data());
}

void Aggregates::sum(std::size_t b, std::uint8_t from_mark, std::size_t first, std::size_t last,
                     Bench &bench) {
    Batch &batch = batches_[b];
    double *rests = bench.rests.data();
    std::fill(bench.stale.begin(), bench.stale.end(), 0.0F);
    for (std::size_t c = first; c < last; ++c) {
        if (marks_[b][c] < from_mark) continue;
        bench.stale[c] = 1.0F;
        std::fill_n(batch.sums + c * d_, d_, 0.0);
        std::fill_n(rests + c * d_, d_, 0.0);
    }
    const std::size_t n_members = find_members(batch, bench);
    set_.add_rows(batch.rows, batch.weights, batch.labels, bench.members.data(), n_members,
                  batch.sums, rests);
    for (std::size_t c = first; c < last; ++c)
        if (bench.stale[c] != 0.0F)
            for (std::size_t j = 0; j < d_; ++j) batch.sums[c * d_ + j] += rests[c * d_ + j];
    // Where every row weighs 1, rows that come and go leave an exact count behind.
    if (batch.weights != nullptr || !counted_[b]) weigh(batch, bench, n_members);
}

void Aggregates::weigh(Batch &batch, const Bench &bench, std::size_t n_members) const {
    std::vector<double> rests(k_);
    for (std::size_t c = 0; c < k_; ++c)
        if (bench.stale[c] != 0.0F) batch.masses[c] = 0.0;
    for (std::size_t m = 0; m < n_members; ++m) {
        const std::size_t i = bench.members[m], label = static_cast<std::size_t>(batch.labels[i]);
        const double weight = weight_of(batch, i), before = batch.masses[label];
        batch.masses[label] = before + weight;
        if (batch.weights == nullptr) continue;  // counts are exact
        const double added = batch.masses[label] - before;
        rests[label] += (before - (batch.masses[label] - added)) + (weight - added);
    }
    for (std::size_t c = 0; c < k_; ++c)
        if (bench.stale[c] != 0.0F) batch.masses[c] += rests[c];
}

void Aggregates::scatter(std::size_t b, Bench &bench) {
    Batch &batch = batches_[b];
    std::vector<std::uint8_t> &marks = scatter_marks_[b];
    if (!is_marked(marks, kTouched)) return;
    double *means = bench.means.data(), *quarters = bench.quarters.data();
    for (std::size_t c = 0; c < k_; ++c) {
        bench.stale[c] = marks[c] >= kTouched;
        if (bench.stale[c] == 0.0F) continue;
        std::fill_n(quarters + 4 * c, 4, 0.0);
        if (batch.masses[c] <= 0.0) continue;
        for (std::size_t j = 0; j < d_; ++j)
            means[c * d_ + j] = batch.sums[c * d_ + j] / batch.masses[c];
    }
    const std::size_t n_members = find_members(batch, bench);
    set_.add_squares(batch.rows, batch.weights, batch.labels, bench.members.data(), n_members,
                     means, quarters);
    for (std::size_t c = 0; c < k_; ++c) {
        const double *sums = quarters + 4 * c;
        if (bench.stale[c] != 0.0F) batch.scatter[c] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    std::fill(marks.begin(), marks.end(), static_cast<std::uint8_t>(kExact));
}

Errors Aggregates::errors(const double *centroids) {
    Errors errors = {0.0, 0.0};
    double *gap = gaps_.data();
    for (const Batch &batch : batches_) {
        errors.newest = 0.0;
        // Scatter about the mean plus the mean's own distance: only sums of squares, so nothing
        // cancels however far from zero the points lie.
        set_.squared_to_means(batch.sums, batch.masses, k_, d_, centroids, gap);
        for (std::size_t c = 0; c < k_; ++c, ++gap)
            if (batch.masses[c] > 0.0) errors.newest += batch.scatter[c] + batch.masses[c] * *gap;
        errors.window += batch.decay * errors.newest;
    }
    return errors;
}

// A batch pulls each centroid towards its own mean; without it the centroid would be farther away
// by the factor mass / (mass - its share). Labels are taken to stay. Where hardly one row of the
// cluster would be left it is the rows that are left out, one at a time.
double Aggregates::error_left_out() {
    masses();
    double error = 0.0;
    const double *gap = gaps_.data();
    for (const Batch &batch : batches_) {
        double mass = 0.0, alone = 0.0;
        for (std::size_t c = 0; c < k_; ++c) mass += batch.masses[c];
        const double row = mass / static_cast<double>(batch.rows.count);
        for (std::size_t c = 0; c < k_; ++c) {
            const double share = batch.masses[c], squared = *gap++;
            if (share <= 0.0) continue;
            const double rest = masses_[c] - batch.decay * share;
            if (rest > batch.decay * row) {
                const double factor = masses_[c] / rest;
                alone += batch.scatter[c] + share * squared * factor * factor;
            } else {
                const double factor = share > row ? share / (share - row) : 1.0;
                alone += batch.scatter[c] * factor * factor + share * squared;
            }
        }
        error += batch.decay * alone;
    }
    return error;
}

const std::vector<double> &Aggregates::masses() {
    std::fill(masses_.begin(), masses_.end(), 0.0);
    for (const Batch &batch : batches_)
        for (std::size_t c = 0; c < k_; ++c) masses_[c] += batch.decay * batch.masses[c];
    return masses_;
}

void Aggregates::mean(std::size_t cluster, double *mean) const {
    std::fill(mean, mean + d_, 0.0);
    for (const Batch &batch : batches_) {
        const double *sum = batch.sums + cluster * d_;
        for (std::size_t j = 0; j < d_; ++j) mean[j] += batch.decay * sum[j];
    }
    for (std::size_t j = 0; j < d_; ++j) mean[j] /= masses_[cluster];
}

}  // namespace kmeander
