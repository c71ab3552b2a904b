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

// Batches from which the noise is taken to be known.
constexpr double kEarlyBatches = 20.0;

// Rows in a cell, in the newest batches and in the older ones, from which its mean is looked at.
constexpr double kLeastNewest = 3.0, kLeastOlder = 6.0;

// Rows for which the variance over all cells counts in one cell, and the least variance of a score:
// cells are made when a chapter begins, so it is 1 unless the stream grew much calmer since.
constexpr double kPriorRows = 10.0;
constexpr double kLeastVariance = 0.25;

// Batches, in units of the scale, for which independence of the statistics counts.
constexpr double kTogetherPrior = 20.0;
constexpr double kTogetherFreedom = 10.0;
constexpr double kTogetherCap = 9.0;

// The rows that may be far: this share of a batch, and at least so many.
constexpr double kFarShare = 0.01;
constexpr std::size_t kFarRows = 3;
// Batches whose farthest rows are remembered, and from how many on they are compared with.
constexpr std::size_t kFarMemory = 100, kFarLeast = 15;
// Batches of a chapter whose decayed mean is where it began, and how far a cluster walks from
// there, in standard deviations, before it is told.
constexpr std::size_t kOriginBatches = 36;
constexpr double kTrend = 2.0;

// What past cycles keep of their weight at a change.
constexpr double kCyclesKept = 0.25;

// A farthest row is at least so many times as far (squared) as any before.
constexpr double kFarRatio = 2.0;

double squared(double value) { return value * value; }

// Signed root of the deviance of two binomial samples, the newest count moved by one half.
double share_deviate(double newest, double size, double older, double older_size) {
    const double pooled = (newest + older) / (size + older_size);
    const double expected = size * pooled;
    const double sign = newest > expected ? 1.0 : -1.0;
    const double moved =
        sign > 0.0 ? std::max(newest - 0.5, expected) : std::min(newest + 0.5, expected);
    const double both = (moved + older) / (size + older_size);
    double deviance = 0.0;
    const auto add = [&](double n, double m) {
        if (n > 0.0 && m > 0.0) deviance += 2.0 * n * std::log(n / m);
    };
    add(moved, size * both);
    add(size - moved, size * (1.0 - both));
    add(older, older_size * both);
    add(older_size - older, older_size * (1.0 - both));
    return sign * std::sqrt(std::max(deviance, 0.0));
}

// Whether a cell has rows enough to compare its means.
bool has_rows(double newest, double older) {
    return newest >= kLeastNewest && older >= kLeastOlder;
}

}  // namespace

ChangeTest::Known::Known(std::size_t k, std::size_t d)
    : noise{BatchNoise(k), BatchNoise(k * d + d), BatchNoise(k + 1)} {}

ChangeTest::ChangeTest(std::shared_ptr<const Cells> cells, std::size_t period)
    : cells_(std::move(cells)),
      older_(kScales, ScoreSums(cells_->k(), cells_->d())),
      season_(period),
      known_{Known(cells_->k(), cells_->d()), Known(cells_->k(), cells_->d())} {}

std::shared_ptr<const ChangeTest> ChangeTest::in_chapter(std::shared_ptr<const Cells> cells,
                                                         std::span<const std::int32_t> renewed,
                                                         std::size_t period) const {
    const bool keeps_cycles =
        period > 0 && period == season_.period() && renewed.empty() && holds_still(*cells);
    auto next = std::make_shared<ChangeTest>(keeps_cycles ? cells_ : std::move(cells), period);
    next->known_ = known_;
    next->rows_ = rows_;
    next->n_batches_ = n_batches_;
    next->phase_ = period > 0 ? phase_ % period : 0;
    if (keeps_cycles) {
        next->season_ = season_;
        next->n_plain_ = n_plain_;
        if (in_season_) {  // it is not what it was in past cycles
            next->season_.fade(kCyclesKept);
            next->n_plain_ = period;
        }
        // No later batch will be compared with a cycle that has these.
        for (auto batch = latest_.rbegin(); batch != latest_.rend(); ++batch)
            next->season_.add(batch->phase, *batch->sums);
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
    const std::vector<std::int32_t> labels = cells_->assign(batch, arrived);
    const auto newest = std::make_shared<ScoreSums>(cells_->k(), cells_->d());
    std::vector<double> far;
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
        const bool in_season =
            period() > 0 && n_plain_ == 0 && season_.add_usual(phases, masses, usual);
        if (number == 0) next->in_season_ = in_season;
        const double rows = n_batches_ > 0.0 ? rows_ / n_batches_ : block.total_mass();
        const Scale scale = {.number = number,
                             .newest = &block,
                             .older = in_season ? &usual : &older_[number],
                             .rows = block.total_mass() / (static_cast<double>(n_batches) * rows),
                             .is_early = n_batches_ < kEarlyBatches,
                             .known = &next->known_[in_season ? 1 : 0]};
        next->test_scale(scale, levels, outcome.changes);
    }
    outcome.n_far = next->test_far(std::move(far), outcome.changes);
    test_trend(outcome.changes);
    next->learn(newest);
    return outcome;
}

void ChangeTest::test_scale(const Scale &scale, const ChangeLevels &levels,
                            std::vector<FoundChange> &found) {
    test_together(kOfShares, scale, test_shares(scale, levels.share, found), levels.together,
                  found);
    test_together(kOfPlaces, scale, test_places(scale, levels.place, found), levels.together,
                  found);
    test_together(kOfSpreads, scale, test_spreads(scale, levels.spread, found), levels.together,
                  found);
}

ChangeTest::FamilySquares ChangeTest::test_shares(const Scale &scale, double level,
                                                  std::vector<FoundChange> &found) {
    const ScoreSums &newest = *scale.newest, &older = *scale.older;
    const double size = newest.total_rows(), older_size = older.total_rows();
    const double mass = newest.total_mass(), older_mass = older.total_mass();
    FamilySquares squares;
    BatchNoise &noise = scale.known->noise[kOfShares];
    noise.begin(scale.number, scale.rows, scale.is_early);
    for (std::size_t c = 0; c < cells_->k(); ++c) {
        const double now = newest.mass(c) / mass, before = older.mass(c) / older_mass;
        const double pooled = (now * size + before * older_size) / (size + older_size);
        if (!(pooled * size >= 1.0)) continue;
        const double z = share_deviate(now * size, size, before * older_size, older_size);
        const double deviate = noise.judge(c, z, pooled * size);
        squares.sum += squared(deviate);
        squares.count += 1.0;
        if (deviate > level)
            found.push_back({.kind = ChangeKind::kShare,
                             .n_batches = static_cast<std::int32_t>(kScaleBatches[scale.number]),
                             .cell = static_cast<std::int32_t>(c),
                             .value = now,
                             .was = before,
                             .z = deviate});
    }
    noise.end();
    return squares;
}

ChangeTest::FamilySquares ChangeTest::test_places(const Scale &scale, double level,
                                                  std::vector<FoundChange> &found) {
    const ScoreSums &newest = *scale.newest, &older = *scale.older;
    const std::size_t k = cells_->k(), d = cells_->d();
    std::vector<double> variance(k * d), shift(k * d), pooled(d), weighted(d), precision(d);
    double all_freedom = 0.0, all_rows = 0.0;
    const auto freedom_of = [&](std::size_t c) {
        return std::max(newest.rows(c) - 1.0, 0.0) + std::max(older.rows(c) - 1.0, 0.0);
    };
    for (std::size_t c = 0; c < k; ++c) {
        const double n = newest.rows(c), m = older.rows(c);
        for (const auto &[sums, rows] : {std::pair{&newest, n}, std::pair{&older, m}}) {
            if (!(rows > 0.0)) continue;
            const double mass = sums->mass(c);
            for (std::size_t j = 0; j < d; ++j) {
                const double mean = sums->scores(c)[j] / mass;
                shift[c * d + j] += sums == &newest ? mean : -mean;
                variance[c * d + j] +=
                    rows * std::max(sums->score_squares(c)[j] / mass - mean * mean, 0.0);
            }
        }
        all_freedom += freedom_of(c);
        for (std::size_t j = 0; j < d; ++j) pooled[j] += variance[c * d + j];
    }
    for (double &value : pooled) value /= std::max(all_freedom, 1.0);
    FamilySquares squares;
    BatchNoise &noise = scale.known->noise[kOfPlaces];
    noise.begin(scale.number, scale.rows, scale.is_early);
    const std::int32_t n_batches = static_cast<std::int32_t>(kScaleBatches[scale.number]);
    for (std::size_t c = 0; c < k; ++c) {
        const double n = newest.rows(c), m = older.rows(c);
        if (!has_rows(n, m)) continue;
        const double rows = 1.0 / n + 1.0 / m, freedom = freedom_of(c);
        std::size_t column = 0;
        double distance = 0.0, largest = 0.0;
        for (std::size_t j = 0; j < d; ++j) {
            const std::size_t at = c * d + j;
            const double spread =
                rows * std::max((variance[at] + kPriorRows * pooled[j]) / (freedom + kPriorRows),
                                kLeastVariance);
            const double deviate = noise.judge(at, shift[at] / std::sqrt(spread), n);
            squares.sum += squared(deviate);
            squares.count += 1.0;
            weighted[j] += shift[at] / spread;
            precision[j] += 1.0 / spread;
            if (deviate > largest) {
                largest = deviate;
                column = j;
            }
            distance += squared(shift[at] / cells_->inverse()[at]);
        }
        all_rows += n;
        if (largest > level)
            found.push_back({.kind = ChangeKind::kPlace,
                             .n_batches = n_batches,
                             .cell = static_cast<std::int32_t>(c),
                             .column = static_cast<std::int32_t>(column),
                             .value = std::sqrt(distance),
                             .z = largest});
    }
    for (std::size_t j = 0; j < d; ++j) {
        if (!(precision[j] > 0.0)) continue;
        const double deviate =
            noise.judge(k * d + j, weighted[j] / std::sqrt(precision[j]), all_rows);
        if (deviate > level)
            found.push_back({.kind = ChangeKind::kColumn,
                             .n_batches = n_batches,
                             .column = static_cast<std::int32_t>(j),
                             .value = weighted[j] / precision[j],
                             .z = deviate});
    }
    noise.end();
    return squares;
}

ChangeTest::FamilySquares ChangeTest::test_spreads(const Scale &scale, double level,
                                                   std::vector<FoundChange> &found) {
    const ScoreSums &newest = *scale.newest, &older = *scale.older;
    const std::size_t k = cells_->k();
    std::vector<double> variance(k), shift(k), now(k), before(k);
    double pooled = 0.0, all_freedom = 0.0;
    const auto freedom_of = [&](std::size_t c) {
        return std::max(newest.rows(c) - 1.0, 0.0) + std::max(older.rows(c) - 1.0, 0.0);
    };
    for (std::size_t c = 0; c < k; ++c) {
        for (const ScoreSums *sums : {&newest, &older}) {
            const double rows = sums->rows(c), mass = sums->mass(c);
            if (!(rows > 0.0)) continue;
            const double mean = sums->spread(c) / mass;
            (sums == &newest ? now : before)[c] = mean;
            variance[c] += rows * std::max(sums->spread_squares(c) / mass - mean * mean, 0.0);
        }
        pooled += variance[c];
        all_freedom += freedom_of(c);
    }
    pooled /= std::max(all_freedom, 1.0);
    // The mean of d squares of normal scores varies by 2 / d.
    const double least = kLeastVariance * 2.0 / static_cast<double>(cells_->d());
    FamilySquares squares;
    BatchNoise &noise = scale.known->noise[kOfSpreads];
    noise.begin(scale.number, scale.rows, scale.is_early);
    const auto found_in = [&](std::int32_t cell, double ratio, double deviate) {
        if (deviate > level)
            found.push_back({.kind = ChangeKind::kSpread,
                             .n_batches = static_cast<std::int32_t>(kScaleBatches[scale.number]),
                             .cell = cell,
                             .value = ratio,
                             .z = deviate});
    };
    double weighted = 0.0, precision = 0.0, all_rows = 0.0, sum_now = 0.0, sum_before = 0.0;
    for (std::size_t c = 0; c < k; ++c) {
        const double n = newest.rows(c), m = older.rows(c);
        if (!has_rows(n, m)) continue;
        const double spread =
            (1.0 / n + 1.0 / m) *
            std::max((variance[c] + kPriorRows * pooled) / (freedom_of(c) + kPriorRows), least);
        const double off = now[c] - before[c];
        const double deviate = noise.judge(c, off / std::sqrt(spread), n);
        squares.sum += squared(deviate);
        squares.count += 1.0;
        weighted += off / spread;
        precision += 1.0 / spread;
        all_rows += n;
        sum_now += now[c] / spread;
        sum_before += before[c] / spread;
        found_in(static_cast<std::int32_t>(c), now[c] / std::max(before[c], 1e-12), deviate);
    }
    if (precision > 0.0)
        found_in(-1, sum_now / std::max(sum_before, 1e-12),
                 noise.judge(k, weighted / std::sqrt(precision), all_rows));
    noise.end();
    return squares;
}

// The mean of p squared deviates is 1 and varies by 2 / p where they are independent normal ones;
// what it really varies by is learned. The cube root of a mean square is near to normal (Wilson and
// Hilferty 1931).
void ChangeTest::test_together(Family family, const Scale &scale, FamilySquares squares,
                               double level, std::vector<FoundChange> &found) {
    if (!(squares.count > 1.0)) return;
    const std::size_t at = family * kScales + scale.number;
    double &together = scale.known->together[at], &n_together = scale.known->n_together[at];
    const double batches = static_cast<double>(kScaleBatches[scale.number]);
    double independent = squares.count;
    if (family == kOfPlaces)
        independent *= cells_->n_independent() / static_cast<double>(cells_->d());
    const double prior = kTogetherPrior * batches;
    const double variance = (together + prior * 2.0 / independent) / (n_together + prior);
    const double part = variance / 9.0;  // 2 / (9 b) with 2 / b the variance
    const double mean = squares.sum / squares.count;
    const double root = (std::cbrt(mean) - (1.0 - part)) / std::sqrt(part);
    const double freedom = kTogetherFreedom + n_together / batches;
    const double z = root > 0.0 ? normal_from_student(root * root, freedom) : 0.0;
    if (z > level)
        found.push_back(
            {.kind = static_cast<ChangeKind>(static_cast<std::int32_t>(ChangeKind::kShares) +
                                             static_cast<std::int32_t>(family)),
             .n_batches = static_cast<std::int32_t>(kScaleBatches[scale.number]),
             .value = mean,
             .z = z});
    const double off = squared(mean - 1.0);
    together = (1.0 - 1.0 / kMemory) * together + std::min(off, kTogetherCap * variance);
    n_together = (1.0 - 1.0 / kMemory) * n_together + 1.0;
}

// No distribution is assumed: a batch has far rows if several of it are much farther away than any
// were in the batches before; how much farther depends on how these differ from one another.
std::size_t ChangeTest::test_far(std::vector<double> far, std::vector<FoundChange> &found) {
    const std::size_t wanted =
        static_cast<std::size_t>(std::ceil(kFarShare * static_cast<double>(far.size())));
    const std::size_t place = std::min(std::max(wanted, kFarRows), far.size()) - 1;
    const auto nth = far.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(far.begin(), nth, far.end(), std::greater<>());
    const double farthest = *nth;
    std::size_t n_far = 0;
    if (farthest_.size() >= kFarLeast) {
        std::vector<double> sorted = farthest_;
        std::sort(sorted.begin(), sorted.end());
        const double largest = sorted.back(), median = sorted[sorted.size() / 2];
        const double limit = largest * std::max(kFarRatio, largest / std::max(median, 1e-300));
        for (const double value : far) n_far += value > limit ? 1 : 0;
        if (farthest > limit)
            found.push_back(
                {.kind = ChangeKind::kFar, .n_batches = 1, .value = std::sqrt(farthest / largest)});
    }
    farthest_.push_back(farthest);
    if (farthest_.size() > kFarMemory) farthest_.erase(farthest_.begin());
    return n_far;
}

// A walk that no comparison of neighbours finds: the older batches now, against those when the
// chapter was young. In a season both are of the same phase.
void ChangeTest::test_trend(std::vector<FoundChange> &found) const {
    if (!origin_ || n_in_chapter_ < 2 * kOriginBatches) return;
    if (period() > 0 && (n_in_chapter_ - kOriginBatches) % period() != 0) return;
    const std::size_t d = cells_->d();
    for (std::size_t c = 0; c < cells_->k(); ++c) {
        if (!has_rows(older_[0].rows(c), origin_->rows(c))) continue;
        double moved = 0.0, largest = 0.0;
        std::size_t column = 0;
        for (std::size_t j = 0; j < d; ++j) {
            const double off = squared(older_[0].scores(c)[j] / older_[0].mass(c) -
                                       origin_->scores(c)[j] / origin_->mass(c));
            moved += off;
            if (off > largest) {
                largest = off;
                column = j;
            }
        }
        if (moved > squared(kTrend))
            found.push_back({.kind = ChangeKind::kTrend,
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
    if (n_plain_ > 0) --n_plain_;
    latest_.push_front({std::move(newest), phase_});
    for (std::size_t scale = 0; scale < kScales; ++scale) {
        if (latest_.size() < kScaleBatches[scale]) break;
        older_[scale].decay(kOlderKept);
        older_[scale].add(*latest_[kScaleBatches[scale] - 1].sums);
    }
    if (n_in_chapter_ == kOriginBatches) origin_ = std::make_shared<ScoreSums>(older_[0]);
    if (latest_.size() < kScaleBatches.back()) return;
    // The newest of the next comparison will be with the others. What is compared with past cycles
    // is no part of them.
    if (period() > 0) season_.add(latest_.back().phase, *latest_.back().sums);
    latest_.pop_back();
}

ChangeTest::ChangeTest(std::shared_ptr<const Cells> cells, std::size_t period,
                       const SavedChangeTest &saved)
    : ChangeTest(std::move(cells), period) {
    const std::size_t k = cells_->k(), d = cells_->d(), size = ScoreSums::size_of(k, d);
    const std::array<std::size_t, kFamilies> sizes = {k, k * d + d, k + 1};
    const std::size_t n_statistics = 2 * kScales * (sizes[0] + sizes[1] + sizes[2]);
    const std::size_t n_latest = saved.latest.size() / size;
    need(saved.latest.size() % size == 0 && n_latest < kScaleBatches.back() &&
             n_latest == std::min(saved.n_in_chapter, kScaleBatches.back() - 1) &&
             saved.latest_phases.size() == n_latest && saved.older.size() == kScales * size &&
             (saved.origin.empty() || saved.origin.size() == size) &&
             saved.phases.size() == period * size && saved.is_known.size() == period &&
             saved.noise_squares.size() == n_statistics &&
             saved.noise_counts.size() == n_statistics &&
             saved.noise_batches.size() == 2 * kFamilies * kScales &&
             saved.together.size() == 2 * 2 * kFamilies * kScales && saved.totals.size() == 2 &&
             saved.farthest.size() <= kFarMemory && saved.phase < std::max<std::size_t>(period, 1),
         "a saved change test does not fit its cells");
    n_in_chapter_ = saved.n_in_chapter;
    phase_ = saved.phase;
    n_plain_ = saved.n_plain;
    in_season_ = saved.in_season;
    for (std::size_t b = 0; b < n_latest; ++b) {
        const std::size_t phase = static_cast<std::size_t>(saved.latest_phases[b]);
        need(phase < std::max<std::size_t>(period, 1), "no such phase");
        latest_.push_back(
            {std::make_shared<ScoreSums>(k, d, saved.latest.data() + b * size), phase});
    }
    older_.clear();
    for (std::size_t scale = 0; scale < kScales; ++scale)
        older_.emplace_back(k, d, saved.older.data() + scale * size);
    if (!saved.origin.empty()) origin_ = std::make_shared<ScoreSums>(k, d, saved.origin.data());
    for (std::size_t phase = 0; phase < period; ++phase)
        if (saved.is_known[phase] != 0.0)
            season_.set(phase,
                        std::make_shared<ScoreSums>(k, d, saved.phases.data() + phase * size));
    farthest_.assign(saved.farthest.begin(), saved.farthest.end());
    std::size_t at = 0, batches = 0, together = 0;
    for (Known &known : known_) {
        known.noise.clear();
        for (std::size_t family = 0; family < kFamilies; ++family) {
            known.noise.emplace_back(sizes[family], saved.noise_squares.data() + at,
                                     saved.noise_counts.data() + at,
                                     saved.noise_batches.data() + batches);
            at += kScales * sizes[family];
            batches += kScales;
        }
        for (auto *sums : {&known.together, &known.n_together}) {
            std::copy_n(saved.together.begin() + static_cast<std::ptrdiff_t>(together),
                        sums->size(), sums->begin());
            together += sums->size();
        }
    }
    rows_ = saved.totals[0];
    n_batches_ = saved.totals[1];
}

ChangeTestArrays ChangeTest::arrays() const {
    ChangeTestArrays saved{.n_in_chapter = n_in_chapter_,
                           .farthest = farthest_,
                           .phase = phase_,
                           .n_plain = n_plain_,
                           .in_season = in_season_};
    const auto append = [](std::vector<double> &to, const auto &from) {
        to.insert(to.end(), from.begin(), from.end());
    };
    for (const Latest &batch : latest_) {
        append(saved.latest, batch.sums->values());
        saved.latest_phases.push_back(static_cast<double>(batch.phase));
    }
    for (const ScoreSums &sums : older_) append(saved.older, sums.values());
    if (origin_) append(saved.origin, origin_->values());
    const ScoreSums nothing(cells_->k(), cells_->d());
    for (const auto &sums : season_.phases()) {
        append(saved.phases, (sums ? *sums : nothing).values());
        saved.is_known.push_back(sums ? 1.0 : 0.0);
    }
    for (const Known &known : known_) {
        for (const BatchNoise &noise : known.noise) {
            append(saved.noise_squares, noise.squares());
            append(saved.noise_counts, noise.counts());
            append(saved.noise_batches, noise.batches());
        }
        append(saved.together, known.together);
        append(saved.together, known.n_together);
    }
    saved.totals = {rows_, n_batches_};
    return saved;
}

UsualNoise ChangeTest::usual_noise() const {
    const bool in_season = known_[1].noise[kOfPlaces].n_batches(0) > 0.0 && period() > 0;
    const std::vector<BatchNoise> &noise = known_[in_season ? 1 : 0].noise;
    return {noise[kOfShares].usual(), noise[kOfPlaces].usual(), noise[kOfSpreads].usual(),
            n_batches_};
}

}  // namespace kmeander
