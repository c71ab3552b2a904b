// Nearest centroids by leading coordinates: dense products in single precision leave few centroids
// in question, distances in single precision fewer, and double precision decides.
//
// With x~ and c~ the vectors of axes.hpp, |x~ - c~|^2 = |x~|^2 - 2 (x~ c~ - |c~|^2 / 2): a centroid
// is farther than a reach R if its score, x~ c~ - |c~|^2 / 2, is below (|x~|^2 - R^2) / 2. Scores
// are a matrix product. R is the distance to a centroid that is near, and a margin beyond it: what
// is ruled out is farther than R, a bound that lasts until centroids have moved that far.
//
// What is rounded is made up for on the safe side. A score is off by g (|x|^2 / 2 + |c|^2) at most,
// since its products are at most |x| |c|, and x~ or c~ by e of its length: R grows by e of the
// point, the bias of a centroid by g |c|^2 and its own e; see pack.
//
// How many axes lead changes from pass to pass: more cost more products, and leave fewer distances.
// Where even all of them leave too many, the coordinates as they are take their place.
//
// Centroids stand in the order in which they have moved since the pass before: of a point measured
// then, whose bounds are a gap apart, only those that have moved by the gap can have come nearer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kmeans/axes.hpp"
#include "kmeans/buffer.hpp"
#include "simd/instruction_set.hpp"

namespace kmeander {

// What was computed: whole distances, of these the ones that the screen left, and columns of
// partial ones, of so many pairs.
struct ScreenCount {
    std::int64_t n_distances = 0, n_left = 0, n_columns = 0, n_pairs = 0;

    ScreenCount &operator+=(const ScreenCount &other) {
        n_distances += other.n_distances;
        n_left += other.n_left;
        n_columns += other.n_columns;
        n_pairs += other.n_pairs;
        return *this;
    }
};

class LeadingScreen {
public:
    LeadingScreen(std::shared_ptr<const Axes> axes, std::size_t k);

    const Axes &axes() const { return *axes_; }
    // Axes that lead; 0 where the coordinates do as they are.
    std::size_t n_leading() const { return n_leading_; }

    // Whose nearest are looked for from now on. They must stay where they are. `moved` is how far
    // each is from where it was a pass ago, or null; `counted` is all that was computed so far, by
    // which it chooses how many axes lead.
    void pack(const double *centroids, const float *moved, const ScreenCount &counted);

    // How many of the centroids may be nearer than `upper`, all others having been farther than
    // `lower` a pass ago.
    std::size_t n_in_question(float lower, float upper) const;
    std::size_t n_centroids() const { return k_; }

    // Room for the work of one thread.
    struct Scratch {
        Buffer<float> rows;
        Buffer<std::uint32_t> found;
        std::vector<double> block, wide;
        std::vector<float> squared;
        std::vector<std::uint32_t> order, counts;  // of the points that are screened together
    };

    // At most kGroupRows points, all float32 or all float64.
    struct Group {
        const void *points[kGroupRows];
        const float *entries[kGroupRows];  // in LeadingPoints
        // Bounds: the own centroid is no farther, all others were farther a pass ago. Infinite
        // where they are not known; then, or where `others` is, the own one is measured.
        float own[kGroupRows], others[kGroupRows];
        float margins[kGroupRows];  // by which bounds are wanted to be apart
        bool is_float32;
        std::size_t count;
    };

    // The nearest centroid of each point; a tie goes to the lowest index. In: `labels`, where no
    // others are known -1, or any. Out: labels, bounds of the distances to the nearest, and to all
    // others.
    ScreenCount find_nearest(const Group &group, Scratch &scratch, std::int32_t *labels,
                             float *upper, float *lower) const;

private:
    void choose_leading(const ScreenCount &counted);
    void sort(const float *moved);
    void pack_one(std::size_t c, const float *row, const float *entry);
    float off(float squared, float rest) const;
    float bound_above(float squared, float lengths) const;
    float bound_below(float squared, float length) const;
    float threshold(float squared, float off, float reach) const;
    std::int64_t decide(const void *point, bool is_float32, const std::uint32_t *found,
                        std::size_t n_found, const float *squared, float length, Scratch &scratch,
                        std::int32_t &label, float &upper, float &lower) const;

    const std::shared_ptr<const Axes> axes_;
    const std::size_t k_, d_, stride_, padded_, n_blocks_;
    const InstructionSet &set_;
    const float share_;  // by which a distance in single precision may be off
    const float tiny_;   // what is lost to squares that are too small
    std::size_t n_leading_, columns_, n_passes_ = 0;
    double score_off_;                           // g
    ScreenCount counted_;                        // before the last pass
    const double *centroids_ = nullptr;          // (k, d)
    std::vector<std::uint32_t> order_, places_;  // centroids by place, and places by centroid
    std::vector<float> moved_;                   // (k,) by place, the farthest first
    Buffer<float> rows_;                         // (k, padded) less the centre
    Buffer<float> lengths_;                      // (k,) of these, rounded up
    Buffer<float> values_, bias_;                // see LeadingBlocks
};

}  // namespace kmeander
