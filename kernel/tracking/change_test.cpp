// Change test: statistics of the last batches against those before, judged beside learned noise.
#include "tracking/change_test.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "kmeans/checks.hpp"

namespace kmeander {

namespace {

// What the older batches keep of their weight with each batch.
constexpr double kOlderKept = 0.97;

// Batches after which what was learned of the noise counts 1/e, as in batch_noise.cpp.
constexpr double kMemory = 300.0;

// Batches, in units of the scale, for which independence of the statistics counts.
constexpr double kTogetherPrior = 20.0;
constexpr double kTogetherFreedom = 10.0;
constexpr double kTogetherCap = 9.0;

// The rows that may be far: this share of a batch, and at least so many.
constexpr double kFarShare = 0.01;
constexpr std::size_t kFarRows = 3;
// Batches from which on their farthest rows are compared with.
constexpr std::size_t kFarLeast = 15;
// Batches of a chapter whose decayed mean is where it began, without and with a season, and from
// which on trends are looked for.
constexpr std::size_t kOriginBatches = 12, kSeasonalOriginBatches = 36;
// How far a cluster walks, in standard deviations, before it is reported; what part of it since the
// origin; from how many rows; and how many times chance must be exceeded, in squares.
constexpr double kTrend = 2.5, kTrendSinceOrigin = 0.5, kTrendRows = 12.0, kTrendChance = 4.0;

// Squares have longer tails than scores: their rows count for less where few do.
constexpr double kSpreadRows = 0.25;

// A ratio of spreads is not taken of less.
constexpr double kLeastSpread = 1e-12;

// What past cycles keep of their weight at a change.
constexpr double kCyclesKept = 0.01;

// A farthest row is at least so many times as far (squared) as any before.
constexpr double kFarRatio = 2.0;

double squared(double value) { return value * value; }

// Leave only changes that another comparison of the same batches has found, too, as sure as the
// less sure of the two.
void keep_what_both_found(std::vector<FoundChange> &found, std::span<const FoundChange> other) {
    std::erase_if(found, [&](FoundChange &change) {
        const auto same = std::find_if(other.begin(), other.end(), [&](const FoundChange &one) {
            return one.kind == change.kind && one.cell == change.cell &&
                   (one.kind != FoundKind::kColumn || one.column == change.column);
        });
        if (same == other.end()) return true;
        change.z = std::min(change.z, same->z);
        return false;
    });
}

}  // namespace

ChangeTest::Known::Known(std::size_t k, std::size_t d)
    : noise{BatchNoise(k), BatchNoise(k * d + d), BatchNoise(k + 1)} {}

ChangeTest::ChangeTest(std::shared_ptr<const Cells> cells, std::size_t period)
    : cells_(std::move(cells)),
      older_(kScales, ScoreSums(cells_->k(), cells_->d())),
      season_(period),
      known_(period > 0 ? 2 : 1, Known(cells_->k(), cells_->d())) {}

std::shared_ptr<const ChangeTest> ChangeTest::in_chapter(std::shared_ptr<const Cells> cells,
                                                         std::span<const std::int32_t> renewed,
                                                         std::size_t period) const {
    const bool keeps_cycles =
        period > 0 && period == season_.period() && renewed.empty() && holds_still(*cells);
    auto next = std::make_shared<ChangeTest>(keeps_cycles ? cells_ : std::move(cells), period);
    std::copy_n(known_.begin(), std::min(known_.size(), next->known_.size()), next->known_.begin());
    next->rows_ = rows_;
    next->n_batches_ = n_batches_;
    next->n_tested_ = n_tested_;
    next->phase_ = period > 0 ? phase_ % period : 0;
    if (keeps_cycles) {
        next->season_ = season_;
        next->n_plain_ = n_plain_;
        // No later batch will be compared with a cycle that has these.
        for (auto batch = latest_.rbegin(); batch != latest_.rend(); ++batch)
            next->season_.add(batch->phase, *batch->sums);
        if (in_season_) {  // it is not what it was in past cycles
            next->season_.fade(kCyclesKept);
            // Until there are later batches at every phase, where they come once no block has them.
            next->n_plain_ = period + kScaleBatches.back() - 1;
        }
    }
    const std::size_t d = cells_->d();
    for (const std::int32_t cell : renewed) {
        const std::size_t c = static_cast<std::size_t>(cell);
        for (Known &known : next->known_) {
            known.noise[kOfShares].forget(c);
            known.noise[kOfSpreads].forget(c);
            for (std::size_t j = 0; j < d; ++j) known.noise[kOfPlaces].forget(c * d + j);
        }
    }
    return next;
}

// Whether the clusters are still about the middle of their cells.
bool ChangeTest::holds_still(const Cells &cells) const {
    const std::size_t d = cells_->d();
    for (std::size_t c = 0; c < cells_->k(); ++c) {
        double gap = 0.0;
        for (std::size_t at = c * d; at < (c + 1) * d; ++at)
            gap += squared((cells.centres()[at] - cells_->centres()[at]) * cells_->inverse()[at]);
        if (!(gap <= squared(Cells::kClip))) return false;
    }
    return true;
}

ChangeTest::Outcome ChangeTest::after(const BatchView &batch, const Partition &arrived,
                                      const ChangeLevels &levels, std::size_t n_phases) const {
    const auto next = std::make_shared<ChangeTest>(*this);
    if (period() > 0) next->phase_ = (phase_ + n_phases) % period();
    for (Known &known : next->known_)
        for (BatchNoise &noise : known.noise) noise.begin_batch();
    const std::vector<std::int32_t> labels = cells_->assign(batch, arrived);
    const auto newest = std::make_shared<ScoreSums>(cells_->k(), cells_->d());
    Buffer<double> far;
    cells_->add(batch, labels, *newest, far);
    Outcome outcome{.next = next, .changes = {}, .n_far = 0};
    ScoreSums block = *newest;
    std::vector<std::size_t> phases = {next->phase_};
    std::vector<double> masses = {newest->total_mass()};
    for (std::size_t number = 0; number < kScales; ++number) {
        const std::size_t n_batches = kScaleBatches[number];
        if (n_in_chapter_ < n_batches) break;
        while (phases.size() < n_batches) {
            const Latest &another = latest_[phases.size() - 1];
            block.add(*another.sums);
            phases.push_back(another.phase);
            masses.push_back(another.sums->total_mass());
        }
        ScoreSums usual(cells_->k(), cells_->d());
        const bool has_cycles = period() > 0 && season_.add_usual(phases, masses, usual);
        const bool in_season = has_cycles && n_plain_ == 0;
        if (number == 0) next->in_season_ = in_season;
        const double rows = n_batches_ > 0.0 ? rows_ / n_batches_ : block.total_mass();
        Comparison scale = {.number = number,
                            .newest = &block,
                            .older = in_season ? &usual : &older_[number],
                            .rows = block.total_mass() / (static_cast<double>(n_batches) * rows),
                            .known = &next->known_[in_season ? 1 : 0]};
        std::vector<FoundChange> found;
        next->test_scale(scale, levels, found);
        if (has_cycles && !in_season && !found.empty()) {
            Known known = next->known_[1];  // nothing is learned of cycles that may not hold
            std::vector<FoundChange> beside_cycles;
            scale.older = &usual;
            scale.known = &known;
            next->test_scale(scale, levels, beside_cycles);
            keep_what_both_found(found, beside_cycles);
        }
        outcome.changes.insert(outcome.changes.end(), found.begin(), found.end());
    }
    outcome.n_far = next->test_far(std::move(far), outcome.changes);
    test_trend(outcome.changes);
    next->learn(newest);
    return outcome;
}

void ChangeTest::test_scale(const Comparison &scale, const ChangeLevels &levels,
                            std::vector<FoundChange> &found) {
    const ScoreSums &newest = *scale.newest, &older = *scale.older;
    const std::array<double, kFamilies> of_family = {levels.share, levels.place, levels.spread};
    SquareSum all;
    for (const Family family : {kOfShares, kOfPlaces, kOfSpreads}) {
        const CellDifferences differences =
            family == kOfShares   ? compare_shares(newest, older, *cells_)
            : family == kOfPlaces ? compare_places(newest, older, *cells_)
                                  : compare_spreads(newest, older, *cells_);
        const SquareSum own = test_family(family, scale, differences, of_family[family], found);
        test_together(family, scale, own, levels.together, found);
        all.sum += own.sum;
        all.count += own.count;
        all.variance += own.variance;
        all.doubt += own.doubt;
    }
    test_together(kFamilies, scale, all, levels.together, found);
}

ChangeTest::SquareSum ChangeTest::test_family(Family family, const Comparison &scale,
                                              const CellDifferences &differences, double level,
                                              std::vector<FoundChange> &found) {
    const std::size_t k = cells_->k(), width = differences.width;
    const std::size_t n_overall = differences.overall.size();
    std::vector<double> deviates(std::max(width, n_overall));
    SquareSum own;
    BatchNoise &noise = scale.known->noise[family];
    noise.begin(scale.number, scale.rows);
    const double counting = family == kOfSpreads ? kSpreadRows : 1.0;
    for (std::size_t c = 0; c < k; ++c) {
        if (!(differences.rows[c] > 0.0)) continue;
        const double rows = counting * differences.rows[c];
        noise.judge(c * width, width, differences.squares.data() + c * width, rows,
                    deviates.data());
        std::size_t column = 0;
        for (std::size_t j = 0; j < width; ++j) {
            own.sum += deviates[j];
            if (deviates[j] > deviates[column]) column = j;
        }
        own.count += static_cast<double>(width);
        own.doubt += static_cast<double>(width) * noise.doubt(rows);
        if (deviates[column] > squared(level))
            found.push_back(
                change_of_cell(family, scale, differences, c, column, std::sqrt(deviates[column])));
    }
    if (n_overall > 0 && differences.overall_rows > 0.0) {
        noise.judge(k * width, n_overall, differences.overall_squares.data(),
                    counting * differences.overall_rows, deviates.data());
        for (std::size_t j = 0; j < n_overall; ++j) {
            if (!(deviates[j] > squared(level))) continue;
            const bool of_places = family == kOfPlaces;
            const double before = differences.overall_before[j], gap = differences.overall[j];
            found.push_back({.kind = of_places ? FoundKind::kColumn : FoundKind::kSpread,
                             .n_batches = batches_of(scale),
                             .column = of_places ? static_cast<std::int32_t>(j) : -1,
                             .value = of_places ? gap : 1.0 + gap / std::max(before, kLeastSpread),
                             .z = std::sqrt(deviates[j])});
        }
    }
    noise.end();
    // Columns that vary together count for fewer.
    const double per_column =
        family == kOfPlaces ? static_cast<double>(cells_->d()) / cells_->n_independent() : 1.0;
    own.variance = 2.0 * own.count * per_column;
    return own;
}

FoundChange ChangeTest::change_of_cell(Family family, const Comparison &scale,
                                       const CellDifferences &differences, std::size_t cell,
                                       std::size_t column, double z) const {
    FoundChange change = {.kind = FoundKind::kShare,
                          .n_batches = batches_of(scale),
                          .cell = static_cast<std::int32_t>(cell),
                          .value = differences.now[cell * differences.width],
                          .was = differences.before[cell * differences.width],
                          .z = z};
    if (family == kOfSpreads) {
        change.kind = FoundKind::kSpread;
        change.value /= std::max(change.was, kLeastSpread);
    } else if (family == kOfPlaces) {
        double distance = 0.0;
        for (std::size_t at = cell * differences.width; at < (cell + 1) * differences.width; ++at)
            distance +=
                squared((differences.now[at] - differences.before[at]) / cells_->inverse()[at]);
        change.kind = FoundKind::kPlace;
        change.column = static_cast<std::int32_t>(column);
        change.value = std::sqrt(distance);
        change.was = 0.0;
    }
    return change;
}

// The mean of p squared deviates is 1 and varies by 2 / p where they are independent normal ones;
// what it really varies by is learned. The cube root of a mean square is near to normal (Wilson and
// Hilferty 1931).
void ChangeTest::test_together(std::size_t which, const Comparison &scale, const SquareSum &squares,
                               double level, std::vector<FoundChange> &found) {
    if (!(squares.count > 1.0)) return;
    constexpr std::array<FoundKind, kTogether> kinds = {FoundKind::kShares, FoundKind::kPlaces,
                                                        FoundKind::kSpreads, FoundKind::kAll};
    const std::size_t at = which * kScales + scale.number;
    double &together = scale.known->together[at], &n_together = scale.known->n_together[at];
    const double batches = static_cast<double>(kScaleBatches[scale.number]);
    const double prior = kTogetherPrior * batches;
    const double independent = squares.variance / squared(squares.count);
    const double variance = (together + prior * independent) / (n_together + prior);
    const double part = variance / 9.0;  // 2 / (9 b) with 2 / b the variance
    const double mean = squares.sum / squares.count;
    const double root = (std::cbrt(mean) - (1.0 - part)) / std::sqrt(part);
    // As little is known of it as of the noise of the family that is noisiest.
    double freedom = HUGE_VAL;
    for (std::size_t family = 0; family < kFamilies; ++family)
        if (which == family || which == kFamilies)
            freedom = std::min(freedom, scale.known->noise[family].freedom(kTogetherFreedom +
                                                                           n_together / batches));
    freedom = 1.0 / (1.0 / freedom + squares.doubt / squares.count);
    const double z = root > 0.0 ? normal_from_student(root * root, freedom) : 0.0;
    if (z > level)
        found.push_back(
            {.kind = kinds[which], .n_batches = batches_of(scale), .value = mean, .z = z});
    const double off = squared(mean - 1.0);
    together = (1.0 - 1.0 / kMemory) * together + std::min(off, kTogetherCap * variance);
    n_together = (1.0 - 1.0 / kMemory) * n_together + 1.0;
}

// No distribution is assumed: a batch has far rows if several of it are much farther away than any
// were in the batches before; how much farther depends on how these differ from one another.
std::size_t ChangeTest::test_far(Buffer<double> far, std::vector<FoundChange> &found) {
    const std::size_t wanted =
        static_cast<std::size_t>(std::ceil(kFarShare * static_cast<double>(far.size())));
    const std::size_t place = std::min(std::max(wanted, kFarRows), far.size()) - 1;
    double *const end = far.data() + far.size(), *const nth = far.data() + place;
    std::nth_element(far.data(), nth, end, std::greater<>());
    const double farthest = *nth;
    std::size_t n_far = 0;
    if (farthest_.size() >= kFarLeast) {
        std::vector<double> sorted = farthest_;
        std::sort(sorted.begin(), sorted.end());
        const double largest = sorted.back(), median = sorted[sorted.size() / 2];
        const double limit = largest * std::max(kFarRatio, largest / std::max(median, 1e-300));
        n_far = static_cast<std::size_t>(
            std::count_if(far.data(), end, [&](double value) { return value > limit; }));
        if (farthest > limit)
            found.push_back(
                {.kind = FoundKind::kFar, .n_batches = 1, .value = std::sqrt(farthest / largest)});
    }
    farthest_.push_back(farthest);
    if (farthest_.size() > kFarMemory) farthest_.erase(farthest_.begin());
    return n_far;
}

// A walk that no comparison of neighbours finds: where the older batches lie now, in cells that
// stand where the clusters were when the chapter began. A centre that few rows have made is not
// where its cluster was, so part of the way must be seen since the first batches, beyond chance.
// In a season the centre of a cell is that of one phase; then all of it must, at the same phase.
void ChangeTest::test_trend(std::vector<FoundChange> &found) const {
    if (!origin_ || n_in_chapter_ < kSeasonalOriginBatches) return;
    if (period() > 0 && (n_in_chapter_ < 2 * kSeasonalOriginBatches ||
                         (n_in_chapter_ - kSeasonalOriginBatches) % period() != 0))
        return;
    const std::size_t d = cells_->d();
    const ScoreSums &now = older_[0], &then = *origin_;
    const double lasting = std::max(known_[0].noise[kOfPlaces].lasting(), 1.0);
    for (std::size_t c = 0; c < cells_->k(); ++c) {
        if (std::min(now.rows(c), then.rows(c)) < kTrendRows) continue;
        double moved = 0.0, largest = 0.0, since = 0.0, variance = 0.0;
        std::size_t column = 0;
        for (std::size_t j = 0; j < d; ++j) {
            const double mean = now.scores(c)[j] / now.mass(c);
            const double origin = then.scores(c)[j] / then.mass(c);
            const double off = squared(mean - (period() > 0 ? origin : 0.0));
            moved += off;
            since += squared(mean - origin);
            variance += std::max(now.score_squares(c)[j] / now.mass(c) - squared(mean), 0.0);
            if (off > largest) {
                largest = off;
                column = j;
            }
        }
        const double chance = lasting * variance * (1.0 / now.rows(c) + 1.0 / then.rows(c));
        if (moved > squared(kTrend) &&
            since > squared(kTrendSinceOrigin * kTrend) + kTrendChance * chance)
            found.push_back({.kind = FoundKind::kTrend,
                             .n_batches = static_cast<std::int32_t>(n_in_chapter_),
                             .cell = static_cast<std::int32_t>(c),
                             .column = static_cast<std::int32_t>(column),
                             .value = std::sqrt(moved)});
    }
}

void ChangeTest::learn(std::shared_ptr<const ScoreSums> newest) {
    const double kept = 1.0 - 1.0 / kMemory;
    rows_ = kept * rows_ + newest->total_mass();
    n_batches_ = kept * n_batches_ + 1.0;
    ++n_in_chapter_;
    ++n_tested_;
    if (n_plain_ > 0) --n_plain_;
    latest_.push_front({std::move(newest), phase_});
    for (std::size_t scale = 0; scale < kScales; ++scale) {
        if (latest_.size() < kScaleBatches[scale]) break;
        older_[scale].decay(kOlderKept);
        older_[scale].add(*latest_[kScaleBatches[scale] - 1].sums);
    }
    if (n_in_chapter_ == (period() > 0 ? kSeasonalOriginBatches : kOriginBatches))
        origin_ = std::make_shared<ScoreSums>(older_[0]);
    if (latest_.size() < kScaleBatches.back()) return;
    // The newest of the next comparison will be with the others. What is compared with past cycles
    // is no part of them.
    if (period() > 0) season_.add(latest_.back().phase, *latest_.back().sums);
    latest_.pop_back();
}

UsualNoise ChangeTest::usual_noise() const {
    const bool has_cycles = period() > 0 && known_[1].noise[kOfPlaces].n_batches(0) > 0.0;
    const std::vector<BatchNoise> &noise = known_[has_cycles ? 1 : 0].noise;
    return {noise[kOfShares].usual(), noise[kOfPlaces].usual(), noise[kOfSpreads].usual(),
            n_tested_};
}

}  // namespace kmeander
