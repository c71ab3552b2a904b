"""
Life lines of clusters
======================

Clusters come, go, split and merge. kmeander gives each of them an id that lasts as
long as it does and is never used again, and each batch's ``Step`` has the events:
``born``, ``split``, ``died``, ``absorbed``, ``moved``, ``grew``, ``shrank``.
"""

# %%
# A stream with a story
# ---------------------
# Four centroids follow it, always.
#
# - at batch 15 the cluster in the south ends,
# - at batch 30 another one begins in the far east,
# - at batch 45 the two in the north become one, and the one in the west falls apart.

import matplotlib.pyplot as plt
import numpy as np

from kmeander import ForgetfulKMeans

rng = np.random.default_rng(2)


def batch_at(t):
    north = [(-2.5, 9), (2.5, 9)] if t < 45 else [(0, 9), (0, 9)]
    west = [(-10, 0), (-10, 0)] if t < 45 else [(-10, 3.5), (-10, -3.5)]
    south_or_east = [(0, -9)] if t < 15 else [] if t < 30 else [(15, -4)]
    places = np.array(north + west + south_or_east)
    shares = np.array([0.2, 0.2, 0.15, 0.15, 0.3][: len(places)])
    members = rng.choice(len(places), size=400, p=shares / shares.sum())
    return places[members] + rng.normal(scale=0.9, size=(400, 2))


stream = [batch_at(t) for t in range(60)]

# %%
# Follow it
# ---------
# ``model.step_`` says what the newest batch did. ``words()`` says it in words.

model = ForgetfulKMeans(4, random_state=0)
steps = [model.partial_fit(batch).step_ for batch in stream]
for step in steps:
    for event in step.events:
        if event.kind not in ("drift", "moved", "grew", "shrank"):
            print(f"batch {step.index:>2}: {event.words()}")

# %%
# What to see
# -----------
# One line for each id, from its first batch to its last; its width is its share of the
# weight remembered. The south fades after batch 15, and when nothing of it is left its
# centroid is put to use elsewhere; its id sleeps, since it might come back. At batch 30
# a cluster comes from nowhere: it is born, the one in the south has died, and the half
# cluster that is no longer needed is absorbed. At batch 45 one splits and one is
# absorbed, as it was made.
#
# Below, some batches in the same colours: an id keeps its colour, and no other gets
# it.

COLOURS = ["#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#0072B2", "#999999"]
MARKS = {"born": "*", "split": "^", "died": "X", "absorbed": "v"}
figure, axes = plt.subplot_mosaic(
    "AAAA;BCDE", figsize=(10, 6.6), height_ratios=[1.25, 1], layout="constrained"
)
lines = axes["A"]
ids = sorted({number for step in steps for number in step.ids.tolist()})
for number in ids:
    alive = [step for step in steps if number in step.ids]
    x = np.array([step.index for step in alive])
    share = np.array(
        [
            step.masses[step.ids.tolist().index(number)] / step.masses.sum()
            for step in alive
        ]
    )
    lines.fill_between(x, number - share, number + share, color=COLOURS[number], lw=0)
    lines.text(x[0] - 0.7, number, f"id {number}", ha="right", va="center", color="0.2")
for step in steps:
    for event in step.events:
        if event.kind in MARKS:
            if event.other is not None:
                lines.plot(
                    [step.index] * 2,
                    [event.cluster, event.other],
                    ":",
                    color="0.4",
                    lw=1.2,
                )
            lines.plot(
                step.index, event.cluster, MARKS[event.kind], color="k", ms=9, mec="w"
            )
for kind, mark in MARKS.items():
    lines.plot([], [], mark, color="k", ms=9, mec="w", label=kind)
lines.legend(frameon=False, ncols=4, loc="lower left")
lines.set(
    xlabel="batch",
    xlim=(-5, 60),
    ylim=(max(ids) + 0.9, -0.7),
    yticks=[],
    title="Which cluster lives when, and how large it is",
)
lines.spines[["top", "right", "left"]].set_visible(False)
for key, t in zip("BCDE", (10, 26, 40, 55), strict=True):
    centroids, names = steps[t].centroids, steps[t].ids
    nearest = ((stream[t][:, None] - centroids) ** 2).sum(axis=2).argmin(axis=1)
    axes[key].scatter(*stream[t].T, s=5, c=[COLOURS[i] for i in names[nearest]], lw=0)
    for place, number in zip(centroids, names.tolist(), strict=True):
        axes[key].text(
            *place,
            str(number),
            ha="center",
            va="center",
            weight="bold",
            bbox={"boxstyle": "circle,pad=0.15", "fc": "w", "ec": COLOURS[number]},
        )
    axes[key].set(
        title=f"batch {t}", xlim=(-14, 19), ylim=(-13, 13), xticks=[], yticks=[]
    )
plt.show()

# %%
kinds = [event.kind for step in steps for event in step.events]
print("events:", {kind: kinds.count(kind) for kind in MARKS})
print(f"{len(ids)} ids were given to 4 centroids in {len(steps)} batches")
