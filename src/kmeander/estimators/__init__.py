"""scikit-learn's and river's estimators over the models."""

from kmeander.estimators.forgetful import ForgetfulKMeans, PrivilegedKMeans, load

__all__ = ["ForgetfulKMeans", "PrivilegedKMeans", "load"]
