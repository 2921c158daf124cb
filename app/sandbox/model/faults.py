"""Failures of the provider: which request they hit, and what the client gets instead."""

from __future__ import annotations

from collections import Counter

from app.sandbox.model.conversation import Conversation
from app.sandbox.model.errors import ErrorType, WireError
from app.sandbox.model.scenario import Fault, FaultKind
from app.sandbox.model.wire import Reply, StopReason, Text, ToolUse, say

NONSENSE = "Honestly, this looks fine to me. Ship it, and have a nice weekend!"


class FaultBook:
    """The scenario's faults with what is left of them. The only memory of the model server."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self._faults = faults
        self._requests: Counter[tuple[int, str]] = Counter()
        self._fired: Counter[int] = Counter()

    def next_fault(self, conversation: Conversation, model: str) -> Fault | None:
        """Count this request and say which fault it meets: the first in the scenario's order."""
        agent = conversation.agent or ""
        due: Fault | None = None
        for index, fault in enumerate(self._faults):
            if fault.agent not in {"*", agent} or fault.model not in {None, model}:
                continue
            self._requests[index, agent] += 1
            if due is None and self._is_due(index, fault, conversation):
                self._fired[index] += 1
                due = fault
        return due

    def _is_due(self, index: int, fault: Fault, conversation: Conversation) -> bool:
        if fault.times != "always" and self._fired[index] >= fault.times:
            return False
        if fault.per == "conversation":
            return conversation.turn == fault.call
        return self._requests[index, conversation.agent or ""] >= fault.call


_REFUSALS = {
    FaultKind.RATE_LIMIT: (
        ErrorType.RATE_LIMIT,
        "This request would exceed your organization's rate limit.",
    ),
    FaultKind.OVERLOADED: (ErrorType.OVERLOADED, "Overloaded"),
    FaultKind.SERVER_ERROR: (ErrorType.API, "Internal server error"),
    FaultKind.UNAVAILABLE: (ErrorType.UNAVAILABLE, "Service temporarily unavailable"),
    FaultKind.CONTEXT_OVERFLOW: (
        ErrorType.CONTEXT,
        "prompt is too long: 210000 tokens > 200000 maximum",
    ),
    FaultKind.AUTH: (ErrorType.AUTHENTICATION, "invalid x-api-key"),
}


def spoil(fault: Fault, reply: Reply) -> Reply:
    """What arrives instead of `reply`. Raises `WireError` where the answer is an error.

    What spoils only the stream leaves the reply as it is.
    """
    if fault.kind in _REFUSALS:
        kind, message = _REFUSALS[fault.kind]
        raise WireError(kind, message, retry_after=fault.retry_after)
    match fault.kind:
        case FaultKind.LENGTH:
            return _cut_short(reply)
        case FaultKind.NONSENSE:
            return say(NONSENSE)
        case FaultKind.EMPTY:
            return Reply((), StopReason.END_TURN)
        case _:
            return reply


def _cut_short(reply: Reply) -> Reply:
    """Half of the text, as if the allowance had ended there; tool calls never got written."""
    text = "".join(block.text for block in reply.blocks if isinstance(block, Text))
    half = text[: max(1, len(text) // 2)] or "Let me look at the changed files fir"
    return Reply((Text(half),), StopReason.MAX_TOKENS)


def within_allowance(reply: Reply, max_chars: int) -> Reply:
    """The reply as far as `max_chars` of output reach; a call that does not fit is left out."""
    kept: list[Text | ToolUse] = []
    left = max_chars
    for block in reply.blocks:
        size = block_size(block)
        if size <= left:
            kept.append(block)
            left -= size
            continue
        if isinstance(block, Text) and left:
            kept.append(Text(block.text[:left]))
        return Reply(tuple(kept), StopReason.MAX_TOKENS)
    return reply


def block_size(block: Text | ToolUse) -> int:
    """Characters a block costs as output."""
    if isinstance(block, Text):
        return len(block.text)
    return len(block.name) + sum(len(str(key)) + len(str(v)) for key, v in block.input.items())
