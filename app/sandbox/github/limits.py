"""Rate limits and injected faults: the bad days of the API."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta

from app.sandbox.github.errors import ApiError
from app.sandbox.github.identity import Actor
from app.sandbox.github.world import World

MINUTE = 60


@dataclass
class Window:
    used: int
    resets_at: float


@dataclass
class Limits:
    """The primary limit: `limit` requests an hour and caller; JWT calls are free of it."""

    world: World
    limit: int
    content_per_minute: int | None = None
    windows: dict[str, Window] = field(default_factory=dict)
    created: dict[str, list[float]] = field(default_factory=dict)

    def window(self, actor: Actor) -> Window:
        """The caller's current hour, begun anew when the last one is over."""
        now = self.world.now().timestamp()
        window = self.windows.get(actor.name)
        if window is None or window.resets_at <= now:
            window = Window(0, now + timedelta(hours=1).total_seconds())
            self.windows[actor.name] = window
        return window

    def spend(self, actor: Actor, *, creates: bool = False) -> None:
        """Count one request; 403 once the hour's or the minute's allowance is used up."""
        window = self.window(actor)
        if window.used >= self.limit:
            who = f"installation ID {actor.token.installation.id}" if actor.token else "user"
            raise ApiError(403, f"API rate limit exceeded for {who}.")
        window.used += 1
        if creates and self.content_per_minute is not None:
            self._spend_content(actor, self.content_per_minute)

    def _spend_content(self, actor: Actor, limit: int) -> None:
        now = self.world.now().timestamp()
        recent = [at for at in self.created.get(actor.name, []) if at > now - MINUTE]
        if len(recent) >= limit:
            raise ApiError(
                403,
                "You have exceeded a secondary rate limit and have been temporarily blocked from "
                "content creation. Please retry your request again later.",
                headers={"Retry-After": str(MINUTE)},
            )
        self.created[actor.name] = [*recent, now]

    def core(self, actor: Actor) -> dict[str, object]:
        """The numbers of `GET /rate_limit`."""
        window = self.window(actor)
        return {
            "limit": self.limit,
            "remaining": max(self.limit - window.used, 0),
            "reset": int(window.resets_at),
            "used": window.used,
            "resource": "core",
        }

    def headers(self, actor: Actor) -> dict[str, str]:
        return {f"X-RateLimit-{k.title()}": str(v) for k, v in self.core(actor).items()}


@dataclass
class CallFault:
    """Refuse `times` calls that match; `after` lets the effect happen first (a lost answer)."""

    method: str
    path: str
    error: ApiError
    times: int = 1
    after: bool = False


@dataclass
class WebhookFault:
    """Treat `times` deliveries of an event specially: drop them, or send them twice."""

    event: str
    action: str | None
    kind: str
    times: int = 1


@dataclass
class CommentFault:
    """Accept a review's comment on this line and show it to nobody; `kept`: with a thread."""

    path: str
    line: int
    kept: bool


@dataclass
class Faults:
    """Failures asked for by a test or the demo; each is used up by happening."""

    calls: list[CallFault] = field(default_factory=list)
    webhooks: list[WebhookFault] = field(default_factory=list)
    hidden: list[CommentFault] = field(default_factory=list)

    def hide_comment(self, path: str, line: int, *, kept: bool = True) -> None:
        """The next comment of a review on this line is taken, and nobody sees it; `kept` False:
        there is not even a thread."""
        self.hidden.append(CommentFault(path, line, kept))

    def hidden_comment(self, path: str, line: int | None) -> CommentFault | None:
        """What becomes of a comment about to be made that nobody will see."""
        found = next((f for f in self.hidden if (f.path, f.line) == (path, line)), None)
        if found is not None:
            self.hidden.remove(found)
        return found

    def fail_call(
        self,
        method: str,
        path: str,
        status: int,
        message: str = "Server Error",
        *,
        headers: dict[str, str] | None = None,
        times: int = 1,
        after: bool = False,
    ) -> None:
        """The next `times` calls whose path matches the regular expression `path` fail."""
        error = ApiError(status, message, headers=headers)
        self.calls.append(CallFault(method, path, error, times, after))

    def drop_webhook(self, event: str, action: str | None = None, times: int = 1) -> None:
        """The next `times` deliveries of this event are never sent, nor listed."""
        self.webhooks.append(WebhookFault(event, action, "drop", times))

    def double_webhook(self, event: str, action: str | None = None, times: int = 1) -> None:
        """The next `times` deliveries of this event are sent twice with the same GUID."""
        self.webhooks.append(WebhookFault(event, action, "double", times))

    def before_call(self, method: str, path: str) -> ApiError | None:
        return self._call(method, path, after=False)

    def after_call(self, method: str, path: str) -> ApiError | None:
        return self._call(method, path, after=True)

    def _call(self, method: str, path: str, *, after: bool) -> ApiError | None:
        for fault in self.calls:
            fits = fault.method == method and re.search(fault.path, path)
            if fits and fault.after is after and fault.times > 0:
                fault.times -= 1
                return fault.error
        return None

    def webhook(self, event: str, action: str | None) -> str | None:
        """`drop`, `double` or None for a delivery about to be queued."""
        for fault in self.webhooks:
            fits = fault.event == event and fault.action in {None, action}
            if fits and fault.times > 0:
                fault.times -= 1
                return fault.kind
        return None
