// Significance of changes: evidence per cluster, and the candidates worth a closer test.
#include "tracking/significance.hpp"

#include <algorithm>

namespace kmeander {

namespace {

// Relative rounding error of a mean.
constexpr double kRelativeRounding = 1e-11;

double squared(double value) { return value * value; }

// Kish's effective sample size.
double effective(double sum, double sum_of_squares) {
    return sum_of_squares > 0.0 ? sum * sum / sum_of_squares : 0.0;
}

// Variance of the points of a cluster about the means of their batches, with degrees of freedom.
struct PooledVariance {
    double variance = 0.0, freedom = 0.0;
};

// Points of a cluster in the batches that the newest is compared with.
struct DecayedSample {
    double mass = 0.0;     // decayed weight
    double points = 0.0;   // decayed number of points
    double squares = 0.0;  // the same with the decay squared
    double all = 0.0;      // points of all clusters in the same batches
    double all_squares = 0.0;
};

// Squared distance of the newest mean from the older one, and its expectation under noise.
struct MeanShift {
    double squared = 0.0, noise = 0.0;
};

// The newest share of a cluster, the older one, and how many points the older one is worth.
struct ShareShift {
    double now = 0.0, before = 0.0, n_before = 0.0;
};

class NewestAgainstOlder {
public:
    NewestAgainstOlder(const ClusterSums &sums, const ComparedBatches &compared)
        : sums_(sums), compared_(compared), last_(sums.n_batches() - 1), sizes_(sums.n_batches()) {
        for (std::size_t b = 0; b <= last_; ++b) {
            for (std::size_t c = 0; c < sums.k(); ++c) sizes_[b] += mass(b, c);
            sizes_[b] *= points_per_mass(b);
        }
    }

    PooledVariance pooled_variance(std::size_t c) const {
        PooledVariance pooled;
        double scatter = 0.0;
        for (std::size_t b = 0; b <= last_; ++b) {
            if (compared_.is_whole && !compared_.is_whole[b]) continue;
            scatter += sums_.scatter()[b * sums_.k() + c] * points_per_mass(b);
            pooled.freedom += std::max(points(b, c) - 1.0, 0.0);
        }
        if (pooled.freedom > 0.0) pooled.variance = scatter / pooled.freedom;
        return pooled;
    }

    // Of the older batches; their decayed sum of points goes to `total` (d,).
    DecayedSample older_sample(std::size_t c, std::vector<double> &total) const {
        DecayedSample older;
        std::fill(total.begin(), total.end(), 0.0);
        for (std::size_t b = 0; b < last_; ++b) {
            if (compared_.oldest[b] < compared_.since[c]) continue;
            const double decay = compared_.decay[b], n_points = points(b, c);
            older.all += decay * sizes_[b];
            older.all_squares += decay * decay * sizes_[b];
            if (n_points <= 0.0) continue;
            older.mass += decay * mass(b, c);
            older.points += decay * n_points;
            older.squares += decay * decay * n_points;
            const double *sum = sum_of(b, c);
            for (std::size_t j = 0; j < sums_.d(); ++j) total[j] += decay * sum[j];
        }
        return older;
    }

    MeanShift mean_shift(std::size_t c, const DecayedSample &older,
                         const std::vector<double> &total, double variance) const {
        const double newest = points(last_, c);
        if (!(newest > 0.0 && older.points > 0.0)) return {};
        MeanShift shift;
        const double *sum = sum_of(last_, c);
        double length = 0.0;
        for (std::size_t j = 0; j < sums_.d(); ++j) {
            const double before = total[j] / older.mass, gap = sum[j] / mass(last_, c) - before;
            shift.squared += gap * gap;
            length += before * before;
        }
        // Equal points have no variance, but their means have rounding.
        shift.noise = variance * (1.0 / newest + 1.0 / effective(older.points, older.squares)) +
                      squared(kRelativeRounding) * length;
        return shift;
    }

    ShareShift share_shift(std::size_t c, const DecayedSample &older) const {
        return {.now = points(last_, c) / sizes_[last_],
                .before = older.all > 0.0 ? std::min(older.points / older.all, 1.0) : 0.0,
                .n_before = effective(older.all, older.all_squares)};
    }

    // Whether the shares differ by `level` deviations, by a form at least half the deviance.
    bool may_have_changed(std::size_t c, const ShareShift &shift, double level) const {
        if (!(shift.n_before > 0.0)) return false;
        const double size = sizes_[last_];
        const double pooled =
            (points(last_, c) + shift.n_before * shift.before) / (size + shift.n_before);
        const double spread = pooled * (1.0 - pooled) * (1.0 / size + 1.0 / shift.n_before);
        return squared(shift.now - shift.before) > squared(level) / 2.0 * spread;
    }

private:
    double points_per_mass(std::size_t b) const {
        return compared_.points_per_mass ? compared_.points_per_mass[b] : 1.0;
    }
    double mass(std::size_t b, std::size_t c) const { return sums_.masses()[b * sums_.k() + c]; }
    double points(std::size_t b, std::size_t c) const { return mass(b, c) * points_per_mass(b); }
    const double *sum_of(std::size_t b, std::size_t c) const {
        return sums_.sums() + (b * sums_.k() + c) * sums_.d();
    }

    const ClusterSums &sums_;
    const ComparedBatches &compared_;
    const std::size_t last_;
    std::vector<double> sizes_;  // points of each batch
};

}  // namespace

CandidateChanges find_candidate_changes(const ClusterSums &sums, const ComparedBatches &compared,
                                        const double *moved, double moved_level, double share_level,
                                        double *evidence) {
    const std::size_t k = sums.k();
    const NewestAgainstOlder batches(sums, compared);
    std::vector<double> total(sums.d());
    CandidateChanges found;
    for (std::size_t c = 0; c < k; ++c) {
        const PooledVariance pooled = batches.pooled_variance(c);
        const DecayedSample older = batches.older_sample(c, total);
        const MeanShift mean = batches.mean_shift(c, older, total, pooled.variance);
        const ShareShift share = batches.share_shift(c, older);
        evidence[kVariance * k + c] = pooled.variance;
        evidence[kFreedom * k + c] = pooled.freedom;
        evidence[kSquaredShift * k + c] = mean.squared;
        evidence[kNoise * k + c] = mean.noise;
        evidence[kShare * k + c] = share.now;
        evidence[kShareBefore * k + c] = share.before;
        evidence[kPointsBefore * k + c] = share.n_before;
        const std::int32_t row = static_cast<std::int32_t>(c);
        if (pooled.freedom >= 1.0 && mean.squared > squared(moved_level) * mean.noise)
            found.moved.push_back(row);
        if (batches.may_have_changed(c, share, share_level)) found.share.push_back(row);
        if (squared(moved[c]) > pooled.variance) found.elsewhere.push_back(row);
    }
    return found;
}

}  // namespace kmeander
