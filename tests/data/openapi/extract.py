"""Cut the parts that the GitHub double answers out of GitHub's OpenAPI description.

    npm pack @octokit/openapi@23.0.2
    tar xzf octokit-openapi-23.0.2.tgz package/generated/api.github.com.json
    python tests/data/openapi/extract.py package/generated/api.github.com.json

Writes `github.json` beside this file: the operations below with their responses and every
component these need, without descriptions and examples. Nothing else is changed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

REPO = "/repos/{owner}/{repo}"
PULL = f"{REPO}/pulls/{{pull_number}}"
REVIEW = f"{PULL}/reviews/{{review_id}}"
ISSUE = f"{REPO}/issues/{{issue_number}}"
OPERATIONS: dict[str, tuple[str, ...]] = {
    "/app": ("get",),
    "/app/installations": ("get",),
    "/app/installations/{installation_id}": ("get",),
    "/app/installations/{installation_id}/access_tokens": ("post",),
    "/app/hook/deliveries": ("get",),
    "/app/hook/deliveries/{delivery_id}": ("get",),
    "/app/hook/deliveries/{delivery_id}/attempts": ("post",),
    "/installation/repositories": ("get",),
    "/installation/token": ("delete",),
    "/rate_limit": ("get",),
    "/users/{username}": ("get",),
    f"{REPO}/installation": ("get",),
    REPO: ("get",),
    f"{REPO}/collaborators/{{username}}/permission": ("get",),
    f"{REPO}/commits/{{ref}}": ("get",),
    f"{REPO}/commits/{{ref}}/check-runs": ("get",),
    f"{REPO}/commits/{{commit_sha}}/pulls": ("get",),
    f"{REPO}/git/ref/{{ref}}": ("get",),
    f"{REPO}/git/refs/{{ref}}": ("delete",),
    f"{REPO}/pulls": ("get", "post"),
    PULL: ("get", "patch"),
    f"{PULL}/files": ("get",),
    f"{PULL}/commits": ("get",),
    f"{PULL}/merge": ("get", "put"),
    f"{PULL}/reviews": ("get", "post"),
    REVIEW: ("get", "put", "delete"),
    f"{REVIEW}/events": ("post",),
    f"{REVIEW}/dismissals": ("put",),
    f"{REVIEW}/comments": ("get",),
    f"{PULL}/comments": ("get", "post"),
    f"{PULL}/comments/{{comment_id}}/replies": ("post",),
    f"{REPO}/pulls/comments/{{comment_id}}": ("get", "patch", "delete"),
    f"{REPO}/pulls/comments/{{comment_id}}/reactions": ("get", "post"),
    f"{ISSUE}/comments": ("get", "post"),
    f"{REPO}/issues/comments/{{comment_id}}": ("get", "patch", "delete"),
    f"{REPO}/issues/comments/{{comment_id}}/reactions": ("get", "post"),
    f"{ISSUE}/labels": ("get", "post"),
    f"{ISSUE}/labels/{{name}}": ("delete",),
    f"{REPO}/check-runs": ("post",),
    f"{REPO}/check-runs/{{check_run_id}}": ("get", "patch"),
    f"{REPO}/check-runs/{{check_run_id}}/annotations": ("get",),
    f"{REPO}/check-runs/{{check_run_id}}/rerequest": ("post",),
}
DROPPED = frozenset({"description", "example", "examples", "externalDocs", "summary", "title"})


def trimmed(value: Any, *, names: bool = False) -> Any:
    """Without prose; `names` marks an object whose keys are member names, all kept."""
    if isinstance(value, list):
        return [trimmed(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: trimmed(inner, names=key == "properties" and not names)
        for key, inner in value.items()
        if names or (key not in DROPPED and not key.startswith("x-"))
    }


def references(value: Any) -> set[str]:
    """Every `$ref` inside."""
    if isinstance(value, list):
        return set().union(*map(references, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    found = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return found.union(*map(references, value.values()))


def component(source: dict[str, Any], reference: str) -> tuple[str, str, Any]:
    _, kind, name = reference.removeprefix("#/").split("/")
    return kind, name, source["components"][kind][name]


def extract(source: dict[str, Any]) -> dict[str, Any]:
    """The trimmed document."""
    paths = {
        path: {
            method: {"responses": trimmed(source["paths"][path][method]["responses"])}
            for method in methods
        }
        for path, methods in OPERATIONS.items()
    }
    components: dict[str, dict[str, Any]] = {}
    waiting = references(paths)
    while waiting:
        kind, name, body = component(source, waiting.pop())
        if name in components.setdefault(kind, {}):
            continue
        components[kind][name] = trimmed(body)
        waiting |= references(components[kind][name])
    info = {"version": source["info"]["version"], "license": source["info"]["license"]}
    ordered = {kind: dict(sorted(items.items())) for kind, items in sorted(components.items())}
    return {"openapi": source["openapi"], "info": info, "paths": paths, "components": ordered}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="generated/api.github.com.json of the package")
    document = extract(json.loads(parser.parse_args().source.read_text(encoding="utf-8")))
    target = Path(__file__).with_name("github.json")
    target.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
