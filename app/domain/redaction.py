"""Takes out of text what may leave in no text: credentials, and where our own machines are. Pure.

Logs, terminals, prompts and pages all use `redact`. It recognises by form, so it also catches keys
that are not ours. A false alarm costs a word and a miss costs a key, so forms are wide where the
prefix is unmistakable. Linear: every pattern takes what it has looked at, or looks a bounded way.
"""

from __future__ import annotations

import re

MASK = "[redacted]"
INTERNAL = "{internal address}"
"""Without a bracket that Markdown knows: `](` would make a link of what stands before it."""

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----)[\s\S]){0,20000}+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    # One that was cut off before its end: its headers and whole lines of base64.
    r"|(?:[ \t]*+(?:[\r\n]|\\[rn])(?:\s|\\[rn])*+"
    r"(?:[A-Za-z-]{1,40}: [^\r\n\\]{0,200}|[A-Za-z0-9+/=]++(?![^\r\n\\\"'-])))*+)"
)

_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[a-z]_[A-Za-z0-9_.\-]++"  # GitHub, also the long installation tokens with dots
    r"|github_pat_[A-Za-z0-9_]{4,}+"
    r"|(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|A3T[A-Z0-9])[A-Z0-9]{12,}+"
    r"|xox[abeoprs]-[A-Za-z0-9-]{8,}+"
    r"|AIza[A-Za-z0-9_\-]{30,}+"
    r"|ya29\.[A-Za-z0-9_\-]{20,}+"
    r"|gl(?:pat|rt|ptt|dt|soat)-[A-Za-z0-9_.\-]{16,}+"
    r"|npm_[A-Za-z0-9]{30,}+"
    r"|pypi-[A-Za-z0-9_\-]{40,}+"
    r"|hf_[A-Za-z0-9]{30,}+"
    r"|SG\.[A-Za-z0-9_\-]{16,}+\.[A-Za-z0-9_\-]{16,}+"
    r"|(?:[rsp]k|whsec)_(?:live_|test_)?[A-Za-z0-9]{20,}+"
    r"|(?:dop|doo|dor)_v1_[a-f0-9]{32,}+"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{20,}+"
    r"|(?P<doubtful>sk-[A-Za-z0-9_\-]{6,}+|eyJ[A-Za-z0-9_\-]{5,}+(?:\.[A-Za-z0-9_\-]*+)*+)"
    r")"
)

_HEADER = re.compile(
    r"(\b(?:(?:proxy-)?authorization|x-api-key|api-key|x-hub-signature(?:-256)?)"
    r"['\"]?[ \t]{0,20}[:=][ \t]{0,20}['\"]?)"
    r"(?:(?:digest|negotiate|ntlm|hmac|aws4-hmac-sha256)[ \t][^\r\n]{6,2000}+"
    r"|(?P<scheme>(?:bearer|basic|token|apikey|oauth)[ \t]{1,20})?"
    r"(?P<value>[A-Za-z0-9+/_.=~:\[\]-]{6,}+))",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(bearer|basic)([ \t]{1,20})([A-Za-z0-9+/_.=~-]{8,}+)", re.IGNORECASE)
_QUERY = re.compile(
    r"([?&](?:[\w-]{0,40}token|api_?key|key|sig|signature|x-amz-(?:signature|credential))=)"
    r"[^\s&#'\"<>(){}$\[\]]{8,}+",
    re.IGNORECASE,
)
_USER_OF_URL = re.compile(
    # `{user}`, `$USER` and `<user>` stand for a credential and are none.
    r"(?<=://)(?![^\s/?#@]{0,400}?(?:[{}$]|(?:<|&lt;)\w{1,40}>))[^\s/?#'\"`]{0,4000}@"
)


def redact(text: str) -> str:
    """`text` without private keys, tokens, authorisation and credentials in addresses. Idempotent.

    The words around a secret stay, so that a reader still knows what was said.
    """
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(MASK, text)
    text = _TOKEN.sub(_masked_token, text)
    lowered = text.lower()
    if any(name in lowered for name in ("authorization", "api-key", "x-hub-signature")):
        text = _HEADER.sub(_masked_header, text)
    if "=" in text and ("?" in text or "&" in text):
        text = _QUERY.sub(rf"\1{MASK}", text)
    if "://" in text:
        text = _USER_OF_URL.sub("", text)
    if "bearer" in lowered or "basic" in lowered:
        text = _SCHEME.sub(_masked_scheme, text)
    return text


def _masked_token(match: re.Match[str]) -> str:
    """`sk-` begins words of style sheets too, and `eyJ` any JSON in base64."""
    found = match.group()
    if match["doubtful"] is None:
        return MASK
    is_key = re.search(r"\d", found) if found.startswith("sk-") else "." in found[5:-1]
    return MASK if is_key else found


def _masked_header(match: re.Match[str]) -> str:
    """A scheme says what follows; without one `"Authorization": header` is code, not a header."""
    value = match["value"]
    is_secret = value is None or match["scheme"] or _looks_made(value)
    return f"{match[1]}{MASK}" if is_secret else match.group()


def _masked_scheme(match: re.Match[str]) -> str:
    """ "Basic authentication" is two words; what has figures in it, or is long, is a credential."""
    scheme, gap, value = match.groups()
    return f"{scheme}{gap}{MASK}" if _looks_made(value) else match.group()


def _looks_made(value: str) -> bool:
    return len(value) >= _LONGEST_WORD or re.search(r"\d", value) is not None


_LONGEST_WORD = 24

_INTERNAL_NAME = (
    r"(?:[A-Za-z0-9_-]{1,63}\.){1,8}"
    r"(?:internal|intranet|local|localdomain|lan|corp|home|private|svc|home\.arpa|consul)\.?"
)
_PRIVATE_V4 = (
    r"(?:10(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}|169\.254(?:\.\d{1,3}){2}"
    r"|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2}"
    r"|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])(?:\.\d{1,3}){2})"
)
_PRIVATE_V6 = r"\[(?:f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]):[0-9a-f:.]{1,60}(?:%[\w.]{1,20})?\]"
_REST_OF_URL = r"(?::\d{1,5})?(?:[/?#][^\s<>\"'`\\()\[\]]*+)?"
_INTERNAL_URL = re.compile(
    rf"\b[A-Za-z][A-Za-z0-9+.-]{{1,30}}://(?:{_INTERNAL_NAME}|{_PRIVATE_V4}|{_PRIVATE_V6})"
    rf"(?![\w.-]){_REST_OF_URL}",
    re.IGNORECASE,
)
_INTERNAL_HOST = re.compile(rf"(?<![\w.-]){_PRIVATE_V4}(?![\w-]|\.\d)(?::\d{{1,5}})?")


def without_internal_addresses(prose: str) -> str:
    """`prose` without addresses that can only be inside somebody's network. Idempotent.

    Only what is unmistakable: `thread.local` is code, and 127.0.0.1 tells nothing.
    """
    if "://" in prose:
        prose = _INTERNAL_URL.sub(INTERNAL, prose)
    return _INTERNAL_HOST.sub(INTERNAL, prose)


_MOST_WORDS = 2_000
"""Characters of an error's words; cut between two words, so that no half address is left."""

_ANY_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s<>\"'`]++")
_ANY_HOST = re.compile(
    rf"(?<![\w.-])(?:{_INTERNAL_NAME}|localhost|(?:[A-Za-z0-9_-]{{1,63}}\.){{0,8}}"
    r"[A-Za-z][A-Za-z0-9_-]{0,62}(?=:\d{2,5}\b))(?![\w-])(?::\d{1,5})?",
    re.IGNORECASE,
)
_ANY_V4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)(?:/\d{1,2})?(?::\d{1,5})?")
_ANY_V6 = re.compile(
    r"(?<![\w:.])\[?(?=[0-9a-f:]{0,35}::|(?:[0-9a-f]{1,4}:){7})(?:[0-9a-f]{0,4}:){2,7}"
    r"[0-9a-f]{0,4}(?:%[\w.]{1,20})?\]?(?::\d{1,5})?(?!\w)",
    re.IGNORECASE,
)
_ANY_PATH = re.compile(
    r"(?<![\w./~\\<-])(?:~?(?:/[\w.@+-]{1,255}){2,40}/?|[A-Za-z]:\\[^\s'\"<>|]{1,400}"
    r"|\\\\[\w.-]{1,60}\\[^\s'\"<>|]{1,400}|~/[\w.@+/-]{1,400})"
)
_NAMED_SECRET = re.compile(
    r"([\w-]{0,40}(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credential|cookie)s?['\"]?\s{0,5}[:=]\s{0,5}['\"]?)[^\s'\",;)}]++",
    re.IGNORECASE,
)


def without_internals(words: str) -> str:
    """The words of an error as strangers may read them: no address, no path of a machine, no value
    that is called a secret. The details are for the log. Idempotent."""
    words = redact(words)
    if len(words) > _MOST_WORDS:
        words = words[:_MOST_WORDS].rpartition(" ")[0]
    words = _NAMED_SECRET.sub(rf"\1{MASK}", words)
    words = _ANY_URL.sub(INTERNAL, words)
    for pattern in (_ANY_V4, _ANY_V6, _ANY_HOST):
        words = pattern.sub(INTERNAL, words)
    return _ANY_PATH.sub("(path)", words)
