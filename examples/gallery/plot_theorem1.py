"""
Surrogate error and Theorem 1
=============================

The streaming K-means error (SKM) is the mean over the batches since the last drift:
somebody must know where the drift was. The surrogate error needs no such knowledge, as
old batches fade by themselves. How far apart are the two? Theorem 1 of the paper says
it, and this is its Figure 1 with smaller batches.
"""

# %%
# One centroid, one drift
# -----------------------
# 40 batches of one concept, then 20 of another whose error under the same centroid is
# larger by the factor 1 + epsilon. Everything is drawn anew 40 times, for two sizes of
# batches.

import matplotlib.pyplot as plt
import numpy as np

from kmeander import (
    kmeans_error,
    rho_for_drift,
    simulate_drifts,
    skm_error,
    surrogate_error,
    theorem1_bound,
    theorem1_gap,
)

EPSILON, BEFORE, AFTER, REPETITIONS = 0.5, 40, 20, 40
rho = rho_for_drift(EPSILON, stable_for=AFTER)
rng = np.random.default_rng(0)
old, new = simulate_drifts(rng.uniform(-1, 1, (5000, 2)), 1, EPSILON, 2, random_state=1)
centroid = old.mean(axis=0, keepdims=True)
E = kmeans_error(old, centroid)  # of the concept before the drift
u = max(float(((concept - centroid) ** 2).sum(axis=1).max()) for concept in (old, new))


def differences(size):
    """SKM minus surrogate error: a row per repetition, T = 1, 2, ... batches after."""
    found = np.empty((REPETITIONS, AFTER))
    for row in found:
        batches = [old[rng.integers(len(old), size=size)] for _ in range(BEFORE)]
        for T in range(1, AFTER + 1):
            batches.append(new[rng.integers(len(new), size=size)])
            exact = skm_error(batches[BEFORE:], centroid)  # told of the drift
            row[T - 1] = exact - surrogate_error(batches, centroid, rho)
    return found


found = {size: differences(size) for size in (250, 1000)}

# %%
# What to see
# -----------
# The line is the gap that Theorem 1 expects, ``rho**T * epsilon * E``: it falls by rho
# with every batch, and soon the surrogate error is as good as one that was told of the
# drift. The bands hold 95 % and 68 % of the differences, or more; the theorem promises
# no less, and is cautious. With batches of four times the size they are half as wide.

T = np.arange(1, AFTER + 1)
gap = np.array([theorem1_gap(rho, t, EPSILON, E) for t in T.tolist()])
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True, layout="constrained")
for axis, (size, difference) in zip(axes, found.items(), strict=True):
    for delta, colour in [(0.05, "#D6ECF8"), (0.32, "#A9D5EE")]:
        gamma = np.array([theorem1_bound(rho, t, size, u, delta) for t in T.tolist()])
        axis.fill_between(
            T,
            gap - gamma,
            gap + gamma,
            color=colour,
            lw=0,
            label=f"Theorem 1, {1 - delta:.0%}",
        )
    axis.plot(T, gap, color="#0072B2", lw=2, label="expected gap")
    axis.boxplot(
        difference,
        positions=T,
        widths=0.5,
        manage_ticks=False,
        sym=".",
        zorder=3,
        medianprops={"color": "#D55E00"},
        flierprops={"ms": 3, "mec": "none", "mfc": "0.3"},
    )
    axis.axhline(0, color="0.6", lw=0.8, zorder=1)
    axis.set(
        title=f"batches of {size}",
        xlabel="batches since the drift, T",
        xticks=[1, 5, 10, 15, 20],
        xlim=(0.4, 20.6),
    )
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("SKM error - surrogate error")
axes[1].legend(frameon=False)
plt.show()

# %%
for size, difference in found.items():
    gamma = np.array([theorem1_bound(rho, t, size, u, 0.05) for t in T.tolist()])
    inside = (np.abs(difference - gap) <= gamma).mean()
    print(f"batches of {size}: {inside:.1%} of the differences lie in the band of 95 %")
    print(
        f"  gap expected after 1 batch {gap[0]:.4f}, after 10 {gap[9]:.4f}; "
        f"measured {difference[:, 0].mean():.4f} and {difference[:, 9].mean():.4f}"
    )
