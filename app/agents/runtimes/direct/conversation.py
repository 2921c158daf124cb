"""One session's talk with its models: the history, and one call at a time. No policy here.

The only file that knows pydantic-ai's messages. History survives a change of model within a family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.agents.port import (
    AgentErrorKind,
    AgentFailure,
    AgentTask,
    FinishReason,
    HostTool,
    ModelRef,
)
from app.agents.runtimes.direct.faults import classify
from app.agents.runtimes.direct.providers import CONNECT_TIMEOUT_S, Connections, WireFormat
from app.domain.runs import Usage
from app.telemetry.cost import Price, Tokens, price_of

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import ModelRequestParameters, StreamedResponse
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.usage import RequestUsage


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it; `arguments` is its raw JSON, perhaps not valid."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One complete response."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish: FinishReason


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What goes back to the model for one call."""

    call: ToolCall
    text: str
    failed: bool = False


class Conversation:
    """The running exchange of one session. Not for concurrent use."""

    def __init__(self, connections: Connections, task: AgentTask, price: Price = price_of) -> None:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        self._connections = connections
        self._task = task
        self._price = price
        self._parameters = _parameters(task)
        self._history: list[ModelMessage] = [
            ModelRequest(parts=[UserPromptPart(task.prompt)], instructions=task.system)
        ]
        self._pending: ModelResponse | None = None
        self._stream: StreamedResponse | None = None

    async def call(
        self, model: ModelRef, *, may_use_tools: bool, on_output: Callable[[], None]
    ) -> Reply | AgentFailure:
        """Send the history and read the response to its end.

        `on_output` is called at the first sign of life and then at every chunk.
        """
        from pydantic_ai.direct import model_request_stream

        self._stream = None
        try:
            async with model_request_stream(
                self._connections.model(model),
                self._history,
                model_settings=self._settings(model, may_use_tools=may_use_tools),
                model_request_parameters=self._parameters,
            ) as stream:
                self._stream = stream
                on_output()
                async for _ in stream:
                    on_output()
                response = stream.get()
        except Exception as error:
            started = self._stream is not None
            return classify(error, started=started, secrets=self._connections.secrets())
        return self._accept(response, model)

    def usage(self, model: ModelRef) -> Usage:
        """What the last call used, as far as the provider had said when it ended."""
        used = self._stream.usage if self._stream is not None else None
        return _usage(used, model, self._price)

    def answer(self, answers: Sequence[ToolAnswer]) -> None:
        """Add the last reply and its tools' answers to the history."""
        from pydantic_ai.messages import ModelRequest, ToolReturnPart

        if self._pending is None:
            raise ValueError("there is no reply to answer")
        parts = [
            ToolReturnPart(
                tool_name=answer.call.name,
                content=answer.text,
                tool_call_id=answer.call.id,
                outcome="failed" if answer.failed else "success",
            )
            for answer in answers
        ]
        request = ModelRequest(parts=parts, instructions=self._task.system)
        self._history = [*self._history, self._pending, request]
        self._pending = None

    def _accept(self, response: ModelResponse, model: ModelRef) -> Reply | AgentFailure:
        finish = _finish(response.finish_reason)
        if response.finish_reason is None and self._connections.wire(model) is WireFormat.ANTHROPIC:
            return AgentFailure(
                AgentErrorKind.CUT_STREAM, "the response ended without saying why it stopped"
            )
        self._pending = response
        return Reply(_text(response), _tool_calls(response), finish)

    def _settings(self, model: ModelRef, *, may_use_tools: bool) -> ModelSettings:
        import httpx2

        limits = self._task.limits
        settings: dict[str, Any] = {
            "max_tokens": limits.max_output_tokens,
            "timeout": httpx2.Timeout(limits.chunk_timeout_s, connect=CONNECT_TIMEOUT_S),
            # The system prompt's first line is ours; nothing may be put in front of it.
            "framing_announcement": "never",
        }
        if headers := self._connections.headers(model, self._task.headers):
            settings["extra_headers"] = headers
        if self._task.tools and not may_use_tools:
            settings["tool_choice"] = "none"
        if self._connections.wire(model) is WireFormat.ANTHROPIC:
            settings["anthropic_cache_tool_definitions"] = True
            settings["anthropic_cache_instructions"] = True
            settings["anthropic_cache_messages"] = True
        return settings  # type: ignore[return-value]  # a TypedDict built by parts


def _parameters(task: AgentTask) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters

    return ModelRequestParameters(
        function_tools=[_definition(tool) for tool in task.tools], allow_text_output=True
    )


def _definition(tool: HostTool) -> Any:
    from pydantic_ai.tools import ToolDefinition

    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=dict(tool.parameters),
    )


def _text(response: ModelResponse) -> str:
    from pydantic_ai.messages import TextPart

    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _tool_calls(response: ModelResponse) -> tuple[ToolCall, ...]:
    from pydantic_ai.messages import ToolCallPart

    return tuple(
        ToolCall(part.tool_call_id, part.tool_name, part.args_as_json_str())
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )


_FINISH = {
    "stop": FinishReason.STOP,
    "tool_call": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.REFUSED,
    "error": FinishReason.ERROR,
}


def _finish(reason: str | None) -> FinishReason:
    return _FINISH.get(reason or "", FinishReason.UNKNOWN)


def _usage(used: RequestUsage | None, model: ModelRef, price: Price) -> Usage:
    if used is None:
        return Usage(model_calls=1)
    cached, written = used.cache_read_tokens, used.cache_write_tokens
    tokens = Tokens(
        max(0, used.input_tokens - cached - written), cached, written, used.output_tokens
    )
    return Usage(
        model_calls=1,
        input_tokens=tokens.uncached_input,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
        output_tokens=tokens.output,
        cost_usd=price(tokens, provider=model.provider, model=model.name),
    )
