"""`settings`: a policy file on either side of a change, beside what the operator has set."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import SecretStr

from app.agents.configured import routing_of
from app.domain.policy import POLICY_PATH
from app.domain.runs import SHIPPED_AGENTS
from app.policy.load import effective_policy
from app.review.brief import models_of
from app.review.found_by_code import found_by_code
from app.review.plan import plan_review
from app.review.render import policy_notes
from app.review.source import file_facts, open_source
from app.settings import Settings
from tests.adapters.case import Case, only_knows
from tests.git.repos import BareRepo

OPERATOR = "https://operator.example"


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "used_endpoint", "note_names", "language")
    text = yaml.safe_dump(case.input["settings"]).encode()
    on_head = case.input["file_on"] == "head"
    repo = BareRepo.create(tmp_path / "settings.git")
    base, head = repo.commits(
        [{} if on_head else {POLICY_PATH: text}, {POLICY_PATH: text, "a.py": b"x\n"}]
    )
    effective = effective_policy(await repo.repository.tree(base).read(POLICY_PATH), None)
    source = await open_source(repo.repository, base, head)
    plan = plan_review(
        await file_facts(source, effective.policy), effective.policy, set(SHIPPED_AGENTS)
    )
    found = await found_by_code(source, plan)
    notes = " ".join([*policy_notes(effective), *(item.finding.body for item in found)])
    assert all(name in notes for name in case.expect.get("note_names", ()))
    settings = Settings(model_base_url=OPERATOR, model_api_key=SecretStr("a key of the operator"))
    routing = routing_of(settings)
    used = {
        model.provider
        for agent in plan.reviewers
        for model in models_of(agent, plan.tier, effective.policy, routing)
    }
    is_operators = used == {routing.provider}
    assert ("operator" if is_operators else used) == case.expect.get("used_endpoint", "operator")
    # There is no language to set: reviews are in English, so it stays as it was.
    assert "unchanged" in case.expect.get("language", "unchanged")
