// Axes: the directions in which points vary most, and the leading coordinates along them.
//
// In hundreds of columns bounds by the triangle inequality decide next to nothing, but most of a
// distance lies in few directions. With the coordinates of x and c along some orthonormal axes and
// the lengths |x'|, |c'| of what those leave of them,
//     |x - c|^2 >= (sum over the axes) + (|x'| - |c'|)^2,
// which is a squared distance itself, of vectors with one column more than there are axes, and
// whose lengths are those of x and c. Whatever the axes are it holds, so no result depends on them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kmeans/buffer.hpp"
#include "parallel/team.hpp"
#include "simd/instruction_set.hpp"

namespace kmeander {

// Orthonormal axes about a centre. Never changed. There may be none, where points vary in all
// directions alike.
class Axes {
public:
    // `values` (1 + number of axes, d): the centre, then the axes.
    Axes(std::span<const double> values, std::size_t d);

    std::size_t d() const { return d_; }
    std::size_t count() const { return values_.size() / d_ - 1; }
    std::span<const double> values() const { return values_; }
    const float *centre() const { return centre_.data(); }

    // Length of a row of coordinates less the centre, made up with zeros to whole registers.
    std::size_t padded() const { return padded_; }
    // So many axes more may lead, or fewer: their number is a multiple of it.
    static constexpr std::size_t kStep = 16;

    // Of an entry for a point, which `lead` writes: the coordinates along the axes, the length of
    // what each step of them leaves, and the squared length of the point.
    std::size_t stride() const { return count() + count() / kStep + 1; }
    // Of an entry: the length of the rest, of which the first `n_leading` axes take nothing away.
    float rest(const float *entry, std::size_t n_leading) const {
        return n_leading == 0 ? 0.0F : entry[count() + n_leading / kStep - 1];
    }
    float squared(const float *entry) const { return entry[stride() - 1]; }

    // Entries (n_rows, stride) of rows that `centre` of the instruction set has made.
    void lead(const float *rows, std::size_t n_rows, float *entries) const;

private:
    std::size_t d_, padded_;
    std::vector<double> values_, blocks_;
    std::vector<float> centre_;
};

// Whether points of d columns are assigned to k clusters by leading coordinates.
bool is_screened(std::size_t k, std::size_t d);

// Whether many of a few rows are much nearer to one of k centroids than to all others, so that
// bounds decide them.
bool are_apart(const PointsView &rows, const double *centroids, std::size_t k);

// About the directions in which the rows vary most, those of most variation first.
std::shared_ptr<const Axes> find_axes(const PointsView &rows);

// Entries of all points of a batch. Never changed.
struct LeadingPoints {
    LeadingPoints(std::shared_ptr<const Axes> axes, const PointsView &rows, Team &team);

    std::shared_ptr<const Axes> axes;
    Buffer<float> entries;  // (rows, stride)
};

// The entries of a batch along the axes that were asked for last: a window is assigned many times
// by the same. What it returns is a function of the points and the axes.
class LeadingCache {
public:
    std::shared_ptr<const LeadingPoints> of(const std::shared_ptr<const Axes> &axes,
                                            const PointsView &rows, Team &team);

private:
    std::mutex mutex_;
    std::shared_ptr<const LeadingPoints> known_;
};

}  // namespace kmeander
