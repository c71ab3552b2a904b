"""
Out of bad local minima
=======================

Lloyd's algorithm ends in the local minimum that it happens to start in, and a stream
never starts anew: a centroid that sits between two clusters, while two others share
one, may stay there for ever. Local search by swaps (``refine="swaps"``, the default)
takes it out.
"""

# %%
# Twenty starts
# -------------
# Fifteen clusters, ten batches, and nothing changes. Only the seed of the first
# k-means++ differs.

import matplotlib.pyplot as plt
import numpy as np

from kmeander import ForgetfulKMeans, kmeans_error

K = 15
rng = np.random.default_rng(4)
centres = np.array([(x, y) for x in range(5) for y in range(3)]) * 4.0
stream = [
    centres[rng.integers(K, size=400)] + rng.normal(scale=0.6, size=(400, 2))
    for _ in range(10)
]
test = centres[rng.integers(K, size=5000)] + rng.normal(scale=0.6, size=(5000, 2))
best = kmeans_error(test, centres)

found = {"refine=None": [], 'refine="swaps"': []}
for seed in range(20):
    for name, refine in zip(found, (None, "swaps"), strict=True):
        model = ForgetfulKMeans(K, refine=refine, random_state=seed)
        for batch in stream:
            model.partial_fit(batch)
        found[name].append(model.cluster_centers_)
errors = {name: [kmeans_error(test, c) for c in all_] for name, all_ in found.items()}

# %%
# What to see
# -----------
# Left, a typical end without swaps: one centroid between two clusters, and two on one.
# In the middle, the same seed with swaps. Right, the error on new points for each of
# the twenty seeds; 1 is that of the true centres.

COLOURS = {"refine=None": "#D55E00", 'refine="swaps"': "#0072B2"}
seed = int(np.argsort(errors["refine=None"])[10])
figure, axes = plt.subplots(
    1, 3, figsize=(11, 2.9), width_ratios=[1.5, 1.5, 1], layout="constrained"
)
for axis, (name, colour) in zip(axes, COLOURS.items(), strict=False):
    axis.scatter(*stream[-1].T, s=5, color="0.75", lw=0)
    axis.scatter(*found[name][seed].T, s=70, marker="X", color=colour, edgecolors="k")
    axis.set(title=f"{name}, seed {seed}", aspect="equal", xticks=[], yticks=[])
for x, (name, colour) in enumerate(COLOURS.items()):
    spread = x + np.linspace(-0.18, 0.18, 20)
    axes[2].plot(
        spread, np.array(errors[name]) / best, "o", color=colour, ms=6, mec="w"
    )
axes[2].axhline(1, color="0.6", lw=0.8, zorder=0)
axes[2].set(
    xticks=[0, 1],
    xticklabels=["no swaps", "swaps"],
    xlim=(-0.6, 1.6),
    ylabel="error / best",
)
axes[2].spines[["top", "right"]].set_visible(False)
plt.show()

# %%
for name, values in errors.items():
    near = sum(value < 1.05 * best for value in values)
    success = f"{near} of 20 seeds end within 5 % of the best"
    print(f"{name}: {success}, the worst at {max(values) / best:.1f} times")
