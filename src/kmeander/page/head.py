"""The head of the page: the source, its status, the figures; and what is at its foot."""

from __future__ import annotations

from html import escape

from kmeander.page.status import status_html, status_of
from kmeander.page.summary import Figure, figures, noise_words
from kmeander.page.timeline import Timeline


def title_html(timeline: Timeline) -> str:
    """Return what stream this is, and how it is."""
    source = escape(str(timeline.facts.get("source", "a stream")))
    return f"<h1>{source}</h1>{status_html(status_of(timeline))}"


def figures_html(
    timeline: Timeline, extra: dict[str, str] | None = None, n_drawn: int | None = None
) -> str:
    """Return the figures; nothing in them is taken for HTML.

    Parameters
    ----------
    timeline : Timeline
    extra : dict, optional
        More figures, by name.
    n_drawn : int, optional
        Batches that are drawn, where they are fewer than there are.
    """
    items = [*figures(timeline), *(Figure(*pair) for pair in (extra or {}).items())]
    shown = "".join(_figure(place, one) for place, one in enumerate(items))
    notes = list(timeline.notes)
    if n_drawn is not None and n_drawn < len(timeline.moments):
        notes.append(
            f"{n_drawn:,} of {len(timeline.moments):,} batches are drawn: of each stretch the one "
            "with the largest error before learning, so that no drift is lost. Lives and events "
            "are complete."
        )
    said = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    noise = "".join(f'<p class="noise">{escape(words)}</p>' for words in noise_words(timeline))
    return f"<h2>In numbers</h2>{said}<dl>{shown}</dl>{noise}{_settings(timeline)}"


def _figure(place: int, one: Figure) -> str:
    """Return a figure; its hint shows where it is pointed at, touched or reached by keyboard."""
    name, value = escape(one.name), escape(one.value)
    if one.hint:
        name = (
            f'<span class="term" tabindex="0" aria-describedby="hint{place}">{name}</span>'
            f'<span class="hint" role="tooltip" id="hint{place}">{escape(one.hint)}</span>'
        )
    return f"<div><dt>{name}</dt><dd>{value}</dd></div>"


def _settings(timeline: Timeline) -> str:
    facts = {
        **timeline.facts.get("settings", {}),
        "columns": ", ".join(timeline.columns),
        "kmeander": timeline.facts.get("kmeander", "unknown"),
        "batch size": timeline.facts.get("batch_size"),
        "standardised": "yes" if timeline.facts.get("standardize") else "no",
    }
    if timeline.n_distances_plain:
        share = timeline.n_distances / timeline.n_distances_plain
        facts["distances computed"] = f"{share:.1%} of plain Lloyd's"
    more = "".join(
        f"<div>{escape(str(name))}: {escape(str(value))}</div>" for name, value in facts.items()
    )
    return f"<details><summary>Settings and columns</summary>{more}</details>"


def loadings(timeline: Timeline, most: int = 3) -> tuple[str, str]:
    """Return what each axis of the map is made of, in words; the columns themselves, if chosen.

    Parameters
    ----------
    timeline : Timeline
    most : int, default=3
        Columns that are named.
    """
    if timeline.features is not None:
        return timeline.axes
    names = timeline.columns
    found = []
    for component in timeline.components:
        order = sorted(range(len(component)), key=lambda place: -abs(component[place]))
        parts = [place for place in order[:most] if abs(component[place]) >= 0.1]
        found.append(
            " ".join(
                f"{'-' if component[place] < 0 else '+' if n else ''}"
                f"{abs(component[place]):.2f} {names[place]}"
                for n, place in enumerate(parts)
            )
            or "nothing"
        )
    return found[0], found[1]
