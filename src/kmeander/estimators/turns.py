"""One batch at a time: threads that learn with the same estimator wait for each other."""

from __future__ import annotations

import os
import threading
from weakref import WeakKeyDictionary

# Beside the estimators, not in them: a lock can be neither cloned nor pickled, and is no parameter.
_turns: WeakKeyDictionary[object, threading.RLock] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    # A thread that learned while its process forked has no counterpart in the child to let go.
    os.register_at_fork(after_in_child=_turns.clear)


def turn_of(estimator: object) -> threading.RLock:
    """Return the lock that whoever changes `estimator` must hold.

    Examples
    --------
    >>> class Estimator: ...
    >>> one = Estimator()
    >>> turn_of(one) is turn_of(one), turn_of(one) is turn_of(Estimator())
    (True, False)
    """
    turn = _turns.get(estimator)
    # setdefault is one operation: two threads that come first at once get the same lock.
    return _turns.setdefault(estimator, threading.RLock()) if turn is None else turn
