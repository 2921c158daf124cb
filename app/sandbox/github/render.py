"""GitHub's JSON for accounts, repositories, Apps, installations and small things."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.sandbox.github.gitstore import CommitFacts
from app.sandbox.github.identity import Token
from app.sandbox.github.state import (
    Account,
    App,
    Installation,
    IssueComment,
    Kind,
    Label,
    PullRequest,
    Reaction,
    Repository,
)
from app.sandbox.github.world import World, node_id

Json = dict[str, Any]

_USER_URLS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}
_REPOSITORY_URLS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}
_ROLES = {"admin": "OWNER", "write": "COLLABORATOR", "read": "CONTRIBUTOR", "none": "NONE"}


def stamp(at: datetime | None) -> str | None:
    """Whole seconds with Z, the only form GitHub's clients parse."""
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Renderer:
    """Turns state into API JSON; pure apart from reading `world`."""

    url: str
    world: World

    def repo_url(self, repository: Repository) -> str:
        return f"{self.url}/repos/{repository.full_name}"

    def html_url(self, pull: PullRequest) -> str:
        return f"{self.url}/{pull.repository.full_name}/pull/{pull.number}"

    def user(self, account: Account) -> Json:
        """The simple user."""
        url = f"{self.url}/users/{account.login}"
        page = account.login
        if account.kind is Kind.BOT:
            page = f"apps/{account.graphql_login}"
        return {
            "login": account.login,
            "id": account.id,
            "node_id": node_id("BOT" if account.kind is Kind.BOT else "U", account.id),
            "avatar_url": f"{self.url}/_avatars/{account.id}",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self.url}/{page}",
            **{name: url + suffix for name, suffix in _USER_URLS.items()},
            "type": account.kind.value,
            "user_view_type": "public",
            "site_admin": False,
        }

    def maybe_user(self, account: Account | None) -> Json | None:
        return None if account is None else self.user(account)

    def association(self, repository: Repository, account: Account) -> str:
        """`author_association`: Apps are NONE, whatever they may do."""
        if account.kind is Kind.BOT:
            return "NONE"
        return _ROLES[repository.level_of(account)]

    def repository(self, repository: Repository) -> Json:
        """The full repository; `parent` for forks is not part of it."""
        api = self.repo_url(repository)
        page = f"{self.url}/{repository.full_name}"
        open_pulls = sum(pull.is_open for pull in repository.pulls.values())
        counts = ("forks", "forks_count", "stargazers_count", "watchers", "watchers_count")
        return {
            "id": repository.id,
            "node_id": node_id("R", repository.id),
            "name": repository.name,
            "full_name": repository.full_name,
            "owner": self.user(repository.owner),
            "private": repository.private,
            "visibility": "private" if repository.private else "public",
            "html_url": page,
            "description": None,
            "fork": repository.parent is not None,
            "url": api,
            **{name: api + suffix for name, suffix in _REPOSITORY_URLS.items()},
            "git_url": f"git://{self.url.partition('://')[2]}/{repository.full_name}.git",
            "ssh_url": f"git@sandbox:{repository.full_name}.git",
            "clone_url": f"{page}.git",
            "svn_url": page,
            "mirror_url": None,
            "homepage": None,
            "language": None,
            "license": None,
            "topics": [],
            **dict.fromkeys(counts, 0),
            "network_count": 0,
            "subscribers_count": 0,
            "size": 0,
            "default_branch": repository.default_branch,
            "open_issues": open_pulls,
            "open_issues_count": open_pulls,
            **self._features(repository),
            "pushed_at": stamp(repository.pushed_at),
            "created_at": stamp(repository.created_at),
            "updated_at": stamp(repository.pushed_at),
        }

    def _features(self, repository: Repository) -> Json:
        return {
            "is_template": False,
            "has_issues": True,
            "has_projects": False,
            "has_wiki": False,
            "has_pages": False,
            "has_discussions": False,
            "has_downloads": False,
            "archived": repository.archived,
            "disabled": False,
            "allow_forking": True,
            "allow_merge_commit": True,
            "allow_squash_merge": True,
            "allow_rebase_merge": False,
            "web_commit_signoff_required": False,
        }

    def app(self, app: App) -> Json:
        """The integration."""
        return {
            "id": app.id,
            "slug": app.slug,
            "client_id": app.client_id,
            "node_id": node_id("A", app.id),
            "owner": self.user(app.owner),
            "name": app.name,
            "description": None,
            "external_url": self.url,
            "html_url": f"{self.url}/apps/{app.slug}",
            "created_at": stamp(app.created_at),
            "updated_at": stamp(app.created_at),
            "permissions": dict(app.permissions),
            "events": list(app.events),
            "installations_count": sum(i.app is app for i in self.world.installations.values()),
        }

    def installation(self, installation: Installation) -> Json:
        url = f"{self.url}/app/installations/{installation.id}"
        account = installation.account
        everything = installation.repositories is None
        return {
            "id": installation.id,
            "client_id": installation.app.client_id,
            "account": self.user(account),
            "repository_selection": "all" if everything else "selected",
            "access_tokens_url": f"{url}/access_tokens",
            "repositories_url": f"{self.url}/installation/repositories",
            "html_url": f"{self.url}/settings/installations/{installation.id}",
            "app_id": installation.app.id,
            "app_slug": installation.app.slug,
            "target_id": account.id,
            "target_type": account.kind.value,
            "permissions": dict(installation.permissions),
            "events": list(installation.app.events),
            "created_at": stamp(installation.created_at),
            "updated_at": stamp(installation.created_at),
            "single_file_name": None,
            "has_multiple_single_files": False,
            "single_file_paths": [],
            "suspended_by": self.user(account) if installation.suspended_at else None,
            "suspended_at": stamp(installation.suspended_at),
        }

    def token(self, token: Token) -> Json:
        """The answer to minting."""
        body: Json = {
            "token": token.value,
            "expires_at": stamp(token.expires_at),
            "permissions": dict(token.permissions),
            "repository_selection": "all" if token.repositories is None else "selected",
        }
        if token.repositories is not None:
            covered = self.world.covered(token.installation)
            chosen = [r for r in covered if r.id in token.repositories]
            body["repositories"] = [self.repository(r) for r in chosen]
        return body

    def label(self, repository: Repository, label: Label) -> Json:
        return {
            "id": label.id,
            "node_id": node_id("LA", label.id),
            "url": f"{self.repo_url(repository)}/labels/{label.name}",
            "name": label.name,
            "color": label.color,
            "default": False,
            "description": label.description,
            "archived_at": None,
            "archived_by": None,
        }

    def reaction(self, reaction: Reaction) -> Json:
        return {
            "id": reaction.id,
            "node_id": node_id("REA", reaction.id),
            "user": self.user(reaction.user),
            "content": reaction.content,
            "created_at": stamp(reaction.created_at),
        }

    def reactions(self, url: str, reactions: list[Reaction]) -> Json:
        """The rollup that comments carry."""
        contents = [reaction.content for reaction in reactions]
        names = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
        counts = {name: contents.count(name) for name in names}
        return {"url": f"{url}/reactions", "total_count": len(contents), **counts}

    def issue_comment(self, pull: PullRequest, comment: IssueComment) -> Json:
        api = self.repo_url(pull.repository)
        url = f"{api}/issues/comments/{comment.id}"
        return {
            "url": url,
            "html_url": f"{self.html_url(pull)}#issuecomment-{comment.id}",
            "issue_url": f"{api}/issues/{pull.number}",
            "id": comment.id,
            "node_id": node_id("IC", comment.id),
            "user": self.user(comment.user),
            "created_at": stamp(comment.created_at),
            "updated_at": stamp(comment.updated_at),
            "body": comment.body,
            "author_association": self.association(pull.repository, comment.user),
            "reactions": self.reactions(url, comment.reactions),
            "performed_via_github_app": self.app(comment.via_app) if comment.via_app else None,
        }

    def commit(self, repository: Repository, facts: CommitFacts) -> Json:
        """The commit without its files; people are linked when their e-mail names a login."""
        api = self.repo_url(repository)
        page = f"{self.url}/{repository.full_name}"
        people = {
            "author": {**facts.author.__dict__, "date": facts.authored_at},
            "committer": {**facts.committer.__dict__, "date": facts.committed_at},
        }
        return {
            "url": f"{api}/commits/{facts.sha}",
            "sha": facts.sha,
            "node_id": node_id("C", int(facts.sha[:12], 16)),
            "html_url": f"{page}/commit/{facts.sha}",
            "comments_url": f"{api}/commits/{facts.sha}/comments",
            "commit": {
                "url": f"{api}/git/commits/{facts.sha}",
                **people,
                "message": facts.message,
                "comment_count": 0,
                "tree": {"sha": facts.tree, "url": f"{api}/git/trees/{facts.tree}"},
                "verification": {
                    "verified": False,
                    "reason": "unsigned",
                    "signature": None,
                    "payload": None,
                    "verified_at": None,
                },
            },
            "author": self.maybe_user(self._person(facts.author.email)),
            "committer": self.maybe_user(self._person(facts.committer.email)),
            "parents": [
                {"sha": sha, "url": f"{api}/commits/{sha}", "html_url": f"{page}/commit/{sha}"}
                for sha in facts.parents
            ],
        }

    def _person(self, email: str) -> Account | None:
        """`<id>+<login>@users.noreply.github.com` names an account."""
        local, _, domain = email.partition("@")
        if domain != "users.noreply.github.com":
            return None
        return self.world.account(local.partition("+")[2] or local)
