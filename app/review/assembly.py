"""The run's configuration for both reviews: what the plugins are told, and what they add."""

from __future__ import annotations

from app.agents.prompt_context import AddedContext, KnownFinding, Remark
from app.domain.policy import Policy
from app.domain.pull_request import AccountKind
from app.errors import ForgeForbidden
from app.forges.port import Forge
from app.git.objects import Tree
from app.logs import get_logger
from app.plugins.configuration import RunConfiguration
from app.plugins.facts import ReadFile, RunFacts, RunKind, RunView
from app.plugins.lifecycle import PluginHost
from app.policy.paths import withheld_by
from app.review.facts import ReviewFacts
from app.review.plan import ReviewPlan
from app.review.source import Source

log = get_logger(__name__)


async def conversation(forge: Forge, facts: ReviewFacts) -> tuple[Remark, ...]:
    """What people said below the pull request, oldest first. Bots are left out: their words are no
    argument. () where the installation may not read it, which the log says."""
    number, comments = facts.pull_request.number, facts.comments
    try:
        if comments is None:
            comments = await forge.issue_comments(facts.repo, number)
    except ForgeForbidden as error:
        log.warning("the conversation cannot be read", number=number, error=str(error))
        return ()
    machines = facts.policy.policy.machine_accounts
    return tuple(
        Remark(
            comment.author.login,
            comment.body,
            "write" if comment.author.login in facts.writers else "",
        )
        for comment in comments
        if not comment.ours
        and comment.author.kind is AccountKind.USER
        and comment.author.login not in machines
    )


def run_facts(
    facts: ReviewFacts, findings: tuple[KnownFinding, ...], comments: tuple[Remark, ...]
) -> RunFacts:
    """What plugins are told of a pull request's review."""
    pull = facts.pull_request
    return RunFacts(
        kind=RunKind.PULL_REQUEST,
        repository=facts.repo.full_name,
        number=pull.number,
        title=pull.title,
        body=pull.body,
        author=pull.author.login,
        base_ref=pull.base_ref,
        base_sha=facts.merge_base,
        head_ref=pull.head_ref,
        head_sha=pull.head_sha,
        labels=pull.labels,
        draft=pull.draft,
        from_fork=pull.head_repo != facts.repo.full_name,
        comments=comments,
        findings=findings,
        previous_review=facts.previous_summary,
        round_number=facts.rounds_before + 1,
        is_fix=facts.task is not None,
        policy=facts.policy.policy,
    )


async def configured(host: PluginHost, facts: RunFacts, source: Source) -> RunConfiguration:
    """Ask the plugins. Raises PluginError and ConfigurationError, see `PluginHost.configured`."""
    return await host.configured(facts, reader(source.base_tree, facts.policy))


async def evidence(
    host: PluginHost, facts: RunFacts, source: Source, plan: ReviewPlan
) -> tuple[AddedContext, ...]:
    """What plugins found in the files that are going to be reviewed."""
    read = reader(source.tree, facts.policy)
    return await host.evidence(RunView(facts, plan.tier, plan.reviewers, plan.files, read))


def reader(tree: Tree, policy: Policy) -> ReadFile:
    """Reads what the policy lets out: a plugin may hand on whatever it gets."""

    async def read(path: str) -> bytes | None:
        return None if withheld_by(policy, path) is not None else await tree.read(path)

    return read
