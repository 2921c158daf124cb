"""Logging: one line per event, as JSON or for a person, with every secret taken out.

`redact` is also for any other text that leaves the process (error messages, git's own words): mask
first, cut later.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

from pydantic import SecretStr

from app.domain.redaction import MASK
from app.domain.redaction import redact as by_form
from app.settings import LogFormat, Settings

# structlog would load rich, a tenth of the web process's loading time, to print tracebacks in a way
# that we do not use: ours are text before they are masked.
_rich = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment]  # how an import is made to find nothing
try:
    import structlog
finally:
    del sys.modules["rich"]
    if _rich is not None:
        sys.modules["rich"] = _rich

_MIN_KNOWN_SECRET = 8
_SENSITIVE_NAMES = re.compile(
    r"authori[sz]ation|cookie|passw|secret|token(?!s)|api_?key|private_?key|credential|signature",
    re.IGNORECASE,
)
# What could move the cursor of a terminal, or cannot be written as UTF-8 at all.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_known_secrets: set[str] = set()


def redact(text: str) -> str:
    """The text without credentials, by their form and by the values this process knows."""
    for secret in sorted(_known_secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return by_form(text)


def keep_secret(*secrets: str) -> None:
    """Mask these exact values from now on, whatever they look like. Very short ones are ignored."""
    _known_secrets.update(secret for secret in secrets if len(secret) >= _MIN_KNOWN_SECRET)


def keep_secrets_of(settings: Settings) -> None:
    """Mask every secret of the settings from now on."""
    values = (getattr(settings, name) for name in type(settings).model_fields)
    keep_secret(*(value.get_secret_value() for value in values if isinstance(value, SecretStr)))


def redact_event(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """structlog's processor: masks values by the name they are under, and text by its form."""
    for name, value in list(event.items()):
        if name in ("_record", "_from_structlog"):
            continue
        event[name] = MASK if _SENSITIVE_NAMES.search(name) and value else _clean(value)
    return event


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of a module. What it is given is masked even before logging is configured."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def configure_logging(
    *, log_format: LogFormat = LogFormat.AUTO, level: str = "info", stream: TextIO | None = None
) -> None:
    """Send our own and the libraries' logs through one formatter to `stream` (standard error)."""
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_CHAIN,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _renderer(log_format, out),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "alembic"):
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
    # They log every request with its address, and ours carry tokens.
    for name in ("httpx", "httpcore", "aiosqlite", "alembic", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _renderer(log_format: LogFormat, out: TextIO) -> Any:
    if log_format is LogFormat.AUTO:
        log_format = LogFormat.CONSOLE if out.isatty() else LogFormat.JSON
    if log_format is LogFormat.CONSOLE:
        return structlog.dev.ConsoleRenderer(colors=out.isatty())
    return structlog.processors.JSONRenderer(ensure_ascii=True)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _UNPRINTABLE.sub("\ufffd", redact(value))
    if isinstance(value, dict):
        return {
            key: MASK if _SENSITIVE_NAMES.search(str(key)) and item else _clean(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _UNPRINTABLE.sub("\ufffd", redact(str(value)))


_CHAIN: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    # Tracebacks become text before they are masked, and never show the values of variables.
    structlog.processors.format_exc_info,
    redact_event,
]

# At import, so that no module can log by structlog's own defaults.
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        *_CHAIN,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    wrapper_class=structlog.stdlib.BoundLogger,
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=False,
)
