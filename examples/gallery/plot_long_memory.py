"""
Long memory in bounded space
============================

With rho near 1 much is remembered: at 0.99 the window has 459 batches. ``max_points``
caps what is kept. Old batches become weighted means of nearby points, fewer with their
age.
"""

# %%
# A stream that deserves a long memory
# ------------------------------------
# Small batches, many columns, clusters that overlap, and nothing changes: whoever
# remembers more knows the clusters better. The truth is measured on 20,000 points of
# its own.

import pickle

import matplotlib.pyplot as plt
import numpy as np

from kmeander import ForgetfulKMeans, kmeans_error, max_batches_for

K, COLUMNS, SIZE, N_BATCHES = 8, 10, 60, 500
rng = np.random.default_rng(0)
centres = rng.normal(scale=2.0, size=(K, COLUMNS))


def draw(n):
    return centres[rng.integers(K, size=n)] + rng.normal(size=(n, COLUMNS))


stream = [draw(SIZE) for _ in range(N_BATCHES)]
test = draw(20_000)

# %%
# Three memories
# --------------
MEMORIES = {
    "rho 0.6": ForgetfulKMeans(K, rho=0.6, random_state=0),
    "rho 0.99": ForgetfulKMeans(K, rho=0.99, random_state=0),
    "rho 0.99, max_points=3000": ForgetfulKMeans(
        K, rho=0.99, max_points=3000, random_state=0
    ),
}
every = range(9, N_BATCHES, 10)
errors = {name: [] for name in MEMORIES}
kilobytes = {name: [] for name in MEMORIES}
for name, model in MEMORIES.items():
    for t, batch in enumerate(stream):
        model.partial_fit(batch)
        if t in every:
            errors[name].append(kmeans_error(test, model.cluster_centers_))
            kilobytes[name].append(len(pickle.dumps(model)) / 1e3)

# %%
# What to see
# -----------
# Left, the error on points that nobody has learned. A short memory never gets better.
# Of the two long ones the bounded one is hardly worse. Right, the size of the whole
# model, as pickle writes it: the window of 0.99 grows until batch 459 and is then as
# large as it gets; with ``max_points`` it is as large after fifty batches as after
# five hundred.

STYLES = {
    "rho 0.6": ("#D55E00", "-"),
    "rho 0.99": ("0.5", "-"),
    "rho 0.99, max_points=3000": ("#0072B2", "--"),
}
best = kmeans_error(test, centres)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for name, (colour, line) in STYLES.items():
    left.plot(
        every, 100 * (np.array(errors[name]) / best - 1), line, color=colour, lw=2
    )
    right.plot(every, kilobytes[name], line, color=colour, lw=2, label=name)
left.set(
    xlabel="batch", ylabel="error above that of the true centres, %", ylim=(-0.2, None)
)
right.set(xlabel="batch", ylabel="size of the model, kB", yscale="log")
right.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.62))
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
few, many = max_batches_for(0.6), max_batches_for(0.99)
print(f"batches remembered: {few} at rho 0.6, {many} at 0.99")
for name in MEMORIES:
    print(f"{name}: error {errors[name][-1]:.3f}, {kilobytes[name][-1]:.0f} kB")
