"""What a fitted estimator gives to other libraries: frames, Arrow tables, scikit-learn's KMeans."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError

from kmeander.estimators.fitted import FittedKMeans
from kmeander.exceptions import InputError
from kmeander.kmeans.metric import Metric
from kmeander.models.state import State
from kmeander.preparation import FittedPreparation
from kmeander.preparation.rows import Levels
from kmeander.preparation.rules import rule

if TYPE_CHECKING:  # each is loaded where it is needed: together they take half a second
    import pyarrow as pa
    from sklearn.cluster import KMeans
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline


class ExportedKMeans(FittedKMeans):
    """The present clusters, as other libraries have them."""

    def to_arrow(self) -> pa.Table:
        """Return the clusters as an Arrow table: `cluster` (the id), `mass` and `centroid`.

        Centroids are lists of fixed length, in prepared columns and units where rows are prepared.
        Whatever reads Arrow can take it: DuckDB, polars, Lance.

        Examples
        --------
        >>> from kmeander import ForgetfulKMeans
        >>> model = ForgetfulKMeans(1, random_state=0).fit([[0.0, 1.0], [2.0, 1.0]])
        >>> model.to_arrow().to_pylist()
        [{'cluster': 0, 'mass': 2.0, 'centroid': [1.0, 1.0]}]
        """
        from kmeander.wire.arrow import centroid_table

        learned = self._fitted()
        assert learned.step is not None
        assert learned.step.ids is not None
        assert learned.step.masses is not None
        assert learned.centroids is not None
        return centroid_table(learned.step.ids, learned.step.masses, learned.centroids)

    def to_sklearn(self) -> KMeans | Pipeline:
        """Return a fitted `sklearn.cluster.KMeans` of the present clusters.

        Its labels are those of `predict`, wherever the two nearest centroids differ by more than
        rounding. Where rows are prepared it is a `Pipeline` of scikit-learn's own transformers with
        the medians, units and levels as they are now; with ``metric="cosine"`` a `Normalizer`
        stands before it. So tools that know scikit-learn (skl2onnx, sklearn2pmml, MLflow) take it
        as it is. Nothing that is learned later reaches it.

        Examples
        --------
        >>> from kmeander import ForgetfulKMeans
        >>> model = ForgetfulKMeans(2, random_state=0).fit([[0.0], [1.0], [10.0], [11.0]])
        >>> rows = [[3.0], [9.0]]
        >>> bool((model.to_sklearn().predict(rows) == model.predict(rows)).all())
        True
        """
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer, StandardScaler

        learned = self._fitted()
        names = getattr(self, "feature_names_in_", None)
        steps: list[Any] = [_kmeans(learned, self._space)]
        if self._space.on_sphere:  # where the cosine is Euclid's distance of rows of length 1
            steps.insert(0, Normalizer())
        if learned.preparation is not None:
            shift, unit = learned.preparation.shift, learned.preparation.unit
            scaler = StandardScaler().fit(shift[np.newaxis])
            vars(scaler).update(mean_=shift.copy(), scale_=unit.copy(), var_=unit**2)
            steps[:0] = [_preparing(learned.preparation, by_name=names is not None), scaler]
        else:
            steps[0].n_features_in_ = learned.n_features
            if names is not None:
                steps[0].feature_names_in_ = names.copy()
        return steps[0] if len(steps) == 1 else make_pipeline(*steps)

    def _fitted(self) -> State:
        if not hasattr(self, "cluster_centers_"):
            raise NotFittedError(self._why_not_fitted())
        return self._learned


def _kmeans(learned: State, space: Metric) -> KMeans:
    """Return scikit-learn's KMeans as if it had found these centroids."""
    from sklearn.cluster import KMeans

    step, centroids = learned.step, learned.centroids
    assert step is not None
    assert centroids is not None
    assert step.surrogate_error is not None
    # Fitted on as many points as there are clusters, so that it has what `predict` asks for.
    places = np.arange(len(centroids), dtype=np.float64)[:, np.newaxis]
    kmeans = KMeans(len(centroids), init=places, n_init=1, random_state=0).fit(places)
    kmeans.set_params(init="k-means++", n_init="auto")
    vars(kmeans).update(
        # scikit-learn's KMeans takes rows of the type with which it was fitted, and no others.
        cluster_centers_=centroids.astype(learned.window.batches[-1].points.dtype),
        labels_=learned.window.newest_labels(step.n_means or step.n_points).copy(),
        inertia_=step.surrogate_error * step.mass / space.error_share,
        n_iter_=step.n_iter,
        n_features_in_=centroids.shape[1],
    )
    return kmeans


def _preparing(preparation: FittedPreparation, *, by_name: bool) -> ColumnTransformer:
    """Return what fills and encodes the columns of a table, or say why that cannot be said."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer

    if preparation.rules.missing == "skip":
        raise InputError(
            "to_sklearn cannot say that rows are left out where something is missing: a Pipeline "
            f"gives one label for each row. Learn with {rule('missing', 'median')}."
        )
    vector = next((column.name for column in preparation.columns if column.kind == "vector"), None)
    if vector is not None:
        raise InputError(
            f"to_sklearn cannot take the vectors of column {vector!r} apart, since no transformer "
            "of scikit-learn does. Learn them as an array, or as columns of numbers."
        )
    used = [
        (place, plan) for place, plan in enumerate(preparation.plans) if plan.action != "exclude"
    ]
    fills, is_filled = preparation.fills, preparation.rules.missing == "median"
    parts: list[tuple[str, Any, list[Any]]] = []
    for is_text, group in groupby(used, key=lambda entry: entry[1].action == "one-hot"):
        members = list(group)
        steps: Any = SimpleImputer(strategy="median") if is_filled else "passthrough"
        if is_text:
            steps = _encoding([plan.levels for _, plan in members], is_filled=is_filled)
        name = f"{'text' if is_text else 'numbers'}_{len(parts) + 1}"
        parts.append((name, steps, [plan.name if by_name else place for place, plan in members]))
    # Fitted on one row, that of what stands for missing values: medians are then those.
    row: Any = np.array([[fills.get(plan.name, 0.0) for plan in preparation.plans]], dtype=object)
    if by_name:
        import pandas as pd

        names = [plan.name for plan in preparation.plans]
        row = pd.DataFrame(row, columns=names).infer_objects()
    elif not any(isinstance(fill, str) for fill in fills.values()):
        row = row.astype(np.float64)
    return ColumnTransformer(parts, verbose_feature_names_out=False).fit(row)


def _encoding(levels: list[Levels], *, is_filled: bool) -> Pipeline:
    """Return what makes of each text a column for each level, and one for all others.

    By way of numbers, since a OneHotEncoder alone has no column for levels that it does not know.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    others = max(map(len, levels))
    numbers = OrdinalEncoder(
        categories=[np.array(known, dtype=object) for known in levels],
        handle_unknown="use_encoded_value",
        unknown_value=others,
    )
    places = [np.array([*range(len(known)), others], dtype=np.float64) for known in levels]
    columns = OneHotEncoder(categories=places, sparse_output=False)
    imputers = [
        SimpleImputer(strategy="most_frequent", missing_values=nothing)
        for nothing in (np.nan, None)
    ]
    return make_pipeline(*(imputers if is_filled else ()), numbers, columns)
