// Cost model: the tuned constants by which the kernel chooses what to share among threads, what to
// measure and what to bound.
//
// Unit, where nothing else is said: multiply-adds of a full pass, that is one value of one point
// against the same column of one centroid. "Measured" means that docs/decisions/kernel.md gives the
// times; "estimated" that only the order of magnitude is known. No value changes a label: they
// decide who computes a result, and how.
#pragma once

#include <cstddef>

namespace kmeander::costs {

// Threads (parallel/team.cpp). Measured: "Threads wait in sets".
constexpr double kToShareLoop = 2.0e6;  // least work of a loop to share it while workers spin
constexpr double kPerThread = 2.5e6;    // least work per thread to wake sleeping workers
constexpr std::size_t kSpinTime = 200;  // microseconds for which a worker spins before it sleeps

// Interruption (parallel/interruption.cpp, team.cpp).
constexpr std::size_t kAskEvery = 50;  // milliseconds between two questions to the caller
constexpr double kPerCheck = 2.0e6;    // work between two looks at the clock; estimated

// Assignment (kmeans/hamerly*.cpp).
constexpr double kPerScannedPoint = 16.0;    // compare one point's bounds with a limit; estimated
constexpr double kPerListedPoint = 400.0;    // write a point to the active set or back; estimated
constexpr double kPerCheckedPoint = 1000.0;  // check one point, its distance aside; estimated
constexpr double kShareChecked = 0.1;  // of active points, checked in the first sweep; estimated

// Sufficient statistics (kmeans/cluster_sums.cpp), per value of a row. Estimated.
constexpr double kPerCompensatedAdd = 12.0;  // add to a sum that keeps what rounding takes away
constexpr double kPerSquaredError = 4.0;     // add a squared gap to a scatter
constexpr double kPerMovedValue = 60.0;      // take from one sum and add to another

// Other loops. Estimated.
constexpr double kPerMomentValue = 16.0;  // add to a sum and a sum of squares (explanation.cpp)
constexpr double kPerCopiedPoint = 80.0;  // copy label and bounds of a point (window_fit.cpp)
constexpr double kPerSeededValue = 4.0;   // against one seed: rows come from memory (seeding.cpp)

// Sizes of the items that one thread takes.
constexpr std::size_t kSweptPoints = 4096;    // active points; 1024 was no faster
constexpr std::size_t kCopiedPoints = 32768;  // estimated
constexpr std::size_t kMeasuredGroups = 8;    // groups of kGroupRows rows; estimated

// Active set (kmeans/hamerly.cpp).
// Factor on the present margin limit up to which points are activated at once; estimated.
constexpr float kActivateAhead = 2.0F;
// The active set is emptied where all four hold. Measured: "A crowded active set is emptied".
constexpr std::size_t kMinActive = 32768;        // active points, at least
constexpr std::size_t kMinSweeps = 8;            // sweeps since it was last emptied, at least
constexpr std::size_t kActivePerUndecided = 16;  // active / undecided in the last sweep, more than
constexpr double kMaxPointsPerActive = 4.0;      // all points / active points, less than

// Leading coordinates (kmeans/axes.cpp, leading_screen.cpp).
constexpr std::size_t kScreenedColumns = 192, kScreenedClusters = 16, kManyClusters = 2048;
// Rows of which most are nearer to their centroid by this factor, squared, need no screen;
// estimated.
constexpr std::size_t kRowsTried = 16;
constexpr double kApart = 2.0;
constexpr std::size_t kAxesSample = 1024;  // rows in which directions are looked for; estimated
constexpr std::size_t kAxesSteps = 2;      // of orthogonal iteration; estimated
constexpr std::size_t kMostAxes = 256;
// Margins by which bounds are wanted to be apart, in displacements of the last pass; estimated.
constexpr float kPassesWanted = 2.0F;
// Epochs that may be kept for each point of a mean cluster; estimated.
constexpr double kEpochsPerPoint = 0.5;
constexpr double kPerCandidateValue = 3.0;  // of a distance that the screen leaves; estimated
// The work, in columns of each pair, that those distances should take: with more axes they would
// take less by as much as the axes cost. Estimated.
constexpr double kLeastLook = 15.0, kMostLook = 40.0;
// A centroid that has moved by this share of the distance to a point is measured again; estimated.
constexpr float kLooseOwn = 0.005F;
// Points are put together by how many centroids are in question, in so many sizes; estimated.
constexpr std::size_t kQuestionSizes = 64;
// A margin is wanted to be no more than this share of the distance; estimated.
constexpr float kMostMargin = 0.01F;

// Full pass instead of bounds (kmeans/hamerly.cpp). Measured: "Where there are few values of
// centroids, active points are measured whole".
// Undecided points are measured against every centroid where these have at most kFewCentroidValues
// values together, or kSomeCentroidValues where the window has more than kManyWindowValues.
constexpr std::size_t kFewCentroidValues = 640, kSomeCentroidValues = 2400;
constexpr double kManyWindowValues = 131072.0;
// A batch of which this share is undecided is measured as a whole.
constexpr double kShareUndecided = 0.25;

}  // namespace kmeander::costs
