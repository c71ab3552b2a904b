"""ForgetfulKMeans as the cluster model of BERTopic's online topics, with the real package.

It is installed as its guide to light-weight installation says, without what it would embed and
reduce documents with: embeddings are given, and `IncrementalPCA` reduces them.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import IncrementalPCA

from kmeander import ForgetfulKMeans

WORDS = {
    "sea": ["boat", "wave", "harbour", "sailor", "tide"],
    "bread": ["flour", "yeast", "oven", "crust", "dough"],
    "music": ["violin", "melody", "concert", "rhythm", "choir"],
    "space": ["rocket", "planet", "orbit", "comet", "galaxy"],
}
TOPICS = list(WORDS)
DIRECTIONS = np.random.default_rng(0).normal(size=(len(TOPICS), 16)) * 5.0


def documents(rng: np.random.Generator, topics: list[str], n: int = 60) -> tuple[Any, Any, Any]:
    """Short texts, embeddings that lie together by topic, and their topics."""
    truth = rng.choice(topics, size=n).tolist()
    texts = [" ".join(rng.choice(WORDS[topic], size=6)) for topic in truth]
    middles = DIRECTIONS[[TOPICS.index(topic) for topic in truth]]
    return texts, (middles + rng.normal(scale=0.3, size=(n, 16))).astype(np.float32), truth


@pytest.fixture
def bertopic() -> Any:
    from bertopic import BERTopic
    from bertopic.vectorizers import OnlineCountVectorizer

    return BERTopic(
        umap_model=IncrementalPCA(n_components=4),
        hdbscan_model=ForgetfulKMeans(3, random_state=0),
        vectorizer_model=OnlineCountVectorizer(),
    )


def words_of(model: Any, topic: int) -> set[str]:
    return {word for word, weight in model.get_topic(topic)[:5] if weight > 0}


def test_topics_are_learnt_online_and_keep_their_numbers(bertopic: Any) -> None:
    """Every document comes to a topic whose words are those of its true one, batch after batch."""
    rng = np.random.default_rng(1)
    meaning: dict[int, set[str]] = {}
    for batch in range(4):
        texts, embeddings, truth = documents(rng, TOPICS[:3])
        bertopic.partial_fit(texts, embeddings)
        assert len(bertopic.topics_) == len(texts)
        for topic, true in zip(bertopic.topics_, truth, strict=True):
            assert words_of(bertopic, topic) == set(WORDS[true])
        now = {topic: words_of(bertopic, topic) for topic in sorted(set(bertopic.topics_))}
        assert len(now) == 3
        assert batch == 0 or now == meaning
        meaning = now
    assert bertopic.hdbscan_model.n_steps_ == 4


def test_new_documents_are_given_the_topics_learnt(
    bertopic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # BERTopic 0.17.4 asks whether a model is HDBSCAN's even where hdbscan is not installed.
    hdbscan = types.ModuleType("hdbscan")
    monkeypatch.setattr(hdbscan, "HDBSCAN", type("HDBSCAN", (), {}), raising=False)
    monkeypatch.setitem(sys.modules, "hdbscan", hdbscan)
    rng = np.random.default_rng(2)
    for _ in range(2):
        texts, embeddings, _ = documents(rng, TOPICS[:3])
        bertopic.partial_fit(texts, embeddings)
    texts, embeddings, truth = documents(rng, TOPICS[:3])
    topics, _ = bertopic.transform(texts, embeddings)
    assert len(set(zip(topics, truth, strict=True))) == 3  # one topic for each true one


def test_a_topic_that_comes_up_takes_the_place_of_one_that_is_gone(bertopic: Any) -> None:
    """K is fixed: when music ends and space begins, music's cluster goes there."""
    rng = np.random.default_rng(3)
    for topics in [TOPICS[:3]] * 3 + [["sea", "bread", "space"]] * 3:
        texts, embeddings, truth = documents(rng, topics)
        bertopic.partial_fit(texts, embeddings)
    assert len(set(zip(bertopic.topics_, truth, strict=True))) == 3
    assert bertopic.hdbscan_model.n_steps_ == 6
