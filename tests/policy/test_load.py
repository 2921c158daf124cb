"""Policies are read strictly, and what is wrong is said so that its author can mend it."""

from __future__ import annotations

import pytest

from app.domain.policy import HumanPrs, Mode, Policy, PolicyLimits, TargetKind
from app.domain.runs import AgentName
from app.errors import PolicyError
from app.policy.load import EffectivePolicy, PolicySource, effective_policy, parse_policy
from loop_guards import HandoffMode, Limits, Severity

FULL = """\
mode: shadow
human_prs: gate
handoff:
  mode: off
  minimum_severity: critical
  bases: [release/1.x]
  targets:
    red: {kind: builtin}
    blue: {kind: builtin}
limits:
  max_review_iterations: 3
  max_fix_tasks: 4
  max_task_files: 2
  path_tasks: 6
  pingpong_cap: 7
  budget: {input_tokens: 500000, usd: 2.5, model_minutes: 30}
spend:
  day_usd: 20
  month_usd: 200.5
escalate_to: acme/platform
machine_accounts: [release-robot]
bots: {add: [dependency-thing], exempt: ["helper[bot]"]}
reviewers: {performance: false}
models: {security: claude-opus-4-7}
instructions: Amounts are integers of cents.
path_rules:
  - paths: [src/payments/]
    instructions: Flag every float.
ignore_paths: [docs/generated/]
never_send: ["*.secret", "!.npmrc"]
verify_command: [make, test]
"""


def test_every_key_is_read() -> None:
    """A file that uses every key says what it says."""
    policy = parse_policy(FULL)
    assert (policy.mode, policy.human_prs) == (Mode.SHADOW, HumanPrs.GATE)
    assert policy.handoff.mode is HandoffMode.OFF
    assert policy.handoff.minimum_severity is Severity.CRITICAL
    assert policy.handoff.bases == ("release/1.x",)
    assert list(policy.handoff.targets) == ["red", "blue"]
    assert policy.handoff.default_target == "red"
    assert policy.limits.max_review_iterations == 3
    assert policy.limits.budget.usd == 2.5
    assert policy.escalate_to == "acme/platform"
    assert policy.bots.exempt == ("helper[bot]",)
    assert not policy.reviewers.allows(AgentName.PERFORMANCE)
    assert policy.reviewers.allows(AgentName.SECURITY)
    assert policy.models.of(AgentName.SECURITY) == "claude-opus-4-7"
    assert policy.models.of(AgentName.FIXER) is None
    assert policy.path_rules[0].instructions == "Flag every float."
    assert policy.withheld_globs[-2:] == ("*.secret", "!.npmrc")
    assert policy.verify_command == ("make", "test")


def test_a_plugin_s_reviewer_is_named_under_others() -> None:
    """A plugin's agent can be switched off and given a model; a mistyped shipped name is an error,
    and no name of an agent reaches anything else of the policy."""
    policy = parse_policy(
        "reviewers: {others: {acme_sql: false}}\nmodels: {others: {acme_sql: local-7b}}\n"
    )
    assert not policy.reviewers.allows(AgentName("acme_sql"))
    assert policy.models.of(AgentName("acme_sql")) == "local-7b"
    assert policy.reviewers.allows(AgentName("allows"))
    assert policy.models.of(AgentName("others")) is None
    for text in ("reviewers: {securty: false}", "reviewers: {others: {Acme: false}}"):
        with pytest.raises(PolicyError):
            parse_policy(text)


def test_limits_reach_the_guards() -> None:
    """Every number of the file is the guards' number; without a file it is the shipped one."""
    assert Policy().limits.for_guards() == Limits()
    assert parse_policy(FULL).limits.for_guards() == Limits(
        max_review_iterations=3,
        max_fix_tasks=4,
        max_task_files=2,
        path_tasks=6,
        pingpong_cap=7,
        budget_input_tokens=500_000,
        budget_micro_dollars=2_500_000,
        budget_model_seconds=1_800,
    )


@pytest.mark.parametrize("field", sorted({*PolicyLimits.model_fields} - {"budget"}))
@pytest.mark.parametrize("bound", ["minimum", "maximum"])
def test_every_allowed_number_makes_limits(field: str, bound: str) -> None:
    """No number that the schema allows is refused by the guards."""
    number = PolicyLimits.model_json_schema()["properties"][field][bound]
    limits = parse_policy(f"limits: {{{field}: {number}}}").limits.for_guards()
    assert getattr(limits, field) == number


def test_no_key_of_the_full_example_is_at_its_default() -> None:
    """The example above is complete: it sets every top-level key to something else."""
    assert set(parse_policy(FULL).model_dump(exclude_defaults=True)) == set(Policy.model_fields)


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "---\n"])
def test_silence_is_the_default_policy(text: str) -> None:
    """An empty file is a valid policy: live, advising, with one builtin target."""
    policy = parse_policy(text)
    assert policy == Policy()
    assert policy.handoff.targets[policy.handoff.default_target].kind is TargetKind.BUILTIN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "# hello\nmode: sometimes\n",
            'line 2: mode: "sometimes" is not allowed; use one of: live, shadow.',
            id="a word that is not allowed",
        ),
        pytest.param(
            "handoff:\n  mod: auto\n",
            "line 2: handoff.mod: there is no such key. Did you mean mode? "
            "Known here: mode, minimum_severity, bases, targets.",
            id="a key that does not exist",
        ),
        pytest.param(
            "handoff:\n  targets:\n    red: {kind: builtin, url: x}\n",
            "line 3: handoff.targets.red.url: there is no such key. Known here: kind.",
            id="an unknown key of a target",
        ),
        pytest.param(
            "handoff:\n  targets:\n    red: {kind: webhook}\n",
            "line 3: handoff.targets.red.kind: this version cannot hand off to the kind webhook; "
            "use one of: builtin.",
            id="a kind that cannot be used yet",
        ),
        pytest.param(
            "handoff:\n  targets:\n    Red One: {kind: builtin}\n",
            "line 3: handoff.targets.Red One: the name is not allowed; it must be a name of "
            "lower-case letters, digits and hyphens that starts with a letter.",
            id="a name that is not allowed",
        ),
        pytest.param(
            "path_rules:\n  - paths: [a]\n",
            "line 2: path_rules[0].instructions: this key is required.",
            id="a key that is missing",
        ),
        pytest.param(
            "limits: {max_fix_tasks: 1000}",
            "line 1: limits.max_fix_tasks: 1000 is not allowed; it must be at most 100.",
            id="a number too high",
        ),
        pytest.param(
            "limits:\n  max_review_iterations: '5'",
            'line 2: limits.max_review_iterations: "5" is not allowed; it must be a whole number.',
            id="text instead of a number",
        ),
        pytest.param(
            "verify_command: make test",
            'line 1: verify_command: "make test" is not allowed; it must be a list.',
            id="text instead of a list",
        ),
        pytest.param(
            "reviewers: {security: off}",
            'line 1: reviewers.security: "off" is not allowed; it must be true or false.',
            id="off instead of false",
        ),
        pytest.param(
            "handoff:\n",
            "line 1: handoff: null is not allowed; it must be a mapping of keys.",
            id="a section with nothing in it",
        ),
        pytest.param(
            "escalate_to: '@octocat'",
            'line 1: escalate_to: "@octocat" is not allowed; it must be a login or '
            "organisation/team without @.",
            id="a mention instead of a login",
        ),
        pytest.param(
            'ignore_paths: ["a", "b\\nc"]',
            'line 1: ignore_paths[1]: "b\\nc" is not allowed; it must be one line of text '
            "without control characters.",
            id="a line break in a path",
        ),
        pytest.param(
            "- mode", "line 1: a policy is a mapping of keys, such as `mode: live`.", id="a list"
        ),
    ],
)
def test_says_line_key_and_what_is_allowed(text: str, message: str) -> None:
    """The message alone is enough to mend the file."""
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, ".github/mergeward.yml")
    assert str(caught.value) == f".github/mergeward.yml {message}"


def test_several_problems_come_in_the_order_of_the_file() -> None:
    """Up to five problems are listed by line, the rest are counted."""
    text = "".join(f"wrong{number}: 1\n" for number in range(7))
    with pytest.raises(PolicyError) as caught:
        parse_policy(text)
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0].rsplit(" ", 1)[1] for line in lines[:5]] == ["1", "2", "3", "4", "5"]
    assert lines[5:] == [".github/mergeward.yml: and 2 more."]


def test_the_file_is_quoted_harmlessly() -> None:
    """Long, multi-line and invisible text of the file appears shortened, on one line, visible."""
    with pytest.raises(PolicyError) as caught:
        parse_policy('mode: "' + "\u202ea\\nb" * 200 + '"')
    message = str(caught.value)
    assert len(message) < 250
    assert message.isprintable()


DEFAULT = Policy()
SHADOW = Policy(mode=Mode.SHADOW)


@pytest.mark.parametrize(
    ("text", "last_valid", "expected"),
    [
        pytest.param(None, None, EffectivePolicy(DEFAULT, PolicySource.DEFAULT), id="no file"),
        pytest.param(
            None, "mode: shadow", EffectivePolicy(DEFAULT, PolicySource.DEFAULT), id="file removed"
        ),
        pytest.param(
            "mode: shadow", None, EffectivePolicy(SHADOW, PolicySource.FILE), id="a valid file"
        ),
        pytest.param("", "mode: shadow", EffectivePolicy(DEFAULT, PolicySource.FILE), id="emptied"),
    ],
)
def test_the_file_holds(
    text: str | None, last_valid: str | None, expected: EffectivePolicy
) -> None:
    """A valid file holds; a removed one means the defaults, whatever was valid before."""
    assert effective_policy(text, last_valid) == expected


@pytest.mark.parametrize(
    ("last_valid", "policy", "source"),
    [
        pytest.param("mode: shadow", SHADOW, PolicySource.LAST_VALID, id="an earlier file"),
        pytest.param(None, DEFAULT, PolicySource.DEFAULT, id="never valid"),
        pytest.param("old_key: 1", DEFAULT, PolicySource.DEFAULT, id="valid for older versions"),
    ],
)
def test_an_invalid_file_never_holds(
    last_valid: str | None, policy: Policy, source: PolicySource
) -> None:
    """The last valid policy holds instead, else the default, and the problem is told."""
    effective = effective_policy("mode: [", last_valid)
    assert (effective.policy, effective.source) == (policy, source)
    assert effective.problem is not None
    assert "line 1" in effective.problem


def test_the_fingerprint_tells_policies_apart() -> None:
    """Equal policies share it, however they are written; a different one, or order, does not."""
    assert parse_policy("human_prs: advise").fingerprint == Policy().fingerprint
    assert parse_policy("human_prs: gate").fingerprint != Policy().fingerprint
    one = parse_policy("handoff: {targets: {a: {kind: builtin}, b: {kind: builtin}}}")
    other = parse_policy("handoff: {targets: {b: {kind: builtin}, a: {kind: builtin}}}")
    assert one.fingerprint != other.fingerprint
