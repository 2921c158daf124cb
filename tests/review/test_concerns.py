"""Who has something to do, by paths alone (app/review/concerns.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.runs import AgentName
from app.git.globs import glob_matcher
from app.review.concerns import OWN_FILES, has_work
from tests.review.factories import change

WORDS = sorted(
    {
        part.replace("*", filling)
        for globs in OWN_FILES.values()
        for glob in globs
        for part in glob.split("/")
        if part != "**"
        for filling in ("", "x", "\n")
    }
    | {"src", "a", "CHANGELOG", "migrations.py"}
)


@pytest.mark.parametrize("agent", OWN_FILES)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("/".join))
def test_one_expression_says_what_the_globs_say(agent: AgentName, path: str) -> None:
    """It is faster, and means the same."""
    expected = any(glob_matcher(glob)(path) for glob in OWN_FILES[agent])
    assert has_work(agent, [change(path)]) == expected


@pytest.mark.parametrize("agent", OWN_FILES)
def test_every_glob_is_of_a_known_form(agent: AgentName) -> None:
    """Another one would be read wrongly, in silence."""
    for glob in OWN_FILES[agent]:
        inside = glob.removeprefix("**/").removesuffix("/**")
        assert glob.startswith("**/")
        assert "**" not in inside
        assert not set("?[]") & set(inside)
