"""
Explaining a drift
==================

"Something changed" helps nobody. At a drift ``step_.why`` divides the growth of the
error among clusters and columns. The shares are exact and sum to one, so they can be
believed.
"""

# %%
# Machines with five sensors
# --------------------------
# Four ways to run, five columns. At batch 20 machines of one kind run hotter, and
# another kind begins to shake: its readings of vibration spread. All else stays as it
# was.

import matplotlib.pyplot as plt
import numpy as np

from kmeander import ForgetfulKMeans

COLUMNS = ["temp", "load", "flow", "pressure", "vibration"]
rng = np.random.default_rng(3)
centres = rng.uniform(-8, 8, size=(4, 5))


def batch_at(t):
    members = rng.integers(4, size=500)
    places, spread = centres.copy(), np.ones((4, 5))
    if t >= 20:
        places[1, 0] += 4.0  # one kind runs hotter
        spread[2, 4] = 3.0  # another one shakes
    return places[members] + rng.normal(size=(500, 5)) * spread[members]


stream = [batch_at(t) for t in range(40)]
model = ForgetfulKMeans(4, random_state=0)
steps = [model.partial_fit(batch).step_ for batch in stream]

# %%
# What is said
# ------------
drifts = [step for step in steps if step.why is not None]
for step in drifts:
    print(f"batch {step.index}")
    for words in step.words(COLUMNS):
        print("  " + words)

# %%
# What to see
# -----------
# Left, the error of each batch before it is learned. In the middle and right, whose the
# change at batch 20 is: two clusters and two columns, as it was made. The other
# clusters and columns stay near zero, give or take what chance does in 500 points.

step = drifts[0]
names, shares = zip(*step.why.clusters, strict=True)
figure, axes = plt.subplots(
    1, 3, figsize=(11, 3.8), width_ratios=[1.5, 1, 1.1], layout="constrained"
)
axes[0].plot(
    range(1, 40), [s.prequential_error for s in steps[1:]], color="#0072B2", lw=2
)
axes[0].plot(
    range(1, 40), [s.expected_error for s in steps[:-1]], color="0.5", ls="--", lw=1.2
)
axes[0].legend(["error before learning", "expected"], frameon=False, loc="lower right")
axes[0].set(xlabel="batch", title="A drift at batch 20", ylim=(0, None))
for axis, labels, values, title in [
    (axes[1], [f"id {number}" for number in names], shares, "Share of each cluster"),
    (axes[2], COLUMNS, step.why.features, "Share of each column"),
]:
    colours = ["#D55E00" if value > 0.1 else "0.75" for value in values]
    axis.barh(labels, values, color=colours)
    for row, value in enumerate(values):
        axis.text(max(value, 0) + 0.02, row, f"{round(100 * value)} %", va="center")
    axis.axvline(0, color="0.4", lw=0.8)
    axis.set(title=title, xlim=(-0.08, 0.85), xticks=[])
    axis.invert_yaxis()
    axis.tick_params(length=0)
for axis in axes:
    axis.spines[["top", "right"]].set_visible(False)
for axis in axes[1:]:
    axis.spines[["bottom", "left"]].set_visible(False)
plt.show()

# %%
two = step.why.features[0] + step.why.features[4]
columns = sum(step.why.features)
print(f"shares of clusters sum to {sum(shares):.6f}, of columns to {columns:.6f}")
print(f"temp and vibration together: {two:.1%} of the change")
