"""Every error Mergeward raises on purpose, as one tree that says who must act.

MergewardError
├── ConfigurationError      the operator: a setting is missing or wrong
│   ├── NoModelConfigured   no provider of models is named
│   └── PluginError         a plugin cannot be used, or two of them contradict each other
├── UserError               the person who asked: bad input; the message is shown to them
│   └── PolicyError         the repository's `.github/mergeward.yml` cannot be used
├── ForgeError              GitHub answered something we cannot go on with
│   ├── ForgeNotFound       404: gone, or not ours to see
│   ├── ForgeForbidden      403: a permission is missing (named in the message)
│   ├── ForgeUnauthorized   401: the token or key is no longer valid
│   ├── ForgeRejected       409/422: GitHub refuses this request; repeating it changes nothing
│   ├── ForgeRateLimited    a limit is spent; `retry_after` says for how long
│   │   └── ForgePaced      our own pace, which keeps below GitHub's limits
│   └── ForgeUnavailable    5xx or no answer; the request may be repeated after looking
├── GitError                git failed; the message holds its own words, never a token
├── AgentError              an agent's run cannot give a result
│   └── ModelsUnavailable   no model can be reached; a pause may cure it
└── JobError                the job ledger
    ├── LeaseLost           another worker owns the job now; stop without writing
    └── JobCancelled        the job was superseded or stopped while it ran
"""

from __future__ import annotations


class MergewardError(Exception):
    """Root of the tree. `str(error)` is one sentence that names the thing and the remedy."""

    retry_after: float | None = None
    """Seconds to wait before the same step may be tried again; None: retrying is pointless."""


class ConfigurationError(MergewardError):
    """A setting is missing or wrong. The message names the variable and what to put there."""


class NoModelConfigured(ConfigurationError):
    """No provider of models can be reached. The message names the variables that change that."""


class PluginError(ConfigurationError):
    """A plugin cannot be used. The message names the plugin, and what to do about it."""


class UserError(MergewardError):
    """The person who asked gave something unusable. The message is shown to them as it is."""


class PolicyError(UserError):
    """The policy file cannot be used. The message names line and key."""


class ForgeError(MergewardError):
    """GitHub answered something we cannot go on with."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ForgeNotFound(ForgeError):
    """404: the thing is gone, or this installation may not see it."""


class ForgeForbidden(ForgeError):
    """403: the installation lacks a permission, which the message names."""


class ForgeUnauthorized(ForgeError):
    """401: the token or the App's key is not valid (any more)."""


class ForgeRejected(ForgeError):
    """409 or 422: the request is refused for what it says; repeating it changes nothing."""


class ForgeRateLimited(ForgeError):
    """A primary or secondary limit is spent."""

    def __init__(self, message: str, *, retry_after: float, status: int | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after


class ForgePaced(ForgeRateLimited):
    """Nothing was asked of GitHub: another request now would come too close to its limits."""


class ForgeUnavailable(ForgeError):
    """A 5xx or no answer at all: the effect may or may not have happened."""

    retry_after = 5.0


class GitError(MergewardError):
    """A git command failed. The message holds git's own words with every secret removed."""

    retry_after = 5.0


class AgentError(MergewardError):
    """An agent's run gave no usable result."""


class ModelsUnavailable(AgentError):
    """No model of any chain could be asked, for reasons that a pause may cure."""


class JobError(MergewardError):
    """The job ledger."""


class LeaseLost(JobError):
    """Another worker owns the job now: stop, and write nothing more."""


class JobCancelled(JobError):
    """The job was superseded or stopped while it ran."""
