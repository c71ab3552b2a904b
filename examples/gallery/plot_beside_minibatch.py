"""
Beside MiniBatchKMeans
======================

Five clusters go round in a circle, and at batch 40 two of them jump. kmeander and
scikit-learn's ``MiniBatchKMeans`` learn the same batches with ``partial_fit``. One
forgets, the other does not.
"""

# %%
# The stream
# ----------
# Every batch has 300 points of five clusters. Batch after batch the circle turns by
# three degrees; at batch 40 clusters 0 and 1 go to places of their own.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import MiniBatchKMeans

from kmeander import ForgetfulKMeans, kmeans_error

COLOURS = ["#E69F00", "#56B4E9", "#009E73", "#D55E00", "#CC79A7"]  # Okabe and Ito
N_BATCHES, JUMP = 80, 40
rng = np.random.default_rng(0)
stream = []
for t in range(N_BATCHES):
    angles = np.deg2rad(3 * t + 72 * np.arange(5))
    centres = 8 * np.column_stack([np.cos(angles), np.sin(angles)])
    if t >= JUMP:
        centres[:2] = [[0, 0], [0, 13]]
    members = rng.integers(5, size=300)
    stream.append(centres[members] + rng.normal(scale=0.8, size=(300, 2)))

# %%
# Learn it twice
# --------------
# The error of a batch is taken *before* the batch is learned: how well is it described
# by what was known? That is the error which somebody who uses the clusters meets.

models = {
    "kmeander": ForgetfulKMeans(5, random_state=0),
    "MiniBatchKMeans": MiniBatchKMeans(5, random_state=0, n_init=3),
}
errors = {name: [] for name in models}
trails = {name: [] for name in models}
for name, model in models.items():
    for t, batch in enumerate(stream):
        if t > 0:
            errors[name].append(kmeans_error(batch, model.cluster_centers_))
        model.partial_fit(batch)
        trails[name].append(model.cluster_centers_.copy())

# %%
# What to see
# -----------
# Above: the ways of the centroids until the jump, and the batch just before it.
# kmeander's go along with their clusters. The others lag behind more and more: a
# centroid moves less and less, as all the points that it ever had weigh the same.
# Below: the jump at batch 40 surprises both, kmeander for one batch.
#
# Around batch 32 the dashed line is low, and that is the worst of it: by then each
# centroid of ``MiniBatchKMeans`` was caught up by the next cluster, so that every
# label means another cluster than it did at first.

figure, axes = plt.subplot_mosaic(
    "AB;CC", figsize=(9, 7.4), height_ratios=[1.5, 1], layout="tight"
)
for key, name in zip("AB", models, strict=True):
    ways = np.array(trails[name][1:JUMP])
    axes[key].scatter(*stream[JUMP - 1].T, s=6, color="0.75", linewidths=0)
    for k, colour in enumerate(COLOURS):
        axes[key].plot(*ways[:, k].T, color=colour, lw=2)
        axes[key].scatter(*ways[-1, k], s=80, color=colour, edgecolors="k", zorder=3)
    axes[key].set(
        title=name, aspect="equal", xlim=(-11, 11), ylim=(-11, 11), xticks=[], yticks=[]
    )
axes["C"].plot(
    range(1, N_BATCHES), errors["MiniBatchKMeans"], "--", color="0.4", lw=1.6
)
axes["C"].plot(range(1, N_BATCHES), errors["kmeander"], color="#0072B2", lw=2)
axes["C"].axvline(JUMP, color="0.8", zorder=0)
axes["C"].text(JUMP + 0.7, 36, "two clusters jump", va="center", color="0.35")
axes["C"].text(21, 22, "MiniBatchKMeans", color="0.3", ha="center")
axes["C"].text(21, 1.7, "kmeander", color="#0072B2", ha="center")
axes["C"].set(yscale="log", xlabel="batch", ylabel="error before learning")
axes["C"].set(xlim=(0, N_BATCHES - 1), ylim=(1, 50), yticks=[1, 2, 5, 10, 20, 50])
axes["C"].set_yticks([], minor=True)
axes["C"].yaxis.set_major_formatter("{x:g}")
axes["C"].spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The points scatter by 0.8 in two columns, so that nothing can be below 1.28 on
# average.

for name, values in errors.items():
    mean, last = np.mean(values), np.mean(values[-10:])
    print(f"{name:>16}: mean error {mean:.2f}, the last ten {last:.2f}")
