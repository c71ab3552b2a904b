"""
Embeddings: labels that stay
============================

Texts and images arrive as vectors, and every night somebody clusters them anew:
cluster 3 of today has nothing to do with cluster 3 of yesterday. Here are both ways on
the same days.
"""

# %%
# Days of pictures
# ----------------
# Handwritten digits stand for documents: 64 numbers each, and the digit is the topic.
# Each day brings 200 of six topics. On day 15 nobody writes about 3 any more, and 7
# comes up. And as the model that makes the vectors is trained on, all of them turn a
# little every day.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from kmeander import ForgetfulKMeans

DAYS, NEWS = 30, 15
rng = np.random.default_rng(0)
digits = load_digits()
vectors = digits.data / np.linalg.norm(digits.data, axis=1, keepdims=True)
plane = np.linalg.qr(rng.normal(size=(64, 2)))[0]  # the plane in which everything turns


def turned(X, angle):
    along = X @ plane
    c, s = np.cos(angle), np.sin(angle)
    return X + (along @ np.array([[c, s], [-s, c]]) - along) @ plane.T


days = []
for day in range(DAYS):
    topics = [0, 1, 2, 3, 4, 6] if day < NEWS else [0, 1, 2, 7, 4, 6]
    rows = rng.choice(np.flatnonzero(np.isin(digits.target, topics)), size=200)
    days.append((turned(vectors[rows], 0.03 * day), digits.target[rows]))

# %%
# Cluster them, both ways
# -----------------------
# ``ids_`` are kmeander's lasting ids of the newest batch.

model = ForgetfulKMeans(6, random_state=0)
nightly, lasting = [], []
for day, (X, _) in enumerate(days):
    nightly.append(KMeans(6, n_init=3, random_state=day).fit(X).labels_)
    model.partial_fit(X)
    lasting.append(model.ids_)

# %%
# What to see
# -----------
# One row per topic, one column per day; the colour is the label that most of the
# topic's documents have. On the left colours change every day. On the right a topic
# keeps its label; when 3 ends on day 15, its label ends, and 7 is given one that was
# never used before.

TOPICS = [0, 1, 2, 3, 7, 4, 6]
COLOURS = ["#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"]


def commonest(labels):
    """Label of most documents of each topic on each day; -1 where there are none."""
    table = np.full((len(TOPICS), DAYS), -1)
    for day, (_, truth) in enumerate(days):
        for row, topic in enumerate(TOPICS):
            mine = labels[day][truth == topic]
            if len(mine):
                table[row, day] = np.bincount(mine).argmax()
    return table


tables = {
    "KMeans, refitted every night": commonest(nightly),
    "kmeander": commonest(lasting),
}
figure, axes = plt.subplots(
    1, 2, figsize=(10.5, 3.6), sharey=True, layout="constrained"
)
for axis, (title, table) in zip(axes, tables.items(), strict=True):
    colours = ListedColormap(["white", *COLOURS])  # white where there is none
    axis.pcolormesh(
        table + 1, cmap=colours, vmin=0, vmax=len(COLOURS), edgecolors="w", lw=1.5
    )
    axis.set(
        title=title,
        xlabel="day",
        yticks=np.arange(len(TOPICS)) + 0.5,
        xticks=np.arange(0, DAYS, 5) + 0.5,
        xticklabels=range(0, DAYS, 5),
        yticklabels=[f"topic {topic}" for topic in TOPICS],
    )
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
axes[0].invert_yaxis()
plt.show()

# %%
# How many labels change overnight, of topics that were there on both days?

for title, table in tables.items():
    both = (table[:, 1:] >= 0) & (table[:, :-1] >= 0)
    changed = (table[:, 1:] != table[:, :-1])[both].mean()
    print(f"{title}: {changed:.1%} of the topics have another label the next day")
