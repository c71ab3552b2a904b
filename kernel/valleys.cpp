#include "valleys.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace kmeander {
namespace {

constexpr std::size_t kBlockRows = 64;  // as many also serve to find a direction
constexpr std::size_t kPowerSteps = 3;  // enough where two clusters stretch one direction
constexpr std::size_t kCutSteps = 4;    // 2-means on a line settles fast
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

// Blocks hold one row in each column, d lines of kBlockRows: loops run along rows and vectorise. Call
// term(column, value) and add up what it returns, for each row; as many at once as registers hold.
template <class Term>
void add_up(const double *block, std::size_t d, double *totals, const Term &term) {
    constexpr std::size_t kAtOnce = 16;
    for (std::size_t begin = 0; begin < kBlockRows; begin += kAtOnce) {
        double sums[kAtOnce] = {};
        for (std::size_t j = 0; j < d; ++j)
            for (std::size_t i = 0; i < kAtOnce; ++i)
                sums[i] += term(j, block[j * kBlockRows + begin + i]);
        std::copy_n(sums, kAtOnce, totals + begin);
    }
}

void project(const double *block, const double *way, std::size_t d, double *along) {
    add_up(block, d, along, [way](std::size_t j, double value) { return way[j] * value; });
}

// Weight along a line on which the two peaks are at 0 and 1: of rows of older batches and of the
// newest, in the five bins and, first and last, beyond them.
struct Histogram {
    std::array<std::array<double, 7>, 2> bins{};
    double squares = 0.0;  // sum of squared weights

    void add(double t, double weight, bool is_newest) {
        // 0 is the middle of bin 1; what lies beyond is cut off before it becomes an integer.
        const double place = std::min(std::max(4.0 * t + 1.5, 0.0), 6.0);
        bins[is_newest][static_cast<std::size_t>(place)] += weight;
    }

    double in(std::size_t bin) const { return bins[0][bin] + bins[1][bin]; }
    double mass() const {
        double sum = 0.0;
        for (std::size_t bin = 0; bin < 7; ++bin) sum += in(bin);
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

double least_score(const Histogram &line, double ratio) {
    const double rows = line.rows_per_weight(), end = rows * line.emptier_end();
    double least = score(rows * line.in(2), end, ratio);
    for (const std::size_t between : {3, 4})
        least = std::min(least, score(rows * line.in(between), end, ratio));
    return least;
}

double score_as_one(const Histogram &line, double shallow) {
    // What fills the valley must still be coming, not only be remembered.
    double newest = 0.0, newest_between = 0.0, between = 0.0;
    for (std::size_t bin = 0; bin < 7; ++bin) newest += line.bins[1][bin];
    for (const std::size_t bin : {2, 3, 4}) {
        newest_between += line.bins[1][bin];
        between += line.in(bin);
    }
    if (newest_between * line.mass() < 0.5 * between * newest) return 0.0;
    return least_score(line, shallow);
}

struct Place {
    std::uint32_t batch, row;
};

// The newest rows of each cluster.
class NewestRows {
public:
    NewestRows(const std::vector<Batch> &batches, std::size_t k, std::size_t most)
        : batches_(batches), most_(most), counts_(k), places_(k * most) {
        for (std::size_t b = batches.size(); b-- > 0;) {
            const Batch &batch = batches[b];
            for (std::size_t i = batch.rows.count; i-- > 0;) {
                const std::size_t own = static_cast<std::size_t>(batch.labels[i]);
                if (counts_[own] == most || !(weight_of(batch, i) > 0.0)) continue;
                places_[own * most + counts_[own]++] = {static_cast<std::uint32_t>(b),
                                                        static_cast<std::uint32_t>(i)};
            }
        }
    }

    std::size_t count(std::size_t cluster) const { return counts_[cluster]; }
    double weight(std::size_t cluster, std::size_t i) const {
        const Place place = places_[cluster * most_ + i];
        return batches_[place.batch].decay * weight_of(batches_[place.batch], place.row);
    }
    bool is_newest(std::size_t cluster, std::size_t i) const {
        return places_[cluster * most_ + i].batch + 1 == batches_.size();
    }
    // Row i of the cluster, less `centroid`, as column `slot` of a block.
    void load(std::size_t cluster, std::size_t i, const double *centroid, std::size_t slot,
              double *block) const {
        const Place place = places_[cluster * most_ + i];
        const Rows &rows = batches_[place.batch].rows;
        const std::size_t d = rows.columns;
        if (rows.is_float32)
            spread(static_cast<const float *>(rows.data) + place.row * d, d, centroid, block + slot);
        else
            spread(static_cast<const double *>(rows.data) + place.row * d, d, centroid,
                   block + slot);
    }

private:
    template <class T>
    static void spread(const T *row, std::size_t d, const double *centroid, double *column) {
        for (std::size_t j = 0; j < d; ++j)
            column[j * kBlockRows] = static_cast<double>(row[j]) - centroid[j];
    }

    const std::vector<Batch> &batches_;
    const std::size_t most_;
    std::vector<std::size_t> counts_;
    std::vector<Place> places_;
};

// The line from a cluster to its nearest neighbour.
struct Line {
    std::size_t from, to;
    std::vector<double> way;
    double squared;  // length of the way
    Histogram histogram;
};

std::vector<Line> lines_to_neighbours(const NewestRows &rows, const double *centroids,
                                      std::size_t k, std::size_t d, std::int32_t *neighbours) {
    std::vector<double> least(k, INFINITY), way(d);
    std::fill_n(neighbours, k, -1);
    for (std::size_t a = 0; a < k; ++a) {
        if (rows.count(a) == 0) continue;
        for (std::size_t b = 0; b < a; ++b) {
            if (rows.count(b) == 0) continue;
            for (std::size_t j = 0; j < d; ++j) way[j] = centroids[b * d + j] - centroids[a * d + j];
            const double squared = dot(way.data(), way.data(), d);
            if (squared < least[a]) least[a] = squared, neighbours[a] = static_cast<std::int32_t>(b);
            if (squared < least[b]) least[b] = squared, neighbours[b] = static_cast<std::int32_t>(a);
        }
    }
    std::vector<Line> lines;
    for (std::size_t a = 0; a < k; ++a) {
        if (neighbours[a] < 0 || !(least[a] > 0.0)) continue;
        const std::size_t b = static_cast<std::size_t>(neighbours[a]);
        if (b < a && static_cast<std::size_t>(neighbours[b]) == a) continue;  // the same line
        for (std::size_t j = 0; j < d; ++j) way[j] = centroids[b * d + j] - centroids[a * d + j];
        lines.push_back({a, b, way, least[a], {}});
    }
    return lines;
}

// The direction in which a few rows of the cluster vary most; all zero where nothing varies.
class Direction {
public:
    explicit Direction(std::size_t d) : d_(d), block_(kBlockRows * d), way_(d) {}

    const std::vector<double> &find(const NewestRows &rows, std::size_t cluster,
                                    const double *centroid) {
        const std::size_t count = std::min(kBlockRows, rows.count(cluster));
        double weights[kBlockRows] = {}, along[kBlockRows], mass = 0.0, most = 0.0;
        // What a shorter cluster leaves over weighs nothing.
        std::fill(block_.begin(), block_.end(), 0.0);
        for (std::size_t i = 0; i < count; ++i) {
            // Evenly among all, so that the newest batch does not decide alone.
            const std::size_t chosen = i * rows.count(cluster) / count;
            rows.load(cluster, chosen, centroid, i, block_.data());
            mass += weights[i] = rows.weight(cluster, chosen);
        }
        for (std::size_t i = 0; i < count; ++i) weights[i] /= mass;
        std::fill(way_.begin(), way_.end(), 0.0);
        std::size_t widest = 0;
        for (std::size_t j = 0; j < d_; ++j) {
            double *line = block_.data() + j * kBlockRows;
            const double mean = dot(weights, line, kBlockRows);
            for (std::size_t i = 0; i < kBlockRows; ++i) {
                line[i] -= mean;
                along[i] = weights[i] * line[i];
            }
            const double variance = dot(along, line, kBlockRows);
            if (variance > most) most = variance, widest = j;
        }
        if (most > 0.0) way_[widest] = 1.0;
        for (std::size_t step = 0; step < kPowerSteps; ++step) {
            project(block_.data(), way_.data(), d_, along);
            for (std::size_t i = 0; i < kBlockRows; ++i) along[i] *= weights[i];
            double largest = 0.0;
            for (std::size_t j = 0; j < d_; ++j) {
                way_[j] = dot(along, block_.data() + j * kBlockRows, kBlockRows);
                largest = std::max(largest, std::abs(way_[j]));
            }
            if (!(largest > 0.0)) break;
            // Its length matters to nobody; that nothing overflows does.
            for (double &part : way_) part /= largest;
        }
        return way_;
    }

private:
    const std::size_t d_;
    std::vector<double> block_, way_;
};

// Rows of one cluster along its direction.
struct Along {
    std::size_t count = 0;
    std::vector<double> places, weights;
    std::vector<std::uint8_t> newest;
    double mass = 0.0, newest_mass = 0.0, squares = 0.0;

    explicit Along(std::size_t most)
        : places(most + kBlockRows), weights(most), newest(most) {}  // blocks are written whole

    void begin(const NewestRows &rows, std::size_t cluster) {
        count = rows.count(cluster);
        mass = newest_mass = squares = 0.0;
        for (std::size_t i = 0; i < count; ++i) {
            weights[i] = rows.weight(cluster, i);
            newest[i] = rows.is_newest(cluster, i);
            mass += weights[i];
            newest_mass += newest[i] ? weights[i] : 0.0;
            squares += weights[i] * weights[i];
        }
    }

    double score_as_two() const {
        const double sum = dot(weights.data(), places.data(), count);
        double low = 0.0, high = 0.0, above = 0.0, cut = sum / mass;
        for (std::size_t step = 0; step < kCutSteps; ++step) {
            double masses[kLanes] = {}, sums[kLanes] = {};
            std::size_t i = 0;
            for (; i + kLanes <= count; i += kLanes)
                for (std::size_t lane = 0; lane < kLanes; ++lane) {
                    const double weight = places[i + lane] > cut ? weights[i + lane] : 0.0;
                    masses[lane] += weight;
                    sums[lane] += weight * places[i + lane];
                }
            for (; i < count; ++i) {
                const double weight = places[i] > cut ? weights[i] : 0.0;
                masses[0] += weight;
                sums[0] += weight * places[i];
            }
            above = (masses[0] + masses[1]) + (masses[2] + masses[3]);
            const double beyond = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            if (!(above > 0.0 && above < mass)) return 0.0;
            low = (sum - beyond) / (mass - above);
            high = beyond / above;
            cut = low + 0.5 * (high - low);
        }
        if (!(high > low)) return 0.0;
        // Both parts must still be coming: a cluster that has jumped is not two.
        double newest_above = 0.0;
        Histogram line;
        line.squares = squares;
        const double scale = 1.0 / (high - low);
        for (std::size_t i = 0; i < count; ++i) {
            line.add((places[i] - low) * scale, weights[i], newest[i]);
            newest_above += newest[i] && places[i] > cut ? weights[i] : 0.0;
        }
        const double share = above / mass, newest_share = newest_above / newest_mass;
        if (!(newest_share >= 0.5 * share && 1.0 - newest_share >= 0.5 * (1.0 - share))) return 0.0;
        return -least_score(line, 1.0);
    }
};

}  // namespace

void score_valleys(const std::vector<Batch> &batches, const double *centroids, std::size_t k,
                   const double *masses, std::size_t rows_per_cluster, double shallow,
                   std::int32_t *neighbours, double *as_one, double *as_two) {
    const std::size_t d = batches.front().rows.columns;
    const NewestRows rows(batches, k, rows_per_cluster);
    std::vector<Line> lines = lines_to_neighbours(rows, centroids, k, d, neighbours);
    std::vector<std::vector<Line *>> lines_of(k);
    for (Line &line : lines)
        for (const std::size_t end : {line.from, line.to}) lines_of[end].push_back(&line);

    Direction direction(d);
    std::vector<double> block(kBlockRows * d);
    Along along(rows_per_cluster);
    for (std::size_t a = 0; a < k; ++a) {
        const double *centroid = centroids + a * d;
        as_one[a] = as_two[a] = 0.0;
        along.begin(rows, a);
        if (along.count == 0) continue;
        const std::vector<double> &way = direction.find(rows, a, centroid);
        for (std::size_t begin = 0; begin < along.count; begin += kBlockRows) {
            const std::size_t end = std::min(begin + kBlockRows, along.count);
            for (std::size_t i = begin; i < end; ++i)
                rows.load(a, i, centroid, i - begin, block.data());
            project(block.data(), way.data(), d, along.places.data() + begin);
            double squared[kBlockRows], shares[kBlockRows];
            add_up(block.data(), d, squared, [](std::size_t, double value) { return value * value; });
            for (Line *line : lines_of[a]) {
                const bool is_from = line->from == a;
                project(block.data(), line->way.data(), d, shares);
                for (std::size_t i = begin; i < end; ++i) {
                    // Every row has drawn its own centroid towards itself, which opens a valley
                    // where there is none; so each is seen from the centroid made without it.
                    const double rest = masses[a] - along.weights[i];
                    const double own = rest > 0.0 ? along.weights[i] / rest : 0.0;
                    const double towards = is_from ? shares[i - begin] : -shares[i - begin];
                    const double length = line->squared +
                                          own * (2.0 * towards + own * squared[i - begin]);
                    const double t = (1.0 + own) * (towards + own * squared[i - begin]) / length;
                    line->histogram.add(is_from ? t : 1.0 - t, along.weights[i], along.newest[i]);
                }
            }
        }
        for (Line *line : lines_of[a]) line->histogram.squares += along.squares;
        as_two[a] = along.score_as_two();
    }
    for (const Line &line : lines) {
        as_one[line.from] = score_as_one(line.histogram, shallow);
        if (static_cast<std::size_t>(neighbours[line.to]) == line.from)
            as_one[line.to] = as_one[line.from];
    }
}

}  // namespace kmeander
