"""
Choosing rho and K
==================

Two numbers are yours to choose: how fast to forget, and how many clusters. A stream
says itself which fit: predict each batch before it is learned, and see what would have
been best.
"""

# %%
# Rho: three streams
# ------------------
# The same four clusters, 120 points a batch: at rest, on their way slowly, and fast.
# ``PrequentialSplit`` tests each batch after those before it, ``StreamFit`` lets
# ``fit`` learn batch by batch, and scikit-learn's ``cross_val_score`` does the rest.
# ``rho="auto"`` chooses as it goes.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from kmeander import ForgetfulKMeans, PrequentialSplit, StreamFit, suggest_clusters

SIZE, N_BATCHES = 120, 25
RHOS = [0.1, 0.25, 0.4, 0.6, 0.75, 0.85, 0.95]
SPEEDS = {"at rest": 0.0, "slow": 0.1, "fast": 0.6}
CENTRES = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0], [12.0, 12.0]])
WAYS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [-1.0, 0.0]]) @ [
    [0.8, 0.6],
    [-0.6, 0.8],
]


def stream_of(speed, size=SIZE):
    rng = np.random.default_rng(0)
    return [
        np.repeat(CENTRES + speed * t * WAYS, size // 4, axis=0)
        + rng.normal(scale=2.0, size=(size, 2))
        for t in range(N_BATCHES)
    ]


split = PrequentialSplit(SIZE, min_train_batches=5, max_train_batches=12)
errors, chosen = {}, {}
for name, speed in SPEEDS.items():
    stream = stream_of(speed)
    errors[name] = [
        -cross_val_score(
            StreamFit(
                ForgetfulKMeans(4, rho=rho, forgetting="fixed", random_state=0),
                batch_size=SIZE,
            ),
            np.concatenate(stream),
            cv=split,
        ).mean()
        / SIZE
        for rho in RHOS
    ]
    auto = ForgetfulKMeans(4, rho="auto", random_state=0)
    chosen[name] = [auto.partial_fit(batch).step_.rho for batch in stream]

# %%
# What to see
# -----------
# Left: a stream at rest wants a long memory, a fast one a short memory, and in between
# there is a best rho. The scale is not linear: near the best the curves are flat, so
# that a rough choice will do. Right: what ``rho="auto"`` takes from batch to batch,
# among half-lives of half a batch to four.

COLOURS = {"at rest": "#0072B2", "slow": "#009E73", "fast": "#D55E00"}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for name, colour in COLOURS.items():
    ratio = 100 * (np.array(errors[name]) / min(errors[name]) - 1)
    left.plot(RHOS, ratio, "o-", color=colour, ms=5, label=name)
    left.plot(
        RHOS[int(np.argmin(ratio))], 0, "o", color=colour, ms=11, mfc="none", mew=2
    )
    right.step(
        range(N_BATCHES), chosen[name], where="mid", color=colour, lw=2, label=name
    )
left.set(xlabel="rho", ylabel="prequential error above the best, %", yscale="symlog")
left.set(ylim=(-0.3, 100), yticks=[0, 1, 10, 100], yticklabels=["0", "1", "10", "100"])
left.legend(frameon=False, title="the stream")
right.set(xlabel="batch", ylabel='rho chosen by "auto"', ylim=(0, 1))
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

for name in SPEEDS:
    best = RHOS[int(np.argmin(errors[name]))]
    print(f"{name}: best rho of the grid {best}, auto ends with {chosen[name][-1]:.2f}")

# %%
# K: ask the first window
# -----------------------
# ``suggest_clusters`` tries each number on the rows of the first batches and scores
# it.

first = np.concatenate(stream_of(0.0)[:5])
suggestion = suggest_clusters(first, range(1, 9), random_state=0)
print(suggestion)

# %%
# K: is it still right?
# ---------------------
# Later the stream tells when K no longer fits. ``step_.merged`` names clusters without
# a valley between them, ``step_.holds_two`` those with a valley in their midst. Here
# are the same four clusters with K too small, right, and too large.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained")
last = stream_of(0.0, size=400)[-1]
for axis, k in zip(axes, (3, 4, 5), strict=True):
    model = ForgetfulKMeans(k, random_state=0)
    two, one = set(), set()
    for batch in stream_of(0.0, size=400):
        step = model.partial_fit(batch).step_
        two.update(step.holds_two)
        one.update(step.merged)
    axis.scatter(*last.T, s=5, color="0.75", lw=0)
    for row, place in enumerate(model.cluster_centers_):
        colour = "#D55E00" if row in two else "#0072B2"
        axis.scatter(*place, s=90, color=colour, edgecolors="k", zorder=3)
    for pair in one:
        axis.plot(
            *model.cluster_centers_[list(pair)].T, color="#CC79A7", lw=3, zorder=2
        )
    said = "holds two" if two else "merged" if one else "nothing to say"
    axis.set(title=f"K = {k}: {said}", aspect="equal", xticks=[], yticks=[])
    print(f"K = {k}: holds_two {sorted(two)}, merged {sorted(one)}")
plt.show()
