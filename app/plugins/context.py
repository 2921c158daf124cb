"""The contexts of the three steps: all that a plugin can see, and all that it can do.

Each plugin gets objects of its own, which refer to nothing but the run's facts and what this
plugin itself gave. What is given is checked at once, so that an error shows the line that made it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from importlib.resources.abc import Traversable
from urllib.parse import urlsplit

from pydantic import SecretStr

from app.agents.prompt_context import AddedContext, PromptContext
from app.agents.prompts import parse_prompt, render_reviewer
from app.agents.runtimes.direct.providers import ProviderSettings, WireFormat
from app.control.routing import Chain, Routing
from app.domain.diff import FileChange
from app.domain.runs import SHIPPED_AGENTS, AgentName, Tier
from app.errors import PluginError
from app.logs import get_logger, keep_secret
from app.plugins.codex import Codex
from app.plugins.contributions import (
    READING,
    Agent,
    Contributed,
    Contribution,
    Description,
    Header,
    McpServer,
    ModelTier,
    Observer,
    Pin,
    PromptSection,
    Provider,
    Replacement,
    Restriction,
    Route,
    Rules,
    RunWhen,
    SessionObserver,
    ShippedRouting,
    SwitchOff,
    Variable,
    Window,
)
from app.plugins.facts import ReadFile, RunFacts, RunView

log = get_logger(__name__)

SECTION_CHARS = 20_000
"""Characters of one prompt section or piece of evidence; the rest is cut, and the cut is said."""

CODEX_CHARS = 60_000
"""Characters of all rules together: about 15,000 tokens in the compliance reviewer's prompt."""

EVIDENCE_CHARS = 40_000
"""Characters of all evidence of one plugin in one run: about 10,000 tokens in each session."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
_UNSAFE_VALUE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CUT = "\n[cut here]"


class BootstrapContext:
    """What `bootstrap` sees: the run's facts, and the files of the base side of the change."""

    __slots__ = ("_plugin", "_read", "facts")

    def __init__(self, plugin: str, facts: RunFacts, read: ReadFile) -> None:
        self.facts = facts
        self._plugin = plugin
        self._read = read

    async def read(self, path: str) -> bytes | None:
        """A file as it was before the change, which is what somebody has accepted. None: there is
        none, or the policy withholds it."""
        return await self._read(path)

    def warn(self, what: str, why: str) -> None:
        """Say in the log what this run goes without."""
        log.warning(what, plugin=self._plugin, repository=self.facts.repository, why=why)


class ConfigureContext:
    """What `configure` gives, and the only way to give it; `prepared` is what `bootstrap` gave."""

    __slots__ = ("_closed", "_items", "_plugin", "facts", "prepared")

    def __init__(self, plugin: str, facts: RunFacts, prepared: object = None) -> None:
        self.facts = facts
        self.prepared = prepared
        self._plugin = plugin
        self._items: list[Contribution] = []
        self._closed = False

    def agent(
        self,
        name: str,
        prompt_file: Traversable,
        *,
        chain: str = "standard",
        when: RunWhen | None = None,
        permissions: Collection[str] = READING,
    ) -> None:
        """Register a reviewer. `prompt_file` is Markdown with front matter (`id`, `version`,
        `inputs`) and says what to flag; the rules that all reviewers share are put before it."""
        agent = _agent_name(name)
        if agent in SHIPPED_AGENTS:
            raise PluginError(f"{name} is a shipped agent: give yours a name of its own")
        prompt = parse_prompt(_text_of(prompt_file), prompt_file.name)
        render_reviewer(agent, prompt)
        self._give(Agent(agent, prompt, _name(chain, "chain"), when or RunWhen()))
        if frozenset(permissions) != READING:
            self.restrict(name, permissions)

    def provider(
        self,
        name: str,
        wire: WireFormat,
        *,
        key: SecretStr | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str | SecretStr] | None = None,
        without: Collection[str] = (),
    ) -> None:
        """Register a provider of models. Headers named in `without` never reach it."""
        if base_url is not None:
            _address(base_url, "base URL")
        settings = ProviderSettings(
            name=_name(name, "provider"),
            wire=wire,
            api_key=self._secret(key) if key is not None else "",
            base_url=base_url.rstrip("/") if base_url else None,
            headers={_header(k): _value(k, self._plain(v)) for k, v in (headers or {}).items()},
            without=frozenset(_header(header).lower() for header in without),
        )
        self._give(Provider(settings))

    def shipped_routing(self, routing: Routing) -> None:
        """Give the table of models that everything else is laid over."""
        self._give(ShippedRouting(routing))

    def model_tier(self, name: str, provider: str, models: Iterable[str]) -> None:
        """Give a failback chain: models of one family, first choice first. A name of the shipped
        table (`top`, `standard`, …) replaces that chain."""
        chain = Chain(_name(provider, "provider"), tuple(map(_model, models)))
        if not chain.models:
            raise PluginError(f"the chain {name} has no model")
        self._give(ModelTier(_name(name, "chain"), chain))

    def route(self, agent: str, chain: str) -> None:
        """Put an agent on a named chain."""
        self._give(Route(_agent_name(agent), _name(chain, "chain")))

    def pin(
        self,
        agent: str,
        models: Iterable[str],
        provider: str | None = None,
        *,
        if_known: bool = False,
    ) -> None:
        """Put an agent on exactly these models of a provider (None: the shipped table's), whatever
        the repository's policy asks for. `if_known`: an agent or a provider that nobody registers
        is no error (for what comes from far away)."""
        chosen = tuple(map(_model, models))
        if not chosen:
            raise PluginError(f"no model is given for the agent {agent}")
        where = None if provider is None else _name(provider, "provider")
        self._give(Pin(_agent_name(agent), chosen, where, if_known))

    def context_window(self, model: str, tokens: int) -> None:
        """Say how many tokens a model reads at once; 128,000 are assumed for an unknown one."""
        if tokens < 8_000:
            raise PluginError(f"the context window of {model} is too small for a review: {tokens}")
        self._give(Window(_model(model), tokens))

    def switch_off(self, agent: str, *, if_known: bool = False) -> None:
        """Leave a reviewer out of this run; `if_known` as for `pin`."""
        name = _agent_name(agent)
        if name in (AgentName.COORDINATOR, AgentName.FIXER):
            raise PluginError(f"the {name} cannot be switched off")
        self._give(SwitchOff(name, if_known))

    def environment(self, name: str, value: str | SecretStr) -> None:
        """Set a variable for agents that are programs. It is never written to a file."""
        if not _VARIABLE.fullmatch(name):
            raise PluginError(f"{name[:60]!r} is no name of an environment variable")
        self._give(Variable(name, _hidden(value)))
        if isinstance(value, SecretStr):
            self._secret(value)

    def request_header(self, provider: str, name: str, value: str | SecretStr) -> None:
        """Send a header with each request of this run to one provider."""
        plain = _value(name, self._plain(value))
        self._give(Header(_name(provider, "provider"), _header(name), SecretStr(plain)))

    def describe_change(self, context: PromptContext) -> None:
        """Say what the change is, for the agents' prompts. One plugin does that."""
        self._give(Description(context))

    def agents_md_template(self, text: str) -> None:
        """Say how an AGENTS.md of this organisation should look."""
        self._give(Replacement("agents_md_template", _cut(text, SECTION_CHARS)))

    def codex(self, codex: Codex) -> None:
        """Give the organisation's rules, which the compliance reviewer judges by. Its findings must
        name one of them."""
        if len(codex.text) > CODEX_CHARS:
            raise PluginError(f"the codex is longer than {CODEX_CHARS:,} characters")
        self._give(Rules(codex))

    def observe(self, session: SessionObserver) -> None:
        """Be told of each session's events. `session` is called when one begins, and what it
        returns with each event: it must not wait. Errors of both are logged and survived."""
        self._give(Observer(session))

    def prompt_section(self, title: str, text: str, *, agents: Iterable[str] | None = None) -> None:
        """Tell agents something beside the change (None: all of them). It is data to them: it is
        cleaned, wrapped and cut like all untrusted text."""
        if text.strip():
            self._give(PromptSection(_added(self._plugin, title, text, agents)))

    def restrict(self, agent: str, allowed: Collection[str]) -> None:
        """Let an agent use no more than these reading tools."""
        unknown = sorted(set(allowed) - READING)
        if unknown:
            raise PluginError(
                f"no agent can be permitted {', '.join(unknown)}: a review only reads "
                f"({', '.join(sorted(READING))})"
            )
        self._give(Restriction(_agent_name(agent), frozenset(allowed)))

    def mcp_server(
        self,
        name: str,
        *,
        agents: Iterable[str],
        url: str | None = None,
        command: Iterable[str] = (),
        headers: Mapping[str, str | SecretStr] | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """Offer the tools of an MCP server to some agents (runtime `opencode` only)."""
        argv = tuple(_argument(part) for part in command)
        if (url is None) == (not argv):
            raise PluginError(f"the MCP server {name} needs either a url or a command")
        if url is not None:
            _address(url, "url")
        hidden = {
            _header(k): SecretStr(_value(k, self._plain(v))) for k, v in (headers or {}).items()
        }
        who = frozenset(map(_agent_name, agents))
        self._give(McpServer(_name(name, "MCP server"), who, url, argv, hidden, timeout_s))

    def close(self) -> Contributed:
        """Everything that was given; nothing can be added after it."""
        self._closed = True
        return Contributed(self._plugin, tuple(self._items))

    def _give(self, item: Contribution) -> None:
        if self._closed:
            raise PluginError("the run is configured already: give everything inside configure()")
        if item.key is not None and any(item.key == other.key for other in self._items):
            raise PluginError(f"{item.key} is given twice")
        self._items.append(item)

    def _plain(self, value: str | SecretStr) -> str:
        return self._secret(value) if isinstance(value, SecretStr) else value

    def _secret(self, value: SecretStr) -> str:
        plain = value.get_secret_value()
        keep_secret(plain)
        return plain


class RunContext:
    """What `post_configure` sees of the run, and where it adds evidence."""

    __slots__ = ("_evidence", "_plugin", "_view")

    def __init__(self, plugin: str, view: RunView) -> None:
        self._plugin = plugin
        self._view = view
        self._evidence: list[AddedContext] = []

    @property
    def facts(self) -> RunFacts:
        return self._view.facts

    @property
    def tier(self) -> Tier:
        return self._view.tier

    @property
    def reviewers(self) -> tuple[AgentName, ...]:
        return self._view.reviewers

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The files that are reviewed, with their hunks."""
        return self._view.changes

    async def read(self, path: str) -> bytes | None:
        """A file as the change leaves it. None: there is none, or the policy withholds it."""
        return await self._view.read(path)

    def evidence(self, title: str, text: str, *, agents: Iterable[str] | None = None) -> None:
        """Hand something to reviewers (None: to all agents), as data that they are to check. It
        never reaches a page by itself: only what a reviewer reports does."""
        room = EVIDENCE_CHARS - sum(len(item.text) for item in self._evidence)
        if text.strip() and room > 0:
            added = _added(self._plugin, title, text[:room] + _CUT * (len(text) > room), agents)
            self._evidence.append(added)

    def given(self) -> tuple[AddedContext, ...]:
        """The evidence so far."""
        return tuple(self._evidence)


def _added(plugin: str, title: str, text: str, agents: Iterable[str] | None) -> AddedContext:
    readers = None if agents is None else frozenset(map(_agent_name, agents))
    return AddedContext(plugin, title[:200], _cut(text, SECTION_CHARS), readers)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + _CUT


def _text_of(file: Traversable) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PluginError(f"the prompt file {file.name} cannot be read: {error}") from error


def _agent_name(name: str) -> AgentName:
    try:
        return AgentName(name)
    except ValueError as error:
        raise PluginError(str(error)) from None


def _name(name: str, what: str) -> str:
    if not _NAME.fullmatch(name):
        raise PluginError(
            f"{name[:60]!r} is no name of a {what}: use up to 40 lower-case letters, digits, "
            "hyphens and underscores, a letter first"
        )
    return name


def _model(name: str) -> str:
    if not _MODEL.fullmatch(name):
        raise PluginError(f"{name[:60]!r} is no name of a model, such as claude-sonnet-4-6")
    return name


def _header(name: str) -> str:
    if not _HEADER.fullmatch(name):
        raise PluginError(f"{name[:60]!r} is no name of a header")
    return name


def _value(name: str, value: str) -> str:
    if _UNSAFE_VALUE.search(value):
        raise PluginError(f"the value of {name} has a line end or another control character in it")
    return value


def _argument(value: str) -> str:
    if "{env:" in value or "{file:" in value:
        raise PluginError("a command must not refer to the environment or to files with braces")
    return _value("command", value)


def _hidden(value: str | SecretStr) -> SecretStr:
    return value if isinstance(value, SecretStr) else SecretStr(value)


def _address(url: str, what: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "{" in url:
        raise PluginError(f"a {what} must start with https:// (or http:// for a local server)")
    if parts.username is not None or parts.password is not None:
        raise PluginError(f"a {what} must not carry credentials: give them as key or header")
