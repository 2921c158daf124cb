"""How much a change deserves. Pure; the numbers are DESIGN §4, "Risk"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.domain.diff import FileChange
from app.domain.runs import Tier

MANY_FILES = 50
FEW_FILES = 20
TRIVIAL_LINES = 10
LITE_LINES = 100

_WORDS = frozenset(
    {
        "2fa", "acl", "acls", "auth", "authenticate", "authentication", "authenticator", "authn",
        "authorization", "authorize", "authorizer", "authz", "certificate", "certificates", "cert",
        "certs", "cookie", "cookies", "cors", "credential", "credentials", "crypto", "cryptography",
        "csrf", "decrypt", "decryption", "encrypt", "encryption", "firewall", "iam", "jwt", "keys",
        "keyring", "keystore", "kms", "login", "logout", "mfa", "oauth", "oidc", "otp",
        "passwd", "password", "passwords", "permission", "permissions", "policy", "privilege",
        "rbac", "role", "roles", "saml", "secret", "secrets", "security", "session", "sessions",
        "signature", "signing", "signin", "signup", "sso", "sudo", "sudoers", "token", "tokens",
        "totp", "vault", "webhook", "webhooks",
    }
)  # fmt: skip
"""Words of a path that name what guards something. Matched whole: `author.py` is not `auth`."""

_PLACES = re.compile(
    r"(?:^|/)(?:\.github/(?:workflows|actions)/|\.circleci/|\.buildkite/|\.gitlab-ci\.ya?ml$"
    r"|azure-pipelines\.ya?ml$|jenkinsfile$|\.travis\.yml$"
    r"|(?:[^/]*\.)?(?:docker|container)file(?:\.[^/]*)?$|(?:docker-)?compose[^/]*\.ya?ml$|codeowners$"
    r"|\.npmrc$|\.pypirc$|nginx[^/]*\.conf$)",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class RiskReason(StrEnum):
    """Which rule chose the tier."""

    MANY_FILES = "many_files"
    SENSITIVE_PATH = "sensitive_path"
    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


@dataclass(frozen=True, slots=True)
class RiskAssessment:
    """The tier with what it was chosen by. Lines are added plus removed, after filtering."""

    tier: Tier
    reason: RiskReason
    changed_lines: int
    files: int
    sensitive_paths: tuple[str, ...]


def assess(files: Sequence[FileChange]) -> RiskAssessment:
    """The tier of what is left of a change after filtering."""
    lines = sum(file.changed_lines for file in files)
    sensitive = tuple(file.path for file in files if _guards(file))
    tier, reason = _tier(len(files), lines, bool(sensitive))
    return RiskAssessment(tier, reason, lines, len(files), sensitive)


def risk_order(files: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """What guards something first, then the files that change most; equals as they came."""
    return tuple(sorted(files, key=lambda file: (not _guards(file), -file.changed_lines)))


def _guards(file: FileChange) -> bool:
    return is_sensitive(file.path) or (file.old_path is not None and is_sensitive(file.old_path))


def is_sensitive(path: str) -> bool:
    """Whether a whole word of the path names something that guards, or it is CI or an image."""
    words = {word.lower() for word in _BREAK.split(path) if word}
    words |= {word.rstrip("0123456789") for word in words}
    return not words.isdisjoint(_WORDS) or _PLACES.search(path) is not None


def _tier(files: int, lines: int, sensitive: bool) -> tuple[Tier, RiskReason]:
    if files > MANY_FILES:
        return Tier.FULL, RiskReason.MANY_FILES
    if sensitive:
        return Tier.FULL, RiskReason.SENSITIVE_PATH
    if files <= FEW_FILES and lines <= TRIVIAL_LINES:
        return Tier.TRIVIAL, RiskReason.SMALL
    if files <= FEW_FILES and lines <= LITE_LINES:
        return Tier.LITE, RiskReason.MEDIUM
    return Tier.FULL, RiskReason.LARGE
