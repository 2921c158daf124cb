"""`mergeward review` on repositories made for it, against the scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.review import ReviewRequest, run
from app.errors import AgentError, GitError
from app.sandbox.model import parse_scenario
from tests.cli.cli_stage import (
    DANGEROUS,
    DOUBTFUL,
    HARMLESS,
    KEY,
    Checkout,
    mergeward,
    scripted_model,
)
from tests.git.repos import git

ESCAPE = "\x1b"


def request(checkout: Checkout, **changes: Any) -> ReviewRequest:
    """A request for the checked out branch, as the command makes it by default."""
    fields = {
        "path": checkout.path,
        "base": None,
        "head": "HEAD",
        "output": "text",
        "fail_on": "critical",
    }
    return ReviewRequest(**{**fields, **changes})


def test_the_findings_are_told_as_text(checkout: Checkout, model_url: str) -> None:
    """By severity, each with path and line; then verdict, what was read, models and cost; the
    progress is elsewhere."""
    checkout.commit({"b.py": DOUBTFUL, "a.py": DANGEROUS, "uv.lock": "x\n"}, "Add two calls")
    result = mergeward(
        "review",
        variables={"MERGEWARD_MODEL_BASE_URL": model_url, "MERGEWARD_MODEL_API_KEY": KEY},
        cwd=checkout.path,
    )
    assert result.returncode == 1, result.stderr
    out = result.stdout
    critical = out.index("critical  a.py:3  A command goes through the shell  [security]")
    warning = out.index("warning  b.py:1  Certificate checks are off  [security]")
    assert critical < warning < out.index("Significant concerns: 1 critical, 1 warning.")
    assert "2 of 3 files read (trivial tier)." in out
    assert "Left out: uv.lock (lock_file)" in out
    assert "anthropic/claude-sonnet-4-6: " in out
    assert " tokens in, " in out
    assert "Reviewing 2 files (trivial tier) with general." in result.stderr
    assert "general done in" in result.stderr
    assert "  general: 2 calls, " in out
    assert "  coordinator: 2 calls, " in out
    assert "started" not in out


def test_the_findings_are_one_json_document(
    checkout: Checkout, model: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else is on stdout, and what the document says is what happened."""
    base = git("rev-parse", "main", cwd=checkout.path).decode().strip()
    head = checkout.commit({"a.py": DANGEROUS, "uv.lock": "x\n"})
    assert run(request(checkout, output="json")) == 1
    document = json.loads(capsys.readouterr().out)
    (finding,) = document["findings"]
    assert (finding["id"], finding["severity"], finding["path"]) == ("F1", "critical", "a.py")
    assert (finding["start_line"], finding["end_line"]) == (3, 3)
    assert (finding["origin"], finding["category"]) == ("original", "security")
    assert document["base"] == {"name": "main", "sha": base}
    assert document["head"] == {"name": "HEAD", "sha": head}
    assert (document["result"], document["exit_code"]) == ("findings", 1)
    assert (document["verdict"], document["tier"]) == ("significant_concerns", "trivial")
    assert document["coverage"] == {
        "full": True,
        "files": [
            {"path": "a.py", "state": "reviewed", "reason": ""},
            {"path": "uv.lock", "state": "skipped", "reason": "lock_file"},
        ],
    }
    assert document["reviewers"] == [{"name": "general", "status": "ok", "reason": ""}]
    assert document["usage"]["model_calls"] == 4
    assert float(document["usage"]["cost_usd"]) > 0


@pytest.mark.parametrize(
    ("text", "fail_on", "code"),
    [
        pytest.param(HARMLESS, "suggestion", 0, id="nothing found"),
        pytest.param(DANGEROUS, "critical", 1, id="critical, by default"),
        pytest.param(DANGEROUS, "suggestion", 1, id="critical is above suggestion"),
        pytest.param(DANGEROUS, "never", 0, id="critical, but never"),
        pytest.param(DOUBTFUL, "critical", 0, id="warning is below critical"),
        pytest.param(DOUBTFUL, "warning", 1, id="warning at its threshold"),
    ],
)
def test_the_exit_code_says_what_was_found(
    checkout: Checkout, model: pytest.MonkeyPatch, text: str, fail_on: str, code: int
) -> None:
    """0: nothing at or above the threshold, 1: something."""
    checkout.commit({"a.py": text})
    assert run(request(checkout, fail_on=fail_on)) == code


def test_an_empty_change_is_said_to_be(
    checkout: Checkout, model: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing to review is no failure, and no model is asked."""
    assert run(request(checkout)) == 0
    captured = capsys.readouterr()
    assert captured.out == "Nothing to review: HEAD changes nothing that is not in main.\n"


def test_a_change_of_noise_alone_is_said_to_be(
    checkout: Checkout, model: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was left out, and why; no model is asked."""
    checkout.commit({"uv.lock": "x\n"})
    assert run(request(checkout)) == 0
    assert capsys.readouterr().out == (
        "Nothing to review: nothing in this change is for a reviewer to read.\n"
        "Left out: uv.lock (lock_file)\n"
    )
    assert run(request(checkout, output="json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["result"], document["verdict"]) == ("nothing_to_review", None)
    assert document["usage"]["model_calls"] == 0


def test_without_a_key_one_sentence_says_what_was_looked_for(checkout: Checkout) -> None:
    """It names every variable that would do; nothing else is printed."""
    checkout.commit({"a.py": DANGEROUS})
    result = mergeward("review", str(checkout.path))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MERGEWARD_MODEL_BASE_URL"):
        assert variable in result.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"base": "nowhere"}, "no commit or branch 'nowhere'", id="base"),
        pytest.param({"head": "nowhere"}, "no commit or branch 'nowhere'", id="head"),
        pytest.param({"base": "--help"}, "no commit or branch '--help'", id="an option"),
        pytest.param({"path": Path("/nonexistent")}, "not a directory", id="no folder"),
        pytest.param({"path": Path("/")}, "not inside a git repository", id="no repository"),
    ],
)
def test_what_does_not_exist_is_named(
    checkout: Checkout, model: pytest.MonkeyPatch, changes: dict[str, Any], words: str
) -> None:
    """A clear sentence instead of a review of something else."""
    checkout.commit({"a.py": HARMLESS})
    with pytest.raises(GitError, match=words):
        run(request(checkout, **changes))


def test_a_repository_without_a_default_branch_asks_for_a_base(
    tmp_path: Path, model: pytest.MonkeyPatch
) -> None:
    """The error names the option."""
    checkout = Checkout.create(tmp_path / "odd", default="trunk")
    with pytest.raises(GitError, match="--base"):
        run(request(checkout))
    checkout.commit({"a.py": DANGEROUS})
    assert run(request(checkout, base="trunk")) == 1


def test_the_remote_says_what_the_default_branch_is(
    checkout: Checkout, model: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """origin/HEAD comes before a local main, which may lag behind or be somebody's own."""
    ahead = checkout.commit({"a.py": DANGEROUS})
    git("update-ref", "refs/remotes/origin/trunk", ahead, cwd=checkout.path)
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk", cwd=checkout.path)
    assert run(request(checkout)) == 0
    assert "nothing that is not in origin/HEAD" in capsys.readouterr().out


def test_uncommitted_changes_are_not_reviewed_and_said_to_be(
    checkout: Checkout, model: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line about a dirty worktree; a clean one, or another head, gets none."""
    checkout.commit({"a.py": HARMLESS})
    run(request(checkout))
    assert "Uncommitted" not in capsys.readouterr().err
    checkout.write({"a.py": DANGEROUS, "new.py": DANGEROUS})
    assert run(request(checkout)) == 0
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "Uncommitted" in x]
    assert line == "mergeward: Uncommitted changes (2 files) are not reviewed, only commits are."
    run(request(checkout, head="main"))
    assert "Uncommitted" not in capsys.readouterr().err


def test_the_policy_of_the_base_holds(
    checkout: Checkout, model: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A change can't take itself out of the review; what the base ignores is left out."""
    policy = "ignore_paths: ['*.py']\n"
    checkout.commit({".github/mergeward.yml": policy, "a.py": DANGEROUS})
    assert run(request(checkout)) == 1
    capsys.readouterr()
    git("checkout", "--quiet", "main", cwd=checkout.path)
    checkout.commit({".github/mergeward.yml": policy})
    git("checkout", "--quiet", "-b", "later", cwd=checkout.path)
    checkout.commit({"b.py": DANGEROUS})
    assert run(request(checkout)) == 0
    assert "Left out: b.py (policy)" in capsys.readouterr().out


def test_a_broken_policy_is_a_warning(
    checkout: Checkout, model: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default holds, and stderr says so with line and key."""
    git("checkout", "--quiet", "main", cwd=checkout.path)
    checkout.commit({".github/mergeward.yml": "mood: live\n"})
    git("checkout", "--quiet", "-b", "later", cwd=checkout.path)
    checkout.commit({"b.py": DANGEROUS})
    assert run(request(checkout)) == 1
    err = capsys.readouterr().err
    assert "the default policy holds. .github/mergeward.yml line 1: mood:" in err


PAINTED = {
    "id": "painted",
    "path": "*",
    "needle": "shell=True",
    "agents": ["general", "security", "code_quality"],
    "severity": "critical",
    "category": "security",
    "title": f"{ESCAPE}[2J{ESCAPE}[31mRed{ESCAPE}[0m \u202etitle",
    "body": f"See {ESCAPE}]8;;https://evil.example{ESCAPE}\\here{ESCAPE}]8;;{ESCAPE}\\\rover",
    "suggestion": f"run(['x'])  # {ESCAPE}[8mhidden\u202e",
}


@pytest.mark.parametrize("output", ["text", "json"])
def test_no_text_of_a_model_reaches_the_terminal_raw(
    checkout: Checkout,
    settled: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    output: str,
) -> None:
    """Nothing that moves the cursor, colours, or changes the direction of what stands there."""
    checkout.commit({"a.py": DANGEROUS})
    with scripted_model(parse_scenario({"description": "", "planted": [PAINTED]})) as url:
        settled.setenv("MERGEWARD_MODEL_BASE_URL", url)
        settled.setenv("MERGEWARD_MODEL_API_KEY", KEY)
        assert run(request(checkout, output=output)) == 1
    captured = capsys.readouterr()
    said = json.dumps(json.loads(captured.out)) if output == "json" else captured.out
    assert "Red" in said
    for bad in (ESCAPE, "\\u001b", "\u202e", "\\u202e", "\r", "\\r"):
        assert bad not in said + captured.err, repr(bad)


def failing(kind: str, agent: str = "*") -> dict[str, Any]:
    """A scenario in which an agent's calls always go wrong."""
    return {
        "description": "",
        "planted": [],
        "faults": [{"agent": agent, "kind": kind, "times": "always"}],
    }


@pytest.mark.parametrize("kind", ["auth", "nonsense"])
def test_a_model_that_fails_is_no_review(
    checkout: Checkout, settled: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """The error says what was used up; as JSON there is a document all the same."""
    checkout.commit({"a.py": DANGEROUS})
    with scripted_model(parse_scenario(failing(kind))) as url:
        settled.setenv("MERGEWARD_MODEL_BASE_URL", url)
        settled.setenv("MERGEWARD_MODEL_API_KEY", KEY)
        with pytest.raises(AgentError, match=r"not reviewed\. .* Used: \d+ model calls"):
            run(request(checkout, output="json"))
    document = json.loads(capsys.readouterr().out)
    assert (document["result"], document["exit_code"]) == ("failed", 2)
    assert "not reviewed" in document["error"]


def test_a_reviewer_that_fails_leaves_the_review_incomplete(
    checkout: Checkout, settled: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without findings that is exit code 2: nobody can say that the change is clean."""
    checkout.commit({"auth/login.py": HARMLESS})
    with scripted_model(parse_scenario(failing("nonsense", "security"))) as url:
        settled.setenv("MERGEWARD_MODEL_BASE_URL", url)
        settled.setenv("MERGEWARD_MODEL_API_KEY", KEY)
        assert run(request(checkout, fail_on="never")) == 2
    out = capsys.readouterr().out
    assert "Not completely reviewed: no findings so far." in out
    assert "The security reviewer: malformed." in out
    assert "Approved" not in out
