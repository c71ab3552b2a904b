#include "partition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kmeander {
namespace {

// Distances are right to about d * 1e-16, the cast to float to 6e-8: both far below this.
constexpr double kOutward = 1e-6;
constexpr double kTiny = std::numeric_limits<float>::min();
constexpr double kHuge = std::numeric_limits<float>::max();

// An infinite upper bound is true, and makes the point a suspect.
inline float rounded_up(double value) { return static_cast<float>(value * (1.0 + kOutward) + kTiny); }

inline float rounded_down(double value) {
    return static_cast<float>(std::min(value, kHuge) * (1.0 - kOutward) - kTiny);
}

double distance_between(const double *one, const double *other, std::size_t d) {
    double squared = 0.0;
    for (std::size_t j = 0; j < d; ++j) squared += (one[j] - other[j]) * (one[j] - other[j]);
    return std::sqrt(squared);
}

// Rows are looked at here and there: ask for them some steps before they are needed.
constexpr std::size_t kAhead = 6;

inline void prefetch(const Rows &rows, std::size_t i) {
    const std::size_t size = rows.columns * (rows.is_float32 ? sizeof(float) : sizeof(double));
    const char *row = static_cast<const char *>(rows.data) + i * size;
    for (std::size_t at = 0; at < std::min<std::size_t>(size, 512); at += 64)
        __builtin_prefetch(row + at);
}

// Epochs kept apart; each costs k * d operations a pass.
constexpr std::size_t kMaxEpochs = 32;

}  // namespace

Partition::Partition(std::vector<Batch> &batches, std::size_t k, Team &team)
    : batches_(batches),
      k_(k),
      d_(batches.front().rows.columns),
      set_(instruction_set()),
      team_(team),
      packed_(k, d_),
      n_blocks_(packed_.n_blocks()),
      scratch_(team.size(), d_) {
    std::vector<const double *> seen;
    for (std::size_t b = 0; b < batches.size(); ++b) {
        const Batch &batch = batches[b];
        fresh_.push_back(batch.snapshot == nullptr);
        std::size_t epoch = 0;
        if (batch.snapshot != nullptr) {
            epoch = std::find(seen.begin(), seen.end(), batch.snapshot) - seen.begin();
            if (epoch == seen.size()) {
                seen.push_back(batch.snapshot);
                snapshots_.emplace_back(batch.snapshot, batch.snapshot + k * d_);
            }
        }
        epochs_.emplace_back(batch.rows.count, static_cast<std::uint8_t>(epoch));
        for (std::size_t i = 0; i < batch.rows.count; i += kChunkRows) {
            const std::size_t end = std::min(i + kChunkRows, batch.rows.count);
            chunks_.push_back({static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(i),
                               static_cast<std::uint32_t>(end), {}, 0});
        }
    }
}

bool Partition::assign(const double *centroids) {
    packed_.pack(centroids);
    open_epoch(centroids);
    measure_apart(centroids);
    team_.run(chunks_.size(), [&](std::size_t item, std::size_t worker) {
        Chunk &chunk = chunks_[item];
        chunk.suspects.clear();
        chunk.n_distances = 0;
        if (fresh_[chunk.batch]) {
            measure_all(chunk, worker);
        } else {
            find_suspects(chunk, centroids);
        }
    });
    group_suspects();
    team_.run(groups_.size(), [&](std::size_t item, std::size_t worker) {
        measure_group(groups_[item], worker);
    });

    bool changed = std::find(fresh_.begin(), fresh_.end(), true) != fresh_.end();
    std::fill(fresh_.begin(), fresh_.end(), false);
    for (const Chunk &chunk : chunks_) n_distances_ += chunk.n_distances;
    for (const Group &group : groups_) n_distances_ += group.n_distances;
    for (const Suspect &suspect : suspects_) changed = changed || suspect.label != suspect.before;
    return changed;
}

void Partition::put(std::size_t batch, std::size_t row, std::int32_t label) {
    batches_[batch].labels[row] = label;
    batches_[batch].upper[row] = std::numeric_limits<float>::infinity();
    batches_[batch].lower[row] = 0.0F;
}

void Partition::settle() {
    team_.run(chunks_.size(), [&](std::size_t item, std::size_t) {
        const Chunk &chunk = chunks_[item];
        Batch &batch = batches_[chunk.batch];
        std::vector<std::uint8_t> &epochs = epochs_[chunk.batch];
        for (std::size_t i = chunk.begin; i < chunk.end; ++i) {
            if (epochs[i] == now_) continue;
            const std::size_t at = epochs[i] * k_ + static_cast<std::size_t>(batch.labels[i]);
            const float most = thresholds_[at] - own_moved_[at];
            batch.upper[i] = rounded_up(batch.upper[i] + own_moved_[at]);
            batch.lower[i] = rounded_down(batch.lower[i] - most);
            epochs[i] = static_cast<std::uint8_t>(now_);
        }
    });
}

// Begin the epoch of `centroids` and find how far they have moved since every other one.
void Partition::open_epoch(const double *centroids) {
    if (snapshots_.size() == kMaxEpochs) {
        settle();
        snapshots_ = {std::move(snapshots_[now_])};
        for (std::vector<std::uint8_t> &epochs : epochs_)
            std::fill(epochs.begin(), epochs.end(), std::uint8_t{0});
    }
    now_ = snapshots_.size();
    snapshots_.emplace_back(centroids, centroids + k_ * d_);
    own_moved_.resize(snapshots_.size() * k_);
    thresholds_.resize(snapshots_.size() * k_);
    moved_.resize(snapshots_.size() * k_ * n_blocks_);
    for (std::size_t epoch = 0; epoch < snapshots_.size(); ++epoch) {
        float *own = own_moved_.data() + epoch * k_;
        for (std::size_t c = 0; c < k_; ++c) {
            const double *then = snapshots_[epoch].data() + c * d_;
            own[c] = rounded_up(distance_between(centroids + c * d_, then, d_));
        }
        std::vector<float> block_most(n_blocks_, 0.0F);
        for (std::size_t c = 0; c < k_; ++c) {
            float &most = block_most[packed_.block_of(c)];
            most = std::max(most, own[c]);
        }
        for (std::size_t c = 0; c < k_; ++c) {
            float *moved = moved_.data() + (epoch * k_ + c) * n_blocks_;
            std::copy(block_most.begin(), block_most.end(), moved);
            const std::size_t home = packed_.block_of(c), first = home * packed_.lanes();
            moved[home] = 0.0F;
            for (std::size_t other = first; other < first + packed_.size_of(home); ++other)
                if (other != c) moved[home] = std::max(moved[home], own[other]);
            const float most = *std::max_element(moved, moved + n_blocks_);
            thresholds_[epoch * k_ + c] = rounded_up(own[c] + most);
        }
    }
}

void Partition::measure_apart(const double *centroids) {
    apart_.assign(k_ * n_blocks_, std::numeric_limits<float>::infinity());
    const Rows rows = {centroids, false, k_, d_};
    std::vector<double> squared(k_);
    for (std::size_t a = 1; a < k_; ++a) {
        set_.squared_to(rows, 0, a, centroids + a * d_, squared.data());
        for (std::size_t c = 0; c < a; ++c) {
            const float distance = rounded_down(std::sqrt(squared[c]));
            float &from_a = apart_[a * n_blocks_ + packed_.block_of(c)];
            float &from_c = apart_[c * n_blocks_ + packed_.block_of(a)];
            from_a = std::min(from_a, distance);
            from_c = std::min(from_c, distance);
        }
    }
    n_distances_ += static_cast<std::int64_t>(k_ * (k_ - 1) / 2);
}

void Partition::measure_all(Chunk &chunk, std::size_t worker) {
    Batch &batch = batches_[chunk.batch];
    for (std::size_t begin = chunk.begin; begin < chunk.end; begin += kGroupRows) {
        const std::size_t end = std::min<std::size_t>(begin + kGroupRows, chunk.end);
        double squared[kGroupRows], second[kGroupRows];
        set_.nearest(group_of(batch.rows, begin, end, scratch_.of(worker)), end - begin, d_,
                     packed_.blocks(), packed_.all(), packed_.n_blocks(), batch.labels + begin,
                     squared, second);
        for (std::size_t i = begin; i < end; ++i) {
            batch.upper[i] = rounded_up(std::sqrt(squared[i - begin]));
            batch.lower[i] = rounded_down(std::sqrt(second[i - begin]));
            epochs_[chunk.batch][i] = static_cast<std::uint8_t>(now_);
        }
    }
    chunk.n_distances = static_cast<std::int64_t>((chunk.end - chunk.begin) * k_);
}

void Partition::find_suspects(Chunk &chunk, const double *centroids) {
    Batch &batch = batches_[chunk.batch];
    std::uint8_t *epochs = epochs_[chunk.batch].data();
    std::uint32_t found[kChunkRows];
    const std::size_t n_found = set_.within(batch.upper, batch.lower, epochs, batch.labels,
                                            thresholds_.data(), k_, chunk.begin, chunk.end, found);
    for (std::size_t f = 0; f < n_found; ++f) {
        const std::uint32_t i = found[f];
        if (f + kAhead < n_found) prefetch(batch.rows, found[f + kAhead]);
        const std::int32_t label = batch.labels[i];
        const std::size_t epoch = epochs[i];
        const float *apart = apart_of(label), *moved = moved_of(epoch, label);
        const float lower = batch.lower[i];
        const float reached =
            rounded_up(batch.upper[i] + own_moved_[epoch * k_ + static_cast<std::size_t>(label)]);
        if (!set_.may_be_nearer(apart, moved, n_blocks_, rounded_up(2.0 * reached),
                                rounded_down(lower - reached)))
            continue;
        double squared;
        set_.squared_to(batch.rows, i, i + 1, centroids + label * d_, &squared);
        ++chunk.n_distances;
        const float upper = rounded_up(std::sqrt(squared));
        batch.upper[i] = upper;
        epochs[i] = static_cast<std::uint8_t>(now_);
        if (set_.may_be_nearer(apart, moved, n_blocks_, rounded_up(2.0 * upper),
                               rounded_down(lower - upper))) {
            chunk.suspects.push_back({chunk.batch, i, label, label,
                                      static_cast<std::uint32_t>(epoch), upper, lower});
        } else {
            batch.lower[i] =
                rounded_down(set_.bound_others(apart, moved, n_blocks_, lower, upper));
        }
    }
}

// Put the suspects of all chunks together, those of one cluster beside each other where that
// lets centroids be left out, and cut them into groups.
void Partition::group_suspects() {
    suspects_.clear();
    groups_.clear();
    for (const Chunk &chunk : chunks_)
        suspects_.insert(suspects_.end(), chunk.suspects.begin(), chunk.suspects.end());
    const bool by_cluster = leaves_blocks_out();
    if (by_cluster) {
        std::stable_sort(suspects_.begin(), suspects_.end(), [](const Suspect &a, const Suspect &b) {
            return a.before < b.before;
        });
    }
    for (std::size_t begin = 0; begin < suspects_.size();) {
        std::size_t end = std::min(begin + kGroupRows, suspects_.size());
        if (by_cluster)
            while (suspects_[end - 1].before != suspects_[begin].before) --end;
        groups_.push_back({begin, end, 0});
        begin = end;
    }
}

void Partition::measure_group(Group &group, std::size_t worker) {
    const std::size_t count = group.end - group.begin;
    Suspect *suspects = suspects_.data() + group.begin;
    double *points = scratch_.of(worker);
    for (std::size_t s = 0; s < count; ++s) {
        if (s + kAhead < count) {
            const Suspect &later = suspects[s + kAhead];
            prefetch(batches_[later.batch].rows, later.row);
        }
        set_.widen(batches_[suspects[s].batch].rows, suspects[s].row, points + s * d_);
    }

    // The blocks that one of these points needs; the others need none of the rest.
    std::vector<std::uint32_t> chosen;
    std::size_t n_chosen = 0;
    float beyond[kGroupRows];
    std::fill(beyond, beyond + count, std::numeric_limits<float>::infinity());
    for (std::uint32_t b = 0; b < n_blocks_; ++b) {
        bool needed = !leaves_blocks_out() || b == packed_.block_of(suspects[0].before);
        for (std::size_t s = 0; s < count && !needed; ++s) {
            const Suspect &one = suspects[s];
            needed = set_.may_be_nearer(apart_of(one.before) + b, moved_of(one.epoch, one.before) + b,
                                        1, rounded_up(2.0 * one.upper),
                                        rounded_down(one.lower - one.upper));
        }
        if (needed) {
            chosen.push_back(b);
            n_chosen += packed_.size_of(b);
            continue;
        }
        for (std::size_t s = 0; s < count; ++s) {
            const Suspect &one = suspects[s];
            beyond[s] = std::min(
                beyond[s], set_.bound_others(apart_of(one.before) + b,
                                             moved_of(one.epoch, one.before) + b, 1, one.lower,
                                             one.upper));
        }
    }

    std::int32_t labels[kGroupRows];
    double squared[kGroupRows], second[kGroupRows];
    set_.nearest(points, count, d_, packed_.blocks(), chosen.data(), chosen.size(), labels, squared,
                 second);
    for (std::size_t s = 0; s < count; ++s) {
        Batch &batch = batches_[suspects[s].batch];
        const std::size_t i = suspects[s].row;
        suspects[s].label = labels[s];
        batch.labels[i] = labels[s];
        batch.upper[i] = rounded_up(std::sqrt(squared[s]));
        batch.lower[i] = rounded_down(std::min<double>(std::sqrt(second[s]), beyond[s]));
    }
    group.n_distances = static_cast<std::int64_t>(count * n_chosen);
}

}  // namespace kmeander
