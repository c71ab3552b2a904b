"""How a run is watched from outside: its activity, metrics and health, notices of events."""
