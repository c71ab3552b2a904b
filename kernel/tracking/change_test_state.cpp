// Change test, saved and restored: all that it knows as flat arrays, checked when they are read.
#include <algorithm>

#include "kmeans/checks.hpp"
#include "tracking/change_test.hpp"

namespace kmeander {

ChangeTest::ChangeTest(std::shared_ptr<const Cells> cells, std::size_t period,
                       const SavedChangeTest &saved)
    : ChangeTest(std::move(cells), period) {
    const std::size_t k = cells_->k(), d = cells_->d(), size = ScoreSums::size_of(k, d);
    const std::array<std::size_t, kFamilies> sizes = {k, k * d + d, k + 1};
    const std::size_t n_statistics = known_.size() * kScales * (sizes[0] + sizes[1] + sizes[2]);
    constexpr std::size_t per_family = BatchNoise::kNumbersOfFamily * kScales;
    const std::size_t n_latest = saved.latest.size() / size;
    need(saved.latest.size() % size == 0 && n_latest < kScaleBatches.back() &&
             n_latest == std::min(saved.n_in_chapter, kScaleBatches.back() - 1) &&
             saved.latest_phases.size() == n_latest && saved.older.size() == kScales * size &&
             (saved.origin.empty() || saved.origin.size() == size) &&
             saved.phases.size() == period * size && saved.is_known.size() == period &&
             saved.noise_squares.size() == n_statistics &&
             saved.noise_counts.size() == n_statistics &&
             saved.noise_families.size() == known_.size() * kFamilies * per_family &&
             saved.together.size() == known_.size() * 2 * kTogether * kScales &&
             saved.totals.size() == 2 && saved.farthest.size() <= kFarMemory &&
             saved.phase < std::max<std::size_t>(period, 1),
         "a saved change test does not fit its cells");
    n_in_chapter_ = saved.n_in_chapter;
    phase_ = saved.phase;
    n_plain_ = saved.n_plain;
    n_tested_ = saved.n_tested;
    in_season_ = saved.in_season;
    for (std::size_t b = 0; b < n_latest; ++b) {
        const double phase = saved.latest_phases[b];
        need(phase >= 0.0 && phase < std::max(static_cast<double>(period), 1.0), "no such phase");
        latest_.push_back({std::make_shared<ScoreSums>(k, d, saved.latest.data() + b * size),
                           static_cast<std::size_t>(phase)});
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
    std::size_t at = 0, of_family = 0, together = 0;
    for (Known &known : known_) {
        known.noise.clear();
        for (std::size_t family = 0; family < kFamilies; ++family) {
            known.noise.emplace_back(sizes[family], saved.noise_squares.data() + at,
                                     saved.noise_counts.data() + at,
                                     saved.noise_families.data() + of_family);
            at += kScales * sizes[family];
            of_family += per_family;
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
    ChangeTestArrays saved;
    saved.n_in_chapter = n_in_chapter_;
    saved.farthest = farthest_;
    saved.phase = phase_;
    saved.n_plain = n_plain_;
    saved.n_tested = n_tested_;
    saved.in_season = in_season_;
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
            for (const auto &numbers : noise.of_family()) append(saved.noise_families, numbers);
        }
        append(saved.together, known.together);
        append(saved.together, known.n_together);
    }
    saved.totals = {rows_, n_batches_};
    return saved;
}

}  // namespace kmeander
