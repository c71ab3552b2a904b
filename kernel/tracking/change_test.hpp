// Change test: whether a batch, or the last few, differ from those before by more than noise.
//
// Shares, places and spreads of all cells in the last 1, 4 and 12 batches are compared with the
// decayed batches before these in the same chapter, and each difference is judged beside the noise
// between batches that was learned of it. docs/explanation/alarms.md derives the statistics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "tracking/batch_noise.hpp"
#include "tracking/cell_differences.hpp"
#include "tracking/cells.hpp"
#include "tracking/season.hpp"

namespace kmeander {

// What may be found; `ChangeKind` of src/kmeander/tracking/change_test.py is the same.
enum class FoundKind : std::int32_t {
    kShare,    // of a cell: now and before
    kPlace,    // mean of a cell: how far it moved, and along which column most
    kColumn,   // all cells along one column, in standard deviations
    kSpread,   // of a cell, or of all (-1): ratio to the one before
    kShares,   // all shares together
    kPlaces,   // all places together
    kSpreads,  // all spreads together
    kFar,      // rows farther away than any before: how many times as far
    kTrend,    // of a cell: how many standard deviations it has moved since the chapter began
    kAll       // all shares, places and spreads together
};

struct FoundChange {
    FoundKind kind;
    std::int32_t n_batches;  // over the last so many
    std::int32_t cell = -1, column = -1;
    double value = 0.0, was = 0.0;
    double z = 0.0;  // normal deviate that is as rare where nothing changes
};

// Batches whose farthest rows are remembered.
constexpr std::size_t kFarMemory = 100;

// How large z must be, by family of statistics.
struct ChangeLevels {
    double share, place, spread, together;
};

// Design effects of the three families in single batches, and from how many batches.
struct UsualNoise {
    double share, place, spread;
    std::size_t n_batches;
};

// All of a test but its cells, as arrays to save; and the same where they are read.
template <template <class> class Array>
struct ChangeTestState {
    std::size_t n_in_chapter = 0;
    Array<double> latest;         // (batches, sums) the newest first
    Array<double> older;          // (scales, sums)
    Array<double> farthest;       // (batches,)
    Array<double> origin;         // sums near the beginning of the chapter, or nothing
    Array<double> latest_phases;  // (batches,) in the cycle
    Array<double> phases;         // (period, sums) of past cycles
    Array<double> is_known;       // (period,) whether there were any
    std::size_t phase = 0, n_plain = 0, n_tested = 0;
    bool in_season = false;
    // Each first beside the batches before, then beside past cycles.
    Array<double> noise_squares, noise_counts;  // by family, then scale, then statistic
    Array<double> noise_families;               // (families, numbers of a family, scales)
    Array<double> together;                     // (2, families and all of them, scales)
    Array<double> totals;                       // rows and batches
};
template <class T>
using OwnedArray = std::vector<T>;
template <class T>
using ReadArray = std::span<const T>;
using ChangeTestArrays = ChangeTestState<OwnedArray>;
using SavedChangeTest = ChangeTestState<ReadArray>;

// Never changed: `after` and `in_chapter` make new ones, which share what stays.
class ChangeTest {
public:
    // The first chapter of a stream, whose cycle is `period` batches long; 0 is no cycle.
    ChangeTest(std::shared_ptr<const Cells> cells, std::size_t period);
    ChangeTest(std::shared_ptr<const Cells> cells, std::size_t period,
               const SavedChangeTest &saved);

    ChangeTestArrays arrays() const;

    struct Outcome {
        std::shared_ptr<const ChangeTest> next;
        std::vector<FoundChange> changes;
        std::size_t n_far;  // rows that lie farther away than is usual
    };

    // Test and learn a batch, measured against the model's centroids in `arrived`; it comes
    // `n_phases` later in the cycle than the one before.
    Outcome after(const BatchView &batch, const Partition &arrived, const ChangeLevels &levels,
                  std::size_t n_phases) const;

    // Begin a new chapter in these cells; what is known of the noise stays, but for the cells
    // `renewed`. Past cycles stay, too, and so do the old cells then, if the clusters are still in
    // them.
    std::shared_ptr<const ChangeTest> in_chapter(std::shared_ptr<const Cells> cells,
                                                 std::span<const std::int32_t> renewed,
                                                 std::size_t period) const;

    const Cells &cells() const { return *cells_; }
    UsualNoise usual_noise() const;
    std::size_t n_in_chapter() const { return n_in_chapter_; }
    std::size_t period() const { return season_.period(); }

private:
    enum Family : std::size_t { kOfShares, kOfPlaces, kOfSpreads, kFamilies };
    static constexpr std::size_t kTogether = kFamilies + 1;  // sums of squares: of all, too

    // What is known of the noise beside one kind of baseline.
    struct Known {
        Known(std::size_t k, std::size_t d);
        std::vector<BatchNoise> noise;  // per family
        // Per family and of all, by scale: squared departure of the mean square from 1, and count.
        std::array<double, kTogether * kScales> together{}, n_together{};
    };

    struct Latest {
        std::shared_ptr<const ScoreSums> sums;
        std::size_t phase;
    };

    struct Comparison {  // what is compared
        std::size_t number;
        const ScoreSums *newest, *older;
        double rows;  // of the newest, over those of a usual batch
        Known *known;
    };

    struct SquareSum {  // of the deviates of one family, or of all
        double sum = 0.0, count = 0.0;
        double variance = 0.0;  // if rows were independent
        double doubt = 0.0;     // summed over the deviates, see BatchNoise
    };

    static std::int32_t batches_of(const Comparison &scale) {
        return static_cast<std::int32_t>(kScaleBatches[scale.number]);
    }
    void test_scale(const Comparison &scale, const ChangeLevels &levels,
                    std::vector<FoundChange> &found);
    SquareSum test_family(Family family, const Comparison &scale,
                          const CellDifferences &differences, double level,
                          std::vector<FoundChange> &found);
    FoundChange change_of_cell(Family family, const Comparison &scale,
                               const CellDifferences &differences, std::size_t cell,
                               std::size_t column, double z) const;
    void test_together(std::size_t which, const Comparison &scale, const SquareSum &squares,
                       double level, std::vector<FoundChange> &found);
    std::size_t test_far(Buffer<double> far, std::vector<FoundChange> &found);
    void test_trend(std::vector<FoundChange> &found) const;
    void learn(std::shared_ptr<const ScoreSums> newest);
    bool holds_still(const Cells &cells) const;

    std::shared_ptr<const Cells> cells_;
    std::size_t n_in_chapter_ = 0;
    std::deque<Latest> latest_;                // the newest first
    std::vector<ScoreSums> older_;             // per scale, decayed
    std::shared_ptr<const ScoreSums> origin_;  // the older ones when the chapter was young
    std::vector<double> farthest_;             // per batch of the chapter
    Season season_;
    std::size_t phase_ = 0;     // of the newest batch
    std::size_t n_plain_ = 0;   // batches to come that are not compared with past cycles
    bool in_season_ = false;    // whether the newest batch was
    std::vector<Known> known_;  // beside the batches before; in a season beside past cycles, too
    double rows_ = 0.0, n_batches_ = 0.0;  // of all batches so far, forgetting
    std::size_t n_tested_ = 0;             // the same, without forgetting
};

}  // namespace kmeander
