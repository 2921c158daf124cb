"""The policy of a repository: what `.github/mergeward.yml` may say, and what holds without it.

Every key's description is written once, here; the JSON Schema that editors complete by and
`docs/policy.md` are made from it. `app.policy.load` parses, with errors that name line and key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from app.domain.runs import SHIPPED_AGENTS, AgentName
from loop_guards import HandoffMode, Limits, Severity

POLICY_PATH = ".github/mergeward.yml"
"""Where the policy is, on the default branch; it is read from nowhere else."""

NEVER_SEND = (
    ".env*", "!.env.example", "!.env.sample", "!.env.template",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "!id_*.pub",
    ".netrc", ".pgpass", ".npmrc", ".pypirc", ".htpasswd", ".git-credentials",
    "**/.aws/credentials", "**/.docker/config.json", "**/.kube/config",
    "*.tfstate", "*.tfstate.*", "*.tfvars", "!example.tfvars",
    "service-account*.json", "credentials.json", "secrets.yml", "secrets.yaml",
)  # fmt: skip
"""Paths withheld from every model unless a policy takes one back; see `app.policy.globs`."""


_LINE = r"^[^\x00-\x1f\x7f]+$"
_ARGUMENT = r"^[^\x00]+$"
_LOGIN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,98}(?:\[bot\])?$"
_ESCALATEE = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,98}(?:/[A-Za-z0-9._-]{1,100})?$"
_MODEL = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}$"
_TARGET = r"^[a-z][a-z0-9-]{0,31}$"
_AGENT = r"^[a-z][a-z0-9_]{0,39}$"

PATTERN_WORDS = {
    _LINE: "one line of text without control characters",
    _ARGUMENT: "text without NUL",
    _LOGIN: "a login without @, such as octocat or renovate[bot]",
    _ESCALATEE: "a login or organisation/team without @",
    _MODEL: "a model's name, such as claude-sonnet-4-6",
    _TARGET: "a name of lower-case letters, digits and hyphens that starts with a letter",
    _AGENT: "a name of lower-case letters, digits and underscores that starts with a letter",
}
"""What each pattern of the schema wants, in words for the person who did not meet it."""

Glob = Annotated[str, StringConstraints(pattern=_LINE, max_length=300)]
Branch = Annotated[str, StringConstraints(pattern=_LINE, max_length=250)]
Argument = Annotated[str, StringConstraints(pattern=_ARGUMENT, max_length=2000)]
Login = Annotated[str, StringConstraints(pattern=_LOGIN)]
Escalatee = Annotated[str, StringConstraints(pattern=_ESCALATEE)]
ModelName = Annotated[str, StringConstraints(pattern=_MODEL)]
OtherAgent = Annotated[str, StringConstraints(pattern=_AGENT)]
TargetName = Annotated[str, StringConstraints(pattern=_TARGET)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=8000)]


class Section(BaseModel):
    """One mapping of the policy: frozen, and refusing keys and types it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )


class Mode(StrEnum):
    """`live` acts on GitHub; `shadow` runs and stores everything and writes nothing there."""

    LIVE = "live"
    SHADOW = "shadow"


class HumanPrs(StrEnum):
    """What a verdict on a person's pull request does."""

    ADVISE = "advise"
    GATE = "gate"


class TargetKind(StrEnum):
    """Who fixes. What each kind needs is DESIGN §3.2; `AVAILABLE_KINDS` says which can be used."""

    BUILTIN = "builtin"
    WEBHOOK = "webhook"
    COPILOT = "copilot"
    MENTION = "mention"


AVAILABLE_KINDS = (TargetKind.BUILTIN,)
"""The kinds this version can dispatch to. A policy that names another is refused, not ignored."""


class Target(Section):
    """One named way to get a fix task done."""

    kind: TargetKind = Field(json_schema_extra={"enum": [kind.value for kind in AVAILABLE_KINDS]})
    """Who does the work. `builtin` is the fixer that comes with Mergeward."""

    @field_validator("kind")
    @classmethod
    def _available(cls, kind: TargetKind) -> TargetKind:
        if kind not in AVAILABLE_KINDS:
            allowed = ", ".join(AVAILABLE_KINDS)
            msg = f"this version cannot hand off to the kind {kind.value}; use one of: {allowed}"
            raise ValueError(msg)
        return kind


def _default_targets() -> Mapping[str, Target]:
    return {"builtin": Target(kind=TargetKind.BUILTIN)}


class Handoff(Section):
    """Which findings become fix tasks when a pull request is merged, and who fixes them."""

    mode: HandoffMode = HandoffMode.AUTO
    """`auto`: a merge hands findings off by itself. `manual`: only a person's order does. `off`: as
    `manual`, and the reason shown for each finding says that handoff is off here."""
    minimum_severity: Severity = Severity.WARNING
    """Findings below this severity are never handed off by themselves."""
    bases: tuple[Branch, ...] = Field(default=(), max_length=50)
    """Branches besides the default branch whose merges are handed off, by their exact names."""
    targets: Mapping[TargetName, Target] = Field(
        default_factory=_default_targets, min_length=1, max_length=10
    )
    """Who fixes, by name. The first entry is asked unless a person names another."""

    @property
    def default_target(self) -> str:
        """The name of the target that gets a task for which nobody chose one."""
        return next(iter(self.targets))


class Bots(Section):
    """Corrections to who counts as a bot: told by account type, known names and trailers."""

    add: tuple[Login, ...] = Field(default=(), max_length=200)
    """Logins whose pull requests are treated as a bot's."""
    exempt: tuple[Login, ...] = Field(default=(), max_length=200)
    """Logins whose pull requests are treated as a person's, whatever the signals say."""


class Reviewers(Section):
    """Reviewers by name: `false` switches one off. Which ones a review uses depends on its size."""

    general: bool = True
    """The one reviewer of trivial changes."""
    code_quality: bool = True
    """Correctness, error handling, tests, readability."""
    security: bool = True
    """Injection, access control, secrets, unsafe defaults."""
    performance: bool = True
    """Complexity, queries, memory, blocking calls."""
    documentation: bool = True
    """Documentation that the change makes wrong or leaves out."""
    release: bool = True
    """Versions, changelogs, migrations; only when release files change."""
    compliance: bool = True
    """Rules the organisation has written down."""
    agents_md: bool = True
    """Whether AGENTS.md still tells the truth."""
    others: Mapping[OtherAgent, bool] = Field(default_factory=dict, max_length=50)
    """Reviewers that the operator's plugins add, by name."""

    def allows(self, agent: AgentName) -> bool:
        """Whether `agent` may take part. The coordinator and the fixer always may."""
        if agent in SHIPPED_AGENTS:
            return bool(getattr(self, agent.value, True))
        return self.others.get(agent.value, True)


class Models(Section):
    """A model for one agent instead of the operator's choice, by the name its provider gives it."""

    coordinator: ModelName | None = None
    """The one that judges what the reviewers found."""
    general: ModelName | None = None
    """The reviewer of trivial changes."""
    code_quality: ModelName | None = None
    """The code quality reviewer."""
    security: ModelName | None = None
    """The security reviewer."""
    performance: ModelName | None = None
    """The performance reviewer."""
    documentation: ModelName | None = None
    """The documentation reviewer."""
    release: ModelName | None = None
    """The release reviewer."""
    compliance: ModelName | None = None
    """The compliance reviewer."""
    agents_md: ModelName | None = None
    """The AGENTS.md reviewer."""
    fixer: ModelName | None = None
    """The builtin fixer."""
    others: Mapping[OtherAgent, ModelName] = Field(default_factory=dict, max_length=50)
    """Models of reviewers that the operator's plugins add, by the reviewer's name."""

    def of(self, agent: AgentName) -> str | None:
        """The model this policy wants for `agent`; None: whatever routing says."""
        if agent not in SHIPPED_AGENTS:
            return self.others.get(agent.value)
        model: str | None = getattr(self, agent.value)
        return model


class PathRule(Section):
    """Instructions for a part of the repository."""

    paths: tuple[Glob, ...] = Field(min_length=1, max_length=100)
    """The paths it is about."""
    instructions: Text
    """What reviewers should know or look for there."""


_SHIPPED = Limits()


class Budget(Section):
    """What a source pull request with all its fixes may spend before it is escalated."""

    input_tokens: int = Field(_SHIPPED.budget_input_tokens, ge=10_000, le=1_000_000_000)
    """Uncached input tokens."""
    usd: float = Field(_SHIPPED.budget_micro_dollars / 1_000_000, ge=0.01, le=100_000)
    """US dollars, by the published prices of the models."""
    model_minutes: int = Field(_SHIPPED.budget_model_seconds // 60, ge=1, le=100_000)
    """Minutes of model time, summed over everything that runs side by side."""


class SpendCaps(Section):
    """What model calls for this repository may cost. A review is not begun when it might cost more
    than is left, and from 80 % on it runs on cheaper models."""

    day_usd: float | None = Field(None, ge=0, le=1_000_000)
    """US dollars a day (of UTC)."""
    month_usd: float | None = Field(None, ge=0, le=1_000_000)
    """US dollars a month (of UTC)."""


class PolicyLimits(Section):
    """The numbers that bound what machines do."""

    max_review_iterations: int = Field(_SHIPPED.max_review_iterations, ge=1, le=20)
    """Review rounds of one fix task before a human is asked."""
    max_fix_tasks: int = Field(_SHIPPED.max_fix_tasks, ge=0, le=100)
    """Fix tasks that one merge creates by itself."""
    max_task_files: int = Field(_SHIPPED.max_task_files, ge=1, le=20)
    """Files that one fix task may touch."""
    path_tasks: int = Field(_SHIPPED.path_tasks, ge=1, le=50)
    """Fix tasks that merges create by themselves for one file of one branch within seven days."""
    pingpong_cap: int = Field(_SHIPPED.pingpong_cap, ge=1, le=10)
    """Rounds in a row that machines may cause on one pull request without an act of a person."""
    max_model_runs: int = Field(_SHIPPED.max_model_runs, ge=0, le=100_000)
    """Model runs (sessions of an agent) that a source pull request with all its fixes may use
    before a human is asked; `0` cuts nothing. Asked before each round and turn of a fix: one that
    has begun goes on to its end, so the last ones may go over it. Each resume adds to it as to the
    budget."""
    budget: Budget = Budget()
    """What one lineage may spend."""

    def for_guards(self) -> Limits:
        """The same numbers as the guards take them; the rest keep their shipped values."""
        return Limits(
            max_review_iterations=self.max_review_iterations,
            max_fix_tasks=self.max_fix_tasks,
            max_task_files=self.max_task_files,
            path_tasks=self.path_tasks,
            pingpong_cap=self.pingpong_cap,
            max_model_runs=self.max_model_runs,
            budget_input_tokens=self.budget.input_tokens,
            budget_micro_dollars=round(self.budget.usd * 1_000_000),
            budget_model_seconds=self.budget.model_minutes * 60,
        )


class Policy(Section):
    """What `.github/mergeward.yml` may say. An empty file is a valid policy."""

    mode: Mode = Mode.LIVE
    """`live`: reviews are published. `shadow`: everything runs and is stored, nothing is written to
    GitHub, and nothing is handed off."""
    human_prs: HumanPrs = HumanPrs.ADVISE
    """What a verdict on a person's pull request does. `advise`: a comment review, and a check that
    blocks nothing. `gate`: it approves or requests changes, and the check passes only once the
    whole head was reviewed."""
    handoff: Handoff = Handoff()
    """Which findings become fix tasks at merge."""
    limits: PolicyLimits = PolicyLimits()
    """What is bounded, and by how much."""
    spend: SpendCaps = SpendCaps()
    """What models may cost, by day and month."""
    escalate_to: Escalatee | None = None
    """The login or `organisation/team` that an escalation mentions; nobody else is mentioned."""
    machine_accounts: tuple[Login, ...] = Field(default=(), max_length=200)
    """Accounts of type User that a machine drives: their acts never count as a person's."""
    bots: Bots = Bots()
    """Who else is a bot, and who is not."""
    reviewers: Reviewers = Reviewers()
    """Which reviewers may take part."""
    models: Models = Models()
    """Models by agent."""
    instructions: Text | None = None
    """What every reviewer should know about this repository."""
    path_rules: tuple[PathRule, ...] = Field(default=(), max_length=100)
    """More instructions, for parts of the repository."""
    ignore_paths: tuple[Glob, ...] = Field(default=(), max_length=500)
    """Paths that are not reviewed, as in `.gitignore`. The review says what was left out."""
    never_send: tuple[Glob, ...] = Field(default=(), max_length=500)
    """Paths whose contents no model may see, besides the built-in list (keys, `.env*`, `*.pem`, …).
    `!` takes a path back, also one of the built-in list."""
    verify_command: tuple[Argument, ...] = Field(default=(), max_length=64)
    """Program and arguments, as a list and without a shell, that the fixer runs in its checkout. It
    pushes nothing while this fails. Empty: no check is run."""

    @property
    def withheld_globs(self) -> tuple[str, ...]:
        """Everything that is withheld from models: the built-in list, then this policy's."""
        return NEVER_SEND + self.never_send

    @property
    def fingerprint(self) -> str:
        """64 hex digits that are equal for two policies exactly when they say the same.

        Not equal across versions of Mergeward that know different keys.
        """
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
