// Modality: histograms along lines through clusters, and their scores.
#include "tracking/modality.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kmeans/buffer.hpp"
#include "kmeans/points.hpp"

namespace kmeander {
namespace {

constexpr std::size_t kBlockRows = 64;
constexpr std::size_t kPowerSteps = 3;  // enough where two clusters stretch one direction
constexpr std::size_t kCutSteps = 4;    // 2-means on a line converges fast
constexpr std::size_t kLanes = 4;       // partial sums, so that loops can be vectorised

double dot(const double *one, const double *other, std::size_t count) {
    double sums[kLanes] = {};
    const std::size_t whole = count - count % kLanes;
    for (std::size_t i = 0; i < whole; i += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane)
            sums[lane] += one[i + lane] * other[i + lane];
    for (std::size_t i = whole; i < count; ++i) sums[0] += one[i] * other[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Weight along a line on which the two peaks are at 0 and 1: of rows of older batches and of the
// newest, in the five bins and, first and last, beyond them.
struct LineHistogram {
    std::array<std::array<double, kLineBins>, 2> bins{};
    double squares = 0.0;  // sum of squared weights

    // Of rows of which the first ones are the newest.
    void add(const double *places, const double *weights, std::size_t n_newest, std::size_t count) {
        instruction_set().add_to_bins(places, weights, n_newest, bins[1].data());
        instruction_set().add_to_bins(places + n_newest, weights + n_newest, count - n_newest,
                                      bins[0].data());
    }

    double in(std::size_t bin) const { return bins[0][bin] + bins[1][bin]; }
    double mass() const {
        double sum = 0.0;
        for (std::size_t bin = 0; bin < kLineBins; ++bin) sum += in(bin);
        return sum;
    }
    double emptier_end() const { return std::min(in(1), in(5)); }
    // Rows of equal weight whose shares would scatter as these do, for each unit of weight.
    double rows_per_weight() const { return squares > 0.0 ? mass() / squares : 0.0; }
};

// How far `between` lies above `ratio` times `end`, both counts: the root of twice the log
// likelihood ratio, half a row nearer to the border for continuity.
double score(double between, double end, double ratio) {
    const double both = between + end, expected = both * ratio / (1.0 + ratio);
    if (!(both > 0.0) || std::abs(between - expected) <= 0.5) return 0.0;
    const double x = between > expected ? between - 0.5 : between + 0.5, rest = both - x;
    double deviance = 0.0;
    if (x > 0.0) deviance += x * std::log(x / expected);
    if (rest > 0.0) deviance += rest * std::log(rest / (both - expected));
    return std::copysign(std::sqrt(std::max(0.0, 2.0 * deviance)), x - expected);
}

double least_score(const LineHistogram &line, double ratio) {
    const double rows = line.rows_per_weight(), end = rows * line.emptier_end();
    double least = score(rows * line.in(2), end, ratio);
    for (const std::size_t between : {3, 4})
        least = std::min(least, score(rows * line.in(between), end, ratio));
    return least;
}

double score_as_one(const LineHistogram &line, double shallow) {
    // What fills the dip must still be coming, not only be remembered.
    double newest = 0.0, newest_between = 0.0, between = 0.0;
    for (const double weight : line.bins[1]) newest += weight;
    for (const std::size_t bin : {2, 3, 4}) {
        newest_between += line.bins[1][bin];
        between += line.in(bin);
    }
    if (newest_between * line.mass() < 0.5 * between * newest) return 0.0;
    return least_score(line, shallow);
}

struct PointIndex {
    std::uint32_t batch, row;
};

// The newest rows of each cluster, the newest first.
class NewestPoints {
public:
    NewestPoints(const std::vector<LabelledBatch> &batches, std::size_t k, std::size_t most)
        : batches_(batches), most_(most), counts_(k), n_newest_(k), places_(k * most) {
        for (std::size_t b = batches.size(); b-- > 0;) {
            const LabelledBatch &batch = batches[b];
            for (std::size_t i = batch.rows.count; i-- > 0;) {
                const std::size_t own = static_cast<std::size_t>(batch.labels[i]);
                if (counts_[own] == most || !(weight_of(batch, i) > 0.0)) continue;
                places_[own * most + counts_[own]++] = {static_cast<std::uint32_t>(b),
                                                        static_cast<std::uint32_t>(i)};
            }
            if (b + 1 == batches.size()) n_newest_ = counts_;
        }
    }

    std::size_t count(std::size_t cluster) const { return counts_[cluster]; }
    double weight(std::size_t cluster, std::size_t i) const {
        const PointIndex place = places_[cluster * most_ + i];
        return batches_[place.batch].decay * weight_of(batches_[place.batch], place.row);
    }
    // How many are of the newest batch.
    std::size_t n_newest(std::size_t cluster) const { return n_newest_[cluster]; }
    // Row i of the cluster as doubles: in place where it is stored so, else in `scratch`.
    const double *point(std::size_t cluster, std::size_t i, double *scratch) const {
        const PointIndex place = places_[cluster * most_ + i];
        return point_at(batches_[place.batch].rows, place.row, scratch);
    }
    // All rows of the cluster less `centroid`: see `InstructionSet::project`.
    void project(std::size_t cluster, const double *centroid,
                 const std::vector<const double *> &directions, double *squared,
                 double *along) const {
        const void *points[kBlockRows];
        const PointIndex *places = places_.data() + cluster * most_;
        const std::size_t n_rows = counts_[cluster];
        // Batches may differ in type: each run of rows of one type at once.
        for (std::size_t begin = 0, end = 0; begin < n_rows; begin = end) {
            const bool is_float32 = batches_[places[begin].batch].rows.is_float32;
            for (; end < n_rows && end - begin < kBlockRows; ++end) {
                const PointsView &rows = batches_[places[end].batch].rows;
                if (rows.is_float32 != is_float32) break;
                points[end - begin] = row_at(rows, places[end].row);
            }
            instruction_set().project(points, is_float32, end - begin,
                                      batches_.front().rows.columns, centroid, directions.data(),
                                      directions.size(), squared + begin, along + begin, most_);
        }
    }

private:
    const std::vector<LabelledBatch> &batches_;
    const std::size_t most_;
    std::vector<std::size_t> counts_, n_newest_;
    Buffer<PointIndex> places_;
};

// The line from a cluster to its nearest neighbour.
struct NeighbourLine {
    std::size_t from, to;
    std::vector<double> direction;
    double squared;  // length of the direction
    LineHistogram histogram;
};

std::vector<NeighbourLine> lines_to_neighbours(const NewestPoints &rows, const double *centroids,
                                               std::size_t k, std::size_t d,
                                               std::int32_t *neighbours) {
    std::vector<double> least(k, INFINITY), direction(d);
    std::fill_n(neighbours, k, -1);
    for (std::size_t a = 0; a < k; ++a) {
        if (rows.count(a) == 0) continue;
        for (std::size_t b = 0; b < a; ++b) {
            if (rows.count(b) == 0) continue;
            for (std::size_t j = 0; j < d; ++j)
                direction[j] = centroids[b * d + j] - centroids[a * d + j];
            const double squared = dot(direction.data(), direction.data(), d);
            if (squared < least[a])
                least[a] = squared, neighbours[a] = static_cast<std::int32_t>(b);
            if (squared < least[b])
                least[b] = squared, neighbours[b] = static_cast<std::int32_t>(a);
        }
    }
    std::vector<NeighbourLine> lines;
    for (std::size_t a = 0; a < k; ++a) {
        if (neighbours[a] < 0 || !(least[a] > 0.0)) continue;
        const std::size_t b = static_cast<std::size_t>(neighbours[a]);
        if (b < a && static_cast<std::size_t>(neighbours[b]) == a) continue;  // the same line
        for (std::size_t j = 0; j < d; ++j)
            direction[j] = centroids[b * d + j] - centroids[a * d + j];
        lines.push_back({a, b, direction, least[a], {}});
    }
    return lines;
}

// The direction in which a few rows of the cluster vary most; all zero where nothing varies.
class PrincipalDirection {
public:
    explicit PrincipalDirection(std::size_t d)
        : d_(d),
          width_((d + 3) / 4 * 4),
          rows_(kFewRows * width_),
          direction_(width_),
          scratch_(width_) {}

    const double *find(const NewestPoints &rows, std::size_t cluster) {
        const std::size_t count = std::min(kFewRows, rows.count(cluster));
        double weights[kFewRows] = {}, mass = 0.0;
        const std::size_t n_filled = (count + 3) / 4 * 4;
        std::fill_n(rows_.data(), n_filled * width_, 0.0);
        for (std::size_t i = 0; i < count; ++i) {
            // Evenly among all, so that the newest batch does not decide alone.
            const std::size_t chosen = i * rows.count(cluster) / count;
            const double *point = rows.point(cluster, chosen, scratch_.data());
            mass += weights[i] = rows.weight(cluster, chosen);
            std::copy_n(point, d_, rows_.data() + i * width_);
        }
        for (std::size_t i = 0; i < count; ++i) weights[i] /= mass;
        instruction_set().find_direction(rows_.data(), weights, n_filled, width_, kPowerSteps,
                                         direction_.data(), scratch_.data());
        return direction_.data();
    }

private:
    static constexpr std::size_t kFewRows = 64;

    const std::size_t d_, width_;  // columns, and columns padded to whole vectors
    Buffer<double> rows_, direction_, scratch_;
};

// Rows of one cluster along its direction.
struct ProjectedPoints {
    std::size_t count = 0, n_newest = 0;  // the first ones are the newest
    std::vector<double> places, weights;
    double mass = 0.0, squares = 0.0;

    explicit ProjectedPoints(std::size_t most) : places(most), weights(most) {}

    void begin(const NewestPoints &rows, std::size_t cluster) {
        count = rows.count(cluster);
        n_newest = rows.n_newest(cluster);
        mass = squares = 0.0;
        for (std::size_t i = 0; i < count; ++i) {
            weights[i] = rows.weight(cluster, i);
            mass += weights[i];
            squares += weights[i] * weights[i];
        }
    }

    double score_as_two() {
        const InstructionSet &set = instruction_set();
        const double sum = dot(weights.data(), places.data(), count);
        double low = 0.0, high = 0.0, above = 0.0, beyond = 0.0, cut = sum / mass;
        for (std::size_t step = 0; step < kCutSteps; ++step) {
            set.add_above(places.data(), weights.data(), count, cut, &above, &beyond);
            if (!(above > 0.0 && above < mass)) return 0.0;
            low = (sum - beyond) / (mass - above);
            high = beyond / above;
            cut = low + 0.5 * (high - low);
        }
        if (!(high > low)) return 0.0;
        // Both parts must still be coming: a cluster that has jumped is not two.
        double newest_mass = 0.0, newest_above = 0.0;
        for (std::size_t i = 0; i < n_newest; ++i) newest_mass += weights[i];
        set.add_above(places.data(), weights.data(), n_newest, cut, &newest_above, &beyond);
        const double share = above / mass, newest_share = newest_above / newest_mass;
        if (!(newest_share >= 0.5 * share && 1.0 - newest_share >= 0.5 * (1.0 - share))) return 0.0;
        const double scale = 1.0 / (high - low);
        for (std::size_t i = 0; i < count; ++i) places[i] = (places[i] - low) * scale;
        LineHistogram line;
        line.squares = squares;
        line.add(places.data(), weights.data(), n_newest, count);
        return -least_score(line, 1.0);
    }
};

}  // namespace

void score_dips(const std::vector<LabelledBatch> &batches, const double *centroids, std::size_t k,
                const double *masses, std::size_t rows_per_cluster, double shallow,
                std::int32_t *neighbours, double *as_one, double *as_two) {
    const std::size_t d = batches.front().rows.columns;
    const NewestPoints rows(batches, k, rows_per_cluster);
    std::vector<NeighbourLine> lines = lines_to_neighbours(rows, centroids, k, d, neighbours);
    std::vector<std::vector<NeighbourLine *>> lines_of(k);
    for (NeighbourLine &line : lines)
        for (const std::size_t end : {line.from, line.to}) lines_of[end].push_back(&line);

    PrincipalDirection principal(d);
    ProjectedPoints along(rows_per_cluster);
    Buffer<double> squared(rows_per_cluster), own(rows_per_cluster), places(rows_per_cluster),
        products;
    std::vector<const double *> directions;
    for (std::size_t a = 0; a < k; ++a) {
        as_one[a] = as_two[a] = 0.0;
        along.begin(rows, a);
        if (along.count == 0) continue;
        directions = {principal.find(rows, a)};
        for (const NeighbourLine *line : lines_of[a]) directions.push_back(line->direction.data());
        products.resize(directions.size() * rows_per_cluster);
        rows.project(a, centroids + a * d, directions, squared.data(), products.data());
        std::copy_n(products.data(), along.count, along.places.begin());
        for (std::size_t i = 0; i < along.count; ++i) {
            // Every row has drawn its own centroid towards itself, which opens a dip where there is
            // none; so each is seen from the centroid made without it.
            const double rest = masses[a] - along.weights[i];
            own[i] = rest > 0.0 ? along.weights[i] / rest : 0.0;
        }
        for (std::size_t l = 0; l < lines_of[a].size(); ++l) {
            NeighbourLine &line = *lines_of[a][l];
            instruction_set().place_on_line(products.data() + (l + 1) * rows_per_cluster,
                                            squared.data(), own.data(), along.count, line.squared,
                                            line.from == a, places.data());
            line.histogram.add(places.data(), along.weights.data(), along.n_newest, along.count);
        }
        for (NeighbourLine *line : lines_of[a]) line->histogram.squares += along.squares;
        as_two[a] = along.score_as_two();
    }
    for (const NeighbourLine &line : lines) {
        as_one[line.from] = score_as_one(line.histogram, shallow);
        if (static_cast<std::size_t>(neighbours[line.to]) == line.from)
            as_one[line.to] = as_one[line.from];
    }
}

}  // namespace kmeander
