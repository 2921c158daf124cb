"""Agent tasks with the limits of DESIGN §4. The words come from `prompts/`."""

from __future__ import annotations

from app.agents.port import AgentLimits, AgentTask, HostTool, ModelRef
from app.agents.prompts import SystemPrompt, render_system
from app.domain.runs import AgentName

_TIMEOUT_S = {
    AgentName.CODE_QUALITY: 600.0,
    AgentName.COORDINATOR: 600.0,
    AgentName.FIXER: 900.0,
}


def limits_for(agent: AgentName) -> AgentLimits:
    """5 minutes for a reviewer, 10 for code quality; the coordinator's wait for its reviewers
    and every other tool's time do not count."""
    return AgentLimits(timeout_s=_TIMEOUT_S.get(agent, 300.0))


def agent_task(
    agent: AgentName,
    prompt: str,
    models: tuple[ModelRef, ...],
    tools: tuple[HostTool, ...],
    *,
    key: str = "",
    limits: AgentLimits | None = None,
    system: SystemPrompt | None = None,
) -> AgentTask:
    """A task with the agent's system prompt and limits. `key` is the agent's name by default,
    `system` the shipped prompt.

    Raises ConfigurationError when the agent has no prompt.
    """
    system = system or render_system(agent)
    return AgentTask(
        agent=agent,
        system=system.text,
        prompt=prompt,
        models=models,
        tools=tools,
        limits=limits or limits_for(agent),
        key=key or agent.value,
        prompt_version=system.version,
    )
