"""The proof can fail: each rule that is taken away is missed by an invariant, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop_guards.model.check import INVARIANTS
from tests.loop_guards.model.mutants import MUTANTS, Mutant, caught_by


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_an_invariant_notices(mutant: Mutant, tmp_path: Path) -> None:
    """The explorer, run on guards without the rule, breaks the invariant that is named for it."""
    assert caught_by(mutant, tmp_path) == mutant.invariant


def test_every_invariant_is_broken_by_some_mutant() -> None:
    """An invariant that no mutant breaks might be one that nothing could."""
    broken = {mutant.invariant for mutant in MUTANTS}
    # The first breaks only together with one that is checked before it; the second is broken by a
    # planted world in test_worlds.
    elsewhere = {"tasks_by_orders", "halts"}
    assert set(INVARIANTS) - broken == elsewhere
