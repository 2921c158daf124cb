"""Hidden marks: by them we know our own texts again, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.markers import (
    Marker,
    MarkerKind,
    markers_of,
    shortened,
    with_marker,
    without_markers,
)

F1 = Marker(MarkerKind.FINDING, "12-F1")
RUN = Marker(MarkerKind.REVIEW, "run-17")
_IDS = st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9._:/]|-(?!-)){0,30}", fullmatch=True)
_MARKERS = st.builds(Marker, st.sampled_from(MarkerKind), _IDS)


@given(st.text(max_size=300), _MARKERS)
@example("\n0", F1)
def test_round_trip(body: str, marker: Marker) -> None:
    """Whatever the body, its marker is found and is the only one, also when marked again."""
    marked = with_marker(body, marker)
    assert markers_of(marked) == (marker,)
    assert with_marker(marked, marker) == marked
    assert without_markers(marked) == without_markers(body)


@given(st.text(max_size=2000), _MARKERS, st.integers(min_value=300, max_value=1000))
def test_within_the_limit(body: str, marker: Marker, limit: int) -> None:
    """A body of any length fits with its marker whole."""
    marked = with_marker(body, marker, limit=limit)
    assert len(marked) <= limit
    assert markers_of(marked) == (marker,)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{F1}\n\nAnd more text.", id="not at the end"),
        pytest.param(f"> Finding 1\n> {F1}", id="quoted"),
        pytest.param(f"text {F1}", id="not alone on its line"),
        pytest.param("<!-- mergeward:finding: -->", id="no id"),
        pytest.param("<!-- mergeward:novelty:1 -->", id="unknown kind"),
        pytest.param("<!-- mergeward:finding:a--b -->", id="ends the comment early"),
        pytest.param(f"```\n{F1}\n```", id="in a code block"),
        pytest.param("", id="empty"),
    ],
)
def test_not_a_marker(body: str) -> None:
    """Only a whole line at the very end marks a text."""
    assert markers_of(body) == ()


def test_a_marker_in_model_text_does_not_count() -> None:
    """A model made to repeat another run's marker does not make that run look published."""
    assert markers_of(with_marker(f"Nice code.\n{RUN}", F1)) == (F1,)
    assert markers_of(with_marker(f"Nice code.\n{RUN}\nBye.", F1)) == (F1,)


@pytest.mark.parametrize("bad", ["", "a b", "a-->", "-a", "a" * 121, "ä", "a\n"])
def test_bad_ids(bad: str) -> None:
    """An id that could end the comment, or not be found again, is refused at once."""
    with pytest.raises(ValueError, match="id of a marker"):
        Marker(MarkerKind.FINDING, bad)


def test_cut_text_closes_its_fence() -> None:
    """A cut inside a code block must not swallow the notice."""
    cut = shortened("```\n" + "code\n" * 200, 400)
    assert len(cut) <= 400
    assert cut.count("```") == 2
    assert cut.endswith("GitHub accepts.*")


def test_short_text_is_left_alone() -> None:
    assert shortened("text", 4) == "text"
