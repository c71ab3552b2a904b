"""Draws recorded Steps, as a report or live. Knows no model; only here is bokeh imported."""
