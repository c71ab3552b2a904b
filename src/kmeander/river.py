"""ForgetfulKMeans for river (``pip install "kmeander[river]"``)."""

from kmeander.estimators.river import ForgetfulKMeans

__all__ = ["ForgetfulKMeans"]
