// Season: decayed sums of the batches at each phase of a cycle.
#include "tracking/season.hpp"

namespace kmeander {

namespace {

// What a cycle keeps of its weight with the next.
constexpr double kCycleKept = 0.8;

}  // namespace

void Season::add(std::size_t phase, const ScoreSums &sums) {
    auto next = std::make_shared<ScoreSums>(sums);
    if (phases_[phase]) next->add(*phases_[phase], kCycleKept);
    phases_[phase] = std::move(next);
}

void Season::fade(double share) {
    for (auto &sums : phases_) {
        if (!sums) continue;
        auto faded = std::make_shared<ScoreSums>(*sums);
        faded->decay(share);
        sums = std::move(faded);
    }
}

bool Season::add_usual(std::span<const std::size_t> phases, std::span<const double> masses,
                       ScoreSums &usual) const {
    for (std::size_t b = 0; b < phases.size(); ++b) {
        const auto &sums = phases_[phases[b]];
        if (!sums) return false;
        usual.add(*sums, masses[b] / sums->total_mass());
    }
    return true;
}

}  // namespace kmeander
