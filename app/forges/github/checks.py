"""Publishing a check run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.domain.effects import CheckReceipt, SetCheckRun
from app.domain.forge import PublishedCheck
from app.domain.pull_request import RepoRef
from app.errors import ForgeNotFound, ForgeUnavailable
from app.forges.github import parse
from app.forges.github.client import Json, Request, object_of, of_repo
from app.forges.github.limits import annotation_chunks, check_text, short_line
from app.forges.github.reads import GitHubReads

Outgoing = Callable[[str], str]


class CheckPublisher:
    """Makes one check run look as an effect says: found, else created; then updated."""

    def __init__(self, github: GitHubReads, outgoing: Outgoing) -> None:
        self._github = github
        self._outgoing = outgoing

    async def ensure(
        self, repo: RepoRef, check: SetCheckRun, maybe_published: bool
    ) -> CheckReceipt:
        """See `ForgeWrites.ensure_check_run`.

        With a known id and `maybe_published` False the run is taken to show no annotations yet.
        """
        check = self._spoken(check)
        found = await self._known(repo, check, maybe_published)
        if found is not None:
            try:
                return await self._update(repo, check, found)
            except ForgeNotFound:
                found = None
        return await self._create(repo, check)

    async def _known(
        self, repo: RepoRef, check: SetCheckRun, maybe_published: bool
    ) -> PublishedCheck | None:
        if check.check_run_id is None:
            return await self._find(repo, check) if maybe_published else None
        if maybe_published and check.annotations:
            target = of_repo(repo, "/check-runs/{}", check.check_run_id)
            try:
                answer = await self._github.call(repo, Request("GET", target))
            except ForgeNotFound:
                return None
            return parse.check(object_of(answer))
        sha, external = check.head_sha, check.external_id
        return PublishedCheck(check.check_run_id, check.name, sha, external, "", None)

    async def _find(self, repo: RepoRef, check: SetCheckRun) -> PublishedCheck | None:
        wanted = check.name, check.external_id
        runs = await self._github.our_checks(repo, check.head_sha)
        return next((run for run in runs if (run.name, run.external_id) == wanted), None)

    async def _create(self, repo: RepoRef, check: SetCheckRun) -> CheckReceipt:
        chunks = annotation_chunks(check, already=0)
        body = self._body(check, chunks[0] if chunks else [])
        body |= {"name": check.name, "head_sha": check.head_sha}
        request = Request("POST", of_repo(repo, "/check-runs"), body)
        try:
            answer = object_of(await self._github.call(repo, request))
        except ForgeUnavailable:
            found = await self._find(repo, check)
            if found is None:
                raise
            return await self._update(repo, check, found)
        run_id = int(parse.need(answer, "id"))
        await self._append(repo, run_id, check, chunks[1:])
        return CheckReceipt(run_id)

    async def _update(
        self, repo: RepoRef, check: SetCheckRun, found: PublishedCheck
    ) -> CheckReceipt:
        chunks = annotation_chunks(check, already=found.annotations)
        body = self._body(check, chunks[0] if chunks else [])
        await self._patch(repo, found.id, body)
        await self._append(repo, found.id, check, chunks[1:])
        return CheckReceipt(found.id)

    async def _append(
        self, repo: RepoRef, run_id: int, check: SetCheckRun, chunks: list[list[Json]]
    ) -> None:
        for chunk in chunks:
            await self._patch(repo, run_id, {"output": self._output(check, chunk)})

    async def _patch(self, repo: RepoRef, run_id: int, body: Json) -> None:
        target = of_repo(repo, "/check-runs/{}", run_id)
        await self._github.call(repo, Request("PATCH", target, body))

    def _body(self, check: SetCheckRun, annotations: list[Json]) -> Json:
        body: Json = {
            "external_id": check.external_id,
            "status": check.status.value,
            "output": self._output(check, annotations),
            "actions": [
                {"label": a.label, "description": a.description, "identifier": a.identifier}
                for a in check.actions
            ],
        }
        if check.conclusion is not None:
            body["conclusion"] = check.conclusion.value
        if check.details_url is not None:
            body["details_url"] = check.details_url
        return body

    @staticmethod
    def _output(check: SetCheckRun, annotations: list[Json]) -> Json:
        output: Json = {
            "title": short_line(check.title),
            "summary": check_text(check.summary),
            "annotations": annotations,
        }
        if check.text:
            output["text"] = check_text(check.text)
        return output

    def _spoken(self, check: SetCheckRun) -> SetCheckRun:
        """The check with every text as it may leave."""
        said = self._outgoing
        annotations = (
            replace(item, message=said(item.message), title=said(item.title))
            for item in check.annotations
        )
        return replace(
            check,
            title=said(check.title),
            summary=said(check.summary),
            text=said(check.text),
            annotations=tuple(annotations),
        )
