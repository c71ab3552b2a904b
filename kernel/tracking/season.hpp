// Season: the baseline at each phase of a cycle, from past cycles.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tracking/cells.hpp"

namespace kmeander {

class Season {
public:
    Season() = default;
    // `period` is in batches; 0 is no season.
    explicit Season(std::size_t period) : phases_(period) {}

    std::size_t period() const { return phases_.size(); }
    const std::vector<std::shared_ptr<const ScoreSums>> &phases() const { return phases_; }
    void set(std::size_t phase, std::shared_ptr<const ScoreSums> sums) {
        phases_[phase] = std::move(sums);
    }

    // Another batch at that phase; those of earlier cycles count less.
    void add(std::size_t phase, const ScoreSums &sums);

    // Let all cycles so far count `share` of what they did.
    void fade(double share);

    // Batches at those phases, each with the mass of the batch that it is compared with, add to
    // `usual`; false if a phase has not been seen yet.
    bool add_usual(std::span<const std::size_t> phases, std::span<const double> masses,
                   ScoreSums &usual) const;

private:
    std::vector<std::shared_ptr<const ScoreSums>> phases_;
};

}  // namespace kmeander
