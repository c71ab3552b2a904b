"""
PC, CC, WI and HI at a drift
============================

Where should Lloyd's algorithm start when a new batch comes? The paper compares four
answers: the previous centroids (PC), those of the new batch alone (CC), a weighted
K-means on both (WI), and both matched by the Hungarian method and averaged (HI).
"""

# %%
# Streams that drift by a known amount
# ------------------------------------
# ``simulate_drifts`` moves the clusters of a dataset so that its error grows by the
# factor 1 + epsilon. ``DriftStream`` draws ten batches from each concept.
#
# As in the paper all four get the same: at each batch the same previous centroids
# (those to which PC had converged), and the same K-means on the new batch.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kmeander import FSKM, DriftStream, rho_for_drift, simulate_drifts

K, PER_CONCEPT = 10, 10
METHODS = {"PC": "previous", "CC": "current", "WI": "weighted", "HI": "hungarian"}
rho = rho_for_drift(epsilon=1.0, stable_for=PER_CONCEPT)
pixels = load_digits().data

initial, converged = [], []  # one row per batch, one column per method
for seed in range(8):
    concepts = simulate_drifts(pixels, K, epsilon=1.0, n_concepts=6, random_state=seed)
    stream = DriftStream(concepts, 300, PER_CONCEPT, random_state=seed)
    models = {
        name: FSKM(K, init=init, rho=rho, random_state=seed)
        for name, init in METHODS.items()
    }
    previous = None
    for batch in stream.batches():
        steps = {
            name: model.step(batch, previous=previous) for name, model in models.items()
        }
        previous = steps["PC"].centroids
        if batch.index >= PER_CONCEPT:  # the first concept only fills the window
            initial.append([step.initial_error for step in steps.values()])
            converged.append([step.surrogate_error for step in steps.values()])

# %%
# How far each lies above the best
# --------------------------------
# For each batch, (error - least error) / least error; the median over 40 drifts.


def above_the_best(errors):
    table = np.array(errors, dtype=float)
    score = table / table.min(axis=1, keepdims=True) - 1
    return np.median(score.reshape(-1, PER_CONCEPT, len(METHODS)), axis=0)


scores = {
    "where Lloyd starts": above_the_best(initial),
    "where it ends": above_the_best(converged),
}

# %%
# What to see
# -----------
# At the drift (T = 1) the previous centroids are by far the worst start, HI and WI the
# best. From the third batch on the previous centroids are the best start: they know
# the new concept by then. But a good start is not a good end. HI ends lowest at the
# drift and after it, and CC, which starts from what one batch says, ends highest later
# on.

STYLES = {
    "PC": ("#0072B2", "o"),
    "CC": ("0.45", "s"),
    "WI": ("#E69F00", "^"),
    "HI": ("#009E73", "D"),
}
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
for axis, (title, score) in zip(axes, scores.items(), strict=True):
    for column, (name, (colour, marker)) in enumerate(STYLES.items()):
        axis.plot(
            range(1, PER_CONCEPT + 1),
            100 * score[:, column],
            color=colour,
            marker=marker,
            ms=5,
            label=name,
        )
    axis.set(
        title=title,
        xlabel="batches since the drift, T",
        xticks=range(1, PER_CONCEPT + 1),
    )
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("surrogate error above the best, %")
axes[0].legend(frameon=False)
plt.show()

# %%
for title, score in scores.items():
    per_method = ", ".join(
        f"{name} {100 * s:.1f} %" for name, s in zip(METHODS, score[0], strict=True)
    )
    print(f"T = 1, {title}: {per_method}")
