"""
Forgetting by event time
========================

Batches do not come like the ticks of a clock. When a sensor has been silent for an
hour, what it said before is an hour old, not one batch old. ``partial_fit(X,
elapsed=...)`` says how much time has passed.
"""

# %%
# A stream with gaps
# ------------------
# Three clusters go round once in ten hours. The link is up for a while and brings a
# batch every two minutes; then it is down for one to three hours.

import matplotlib.pyplot as plt
import numpy as np

from kmeander import ForgetfulKMeans, rho_for_half_life

rng = np.random.default_rng(1)
minutes = []
now = 0.0
while len(minutes) < 160:
    minutes += [now + 2.0 * i for i in range(10)]
    now = minutes[-1] + rng.uniform(60, 180)


def batch_at(minute):
    angle = 2 * np.pi * (minute / 600 + np.arange(3) / 3)
    centres = 6 * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.repeat(centres, 20, axis=0) + rng.normal(size=(60, 2))


stream = [batch_at(minute) for minute in minutes]

# %%
# One model counts batches, the other minutes
# -------------------------------------------
# Both forget half in 20 minutes while the link is up: that is ten batches. To keep the
# comparison plain, neither may forget more at a surprise (``forgetting="fixed"``).

rho = rho_for_half_life(10)
by_batches = ForgetfulKMeans(3, rho=rho, forgetting="fixed", random_state=0)
by_minutes = ForgetfulKMeans(3, rho=rho, forgetting="fixed", random_state=0)
errors = []
for i, batch in enumerate(stream):
    passed = (
        1.0 if i == 0 else (minutes[i] - minutes[i - 1]) / 2.0
    )  # in batches of two minutes
    by_batches.partial_fit(batch)
    by_minutes.partial_fit(batch, elapsed=passed)
    errors.append([by_batches.step_.batch_error, by_minutes.step_.batch_error])
table = np.array(errors)

# %%
# What to see
# -----------
# Above, what the batches of the last hours weigh when the last one has come. By
# batches (upwards), what is hours old weighs as if it were minutes old, and pulls the
# centroids to where the clusters were. By minutes (downwards), only what came since
# the gap counts. Below, the error of each batch after it was learned. Each time that
# the link comes back the first model carries the past about.

BY_BATCHES, BY_MINUTES = "#D55E00", "#0072B2"
hours = np.array(minutes) / 60
figure, (above, below) = plt.subplots(2, 1, figsize=(9.5, 6), layout="constrained")
age_in_batches = np.arange(len(stream))[::-1]
age_in_minutes = minutes[-1] - np.array(minutes)
above.vlines(
    hours, 0, rho**age_in_batches, color=BY_BATCHES, lw=2.2, label="by batches"
)
above.vlines(
    hours,
    0,
    -(rho ** (age_in_minutes / 2)),
    color=BY_MINUTES,
    lw=2.2,
    label="by minutes",
)
above.axhline(0, color="0.4", lw=0.8)
above.set(
    xlabel="hour at which a batch came", ylabel="weight at the end", yticks=[-1, 0, 1]
)
above.set(
    xlim=(hours[-1] - 11, hours[-1] + 0.2),
    ylim=(-1.1, 1.1),
    yticklabels=["1", "0", "1"],
)
above.legend(frameon=False, loc="upper left")
below.plot(hours, table[:, 0], ".", color=BY_BATCHES, ms=6, label="by batches")
below.plot(
    hours, table[:, 1], ".", color=BY_MINUTES, ms=6, label="by minutes (elapsed)"
)
below.axhline(2.0, color="0.6", lw=0.8, zorder=0)
below.set(yscale="log", xlabel="hour", ylabel="error after learning", ylim=(1.3, 60))
below.set_yticks([], minor=True)
below.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
below.legend(frameon=False, loc="upper left", ncols=2)
for axis in (above, below):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The points scatter by 1 in two columns: 2 is what a model that knew the truth would
# have.

first, second = table[20:].mean(axis=0)
print(f"mean error by batches: {first:.2f}, by minutes: {second:.2f}")
