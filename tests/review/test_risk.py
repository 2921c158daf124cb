"""How much a change deserves (app/review/risk.py; DESIGN §4, "Risk")."""

from __future__ import annotations

import pytest

from app.domain.diff import FileChange, FileStatus
from app.domain.runs import Tier
from app.review.risk import RiskReason, assess, is_sensitive


def files(count: int, lines: int, path: str = "src/a{n}.py") -> list[FileChange]:
    """`count` files; the first has all changed lines, half of them removed."""
    added = lines - lines // 2
    first = FileChange(path.format(n=0), None, FileStatus.MODIFIED, added, lines // 2)
    rest = [FileChange(path.format(n=n), None, FileStatus.MODIFIED, 0, 0) for n in range(1, count)]
    return [first, *rest]


@pytest.mark.parametrize(
    ("count", "lines", "tier", "reason"),
    [
        (1, 0, Tier.TRIVIAL, RiskReason.SMALL),
        (1, 10, Tier.TRIVIAL, RiskReason.SMALL),
        (1, 11, Tier.LITE, RiskReason.MEDIUM),
        (20, 10, Tier.TRIVIAL, RiskReason.SMALL),
        (21, 10, Tier.FULL, RiskReason.LARGE),
        (20, 100, Tier.LITE, RiskReason.MEDIUM),
        (21, 100, Tier.FULL, RiskReason.LARGE),
        (1, 100, Tier.LITE, RiskReason.MEDIUM),
        (1, 101, Tier.FULL, RiskReason.LARGE),
        (50, 1, Tier.FULL, RiskReason.LARGE),
        (51, 1, Tier.FULL, RiskReason.MANY_FILES),
    ],
)
def test_the_boundaries_are_exact(count: int, lines: int, tier: Tier, reason: RiskReason) -> None:
    """10 and 100 lines, 20 and 50 files belong to the smaller side."""
    result = assess(files(count, lines))
    assert (result.tier, result.reason) == (tier, reason)
    assert (result.files, result.changed_lines) == (count, lines)


SENSITIVE = [
    "auth.py", "src/auth/x.py", "src/UserAuth.ts", "src/oauthToken.js", "OAuth2Client.java",
    "lib/JWTVerifier.go", "src/login_form.vue", "app/session-store.rb", "crypto/aes.c",
    "SECRET_KEYS.md", "src/permissions/__init__.py", "infra/iam.tf", "auth2/x.py",
    ".github/workflows/ci.yml", ".github/actions/x/action.yml", "Dockerfile", "api.Dockerfile",
    "Dockerfile.prod", "docker-compose.yml", "compose.prod.yaml", "Containerfile", "Jenkinsfile",
    ".gitlab-ci.yml", "CODEOWNERS", ".npmrc", "src/2fa/totp.py",
]  # fmt: skip
HARMLESS = [
    "author.py", "src/authors/list.py", "tokenizer.py", "detokenize.go", "secretary.md",
    "cryptic.txt", "sessional.py", "blogin.py", "keyboard.ts", "Miami.md", "src/parole.py",
    "docs/dockerfile-notes/x.md", "src/oauthless.py", "workflows/ci.yml", "signaturesque",
]  # fmt: skip


@pytest.mark.parametrize("path", SENSITIVE)
def test_whole_words_of_a_path_are_sensitive(path: str) -> None:
    """Parts by slashes, dots, dashes, underscores and camel case; CI and images by place."""
    assert is_sensitive(path)


@pytest.mark.parametrize("path", HARMLESS)
def test_words_inside_words_are_not(path: str) -> None:
    """`author.py` is not `auth`."""
    assert not is_sensitive(path)


def test_a_sensitive_path_makes_the_smallest_change_full() -> None:
    """Whatever the size, and the paths are named."""
    result = assess(files(2, 1, "src/auth/{n}.py"))
    assert (result.tier, result.reason) == (Tier.FULL, RiskReason.SENSITIVE_PATH)
    assert result.sensitive_paths == ("src/auth/0.py", "src/auth/1.py")


def test_the_old_name_counts_like_the_new_one() -> None:
    """Moving code out of a sensitive place is a change of that place."""
    moved = FileChange("src/misc.py", "src/auth/login.py", FileStatus.RENAMED, 1, 1)
    result = assess([moved])
    assert (result.tier, result.sensitive_paths) == (Tier.FULL, ("src/misc.py",))


def test_nothing_left_is_the_smallest_tier() -> None:
    """An empty change is not an error."""
    assert assess([]).tier is Tier.TRIVIAL
