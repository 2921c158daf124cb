"""Takes credentials out of text, before it is cut, logged, posted or shown.

Recognises by form, so it also catches keys that are not ours. A false alarm costs a word; a miss
costs a key, so forms are wide where the prefix is unmistakable.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?!-----END )[\s\S]){0,20000}"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)

_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[a-z]_[A-Za-z0-9_.\-]+"  # GitHub, also the long installation tokens with dots
    r"|github_pat_[A-Za-z0-9_]{10,}"
    r"|sk-(?=[A-Za-z_\-]{0,80}\d)[A-Za-z0-9_\-]{8,}"  # Anthropic, OpenAI and many others
    r"|(?:A3T[A-Z0-9]|AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA)[A-Z0-9]{16}(?![A-Z0-9])"
    r"|xox[abeoprs]-[A-Za-z0-9-]{8,}"
    r"|AIza[A-Za-z0-9_\-]{30,}"
    r"|ya29\.[A-Za-z0-9_\-]{20,}"
    r"|glpat-[A-Za-z0-9_\-]{16,}"
    r"|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[A-Za-z0-9_\-]{40,}"
    r"|hf_[A-Za-z0-9]{30,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|eyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]*"  # JSON Web Token
    r")"
)

_URL_PASSWORD = re.compile(r"(?<=://)[^\s/?#]{0,600}@")


def redact(text: str) -> str:
    """`text` with private keys, tokens and credentials in addresses replaced. Idempotent."""
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _TOKENS.sub(REDACTED, text)
    return _URL_PASSWORD.sub("", text)
