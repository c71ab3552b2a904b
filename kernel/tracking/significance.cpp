// Significance of changes: evidence per cluster, and the candidates worth a closer test.
#include "tracking/significance.hpp"

#include <algorithm>

namespace kmeander {

namespace {

// A mean is known to about so much of its length.
constexpr double rounding = 1e-11;

struct DecayedSample {
    double mass = 0.0;     // decayed weight
    double points = 0.0;   // decayed number of points
    double squares = 0.0;  // the same with the decay squared
    double all = 0.0;      // points of all clusters in the same batches
    double all_squares = 0.0;
};

double effective(double sum, double sum_of_squares) {
    return sum_of_squares > 0.0 ? sum * sum / sum_of_squares : 0.0;
}

}  // namespace

CandidateChanges compare(const ClusterSums &sums, const ComparedBatches &compared,
                         const double *moved, double moved_level, double share_level,
                         double *evidence) {
    const double *masses = sums.masses(), *all_sums = sums.sums(), *scatters = sums.scatter();
    const std::size_t k = sums.k(), d = sums.d(), last = sums.n_batches() - 1;
    double *variance = evidence, *freedom = evidence + k, *squared = evidence + 2 * k,
           *noise = evidence + 3 * k, *share = evidence + 4 * k, *share_before = evidence + 5 * k,
           *n_before = evidence + 6 * k;
    const auto per_mass = [&](std::size_t b) {
        return compared.points_per_mass ? compared.points_per_mass[b] : 1.0;
    };
    std::vector<double> sizes(sums.n_batches(), 0.0);
    for (std::size_t b = 0; b <= last; ++b) {
        for (std::size_t c = 0; c < k; ++c) sizes[b] += masses[b * k + c];
        sizes[b] *= per_mass(b);
    }
    std::vector<double> mean(d);
    CandidateChanges found;
    for (std::size_t c = 0; c < k; ++c) {
        DecayedSample older;
        double scatter = 0.0;
        freedom[c] = 0.0;
        std::fill(mean.begin(), mean.end(), 0.0);
        for (std::size_t b = 0; b <= last; ++b) {
            const double points = masses[b * k + c] * per_mass(b);
            if (!compared.is_whole || compared.is_whole[b]) {
                scatter += scatters[b * k + c] * per_mass(b);
                freedom[c] += std::max(points - 1.0, 0.0);
            }
            if (b == last || compared.oldest[b] < compared.since[c]) continue;
            const double decay = compared.decay[b];
            older.all += decay * sizes[b];
            older.all_squares += decay * decay * sizes[b];
            if (points <= 0.0) continue;
            older.mass += decay * masses[b * k + c];
            older.points += decay * points;
            older.squares += decay * decay * points;
            const double *sum = all_sums + (b * k + c) * d;
            for (std::size_t j = 0; j < d; ++j) mean[j] += decay * sum[j];
        }
        variance[c] = freedom[c] > 0.0 ? scatter / freedom[c] : 0.0;
        squared[c] = noise[c] = 0.0;
        const double mass = masses[last * k + c], newest = mass * per_mass(last);
        if (newest > 0.0 && older.points > 0.0) {
            const double *sum = all_sums + (last * k + c) * d;
            double length = 0.0;
            for (std::size_t j = 0; j < d; ++j) {
                const double before = mean[j] / older.mass, gap = sum[j] / mass - before;
                squared[c] += gap * gap;
                length += before * before;
            }
            // Equal points have no variance, but their means have rounding.
            noise[c] = variance[c] * (1.0 / newest + 1.0 / effective(older.points, older.squares)) +
                       rounding * rounding * length;
            if (freedom[c] >= 1.0 && squared[c] > moved_level * moved_level * noise[c])
                found.moved.push_back(static_cast<std::int32_t>(c));
        }
        share[c] = newest / sizes[last];
        share_before[c] = older.all > 0.0 ? std::min(older.points / older.all, 1.0) : 0.0;
        n_before[c] = effective(older.all, older.all_squares);
        if (n_before[c] > 0.0) {
            const double pooled =
                (newest + n_before[c] * share_before[c]) / (sizes[last] + n_before[c]);
            const double spread = pooled * (1.0 - pooled) * (1.0 / sizes[last] + 1.0 / n_before[c]);
            const double gap = share[c] - share_before[c];
            if (gap * gap > share_level * share_level / 2.0 * spread)
                found.share.push_back(static_cast<std::int32_t>(c));
        }
        if (moved[c] * moved[c] > variance[c])
            found.elsewhere.push_back(static_cast<std::int32_t>(c));
    }
    return found;
}

}  // namespace kmeander
