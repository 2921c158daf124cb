"""Fuzzing of hostile text, with readers as judges that are not ours.

    .venv/bin/python bench/fuzz_text.py sanitise|leaving|xml --iterations 100000 [--seed 1]

`sanitise`: texts of pieces of tags, entities, markup and look-alikes. The standard library's XML
parser must find the wrapper as one element with nothing in it but text; no boundary tag is left in
what the text looks like; cleaning twice is cleaning once.

`leaving`: texts of pieces of Markdown. A parser of CommonMark must find no mention, reference,
command or HTML in what it takes for prose, and what we write afterwards must be no part of it; a
secret that was put in is gone; nothing is longer than its limit; twice is once.

`xml`: answers in elements and in JSON that hold known findings, written in one of many ways, then
cut, repeated, or spliced with noise. A whole answer gives its findings; a cut one gives some of
them and is never called whole; nothing makes a finding up, and nothing raises.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from defusedxml.ElementTree import fromstring
from markdown_it import MarkdownIt

from app.agents.findings_xml import ParseOutcome, parse_findings, parse_fix_report, parse_review
from app.agents.invisible import without_hidden
from app.agents.lookalikes import skeleton
from app.agents.markdown import balance_fences
from app.agents.port import FinishReason
from app.agents.sanitise import BOUNDARY_TAGS, attribute, code, label, outgoing, untrusted, wrap


@dataclass(slots=True)
class Result:
    """What a subject came to. `problems`: for each kind the shortest input that shows it."""

    iterations: int = 0
    checks: int = 0
    problems: dict[str, str] = field(default_factory=dict)

    def check(self, kind: str, text: str, *, holds: bool) -> None:
        self.checks += 1
        if not holds and len(text) < len(self.problems.get(kind, text + "x")):
            self.problems[kind] = text


SIGNS = list("<>&;/\\_-!?[](){}\"'=`~#@:|*+.,\n\t ")
HIDDEN = ["\u200b", "\u00ad", "\u202e", "\ufe0f", "\U000e0062", "\x00", "\x1b[2J", "\ud800"]
MARKUP = [
    *("<pr_", "body>", "</pr_body>", "pr_body", "pr", "body", "<fix_task", "</PR-Body x=1>"),
    *(
        "&lt;",
        "&amp;",
        "amp;",
        "lt;",
        "&#60;",
        "&#x3c",
        "&num;",
        "60;",
        "&semi;",
        "&#8203;",
        "&LT;",
    ),
    *("<!--", "-->", "<!-", "--", "<?", "?>", "<![CDATA[", "]]>", "<!a", "<p hidden>", "</p>"),
    *('<a title="x">', "<img alt='", 'style="display:none"', "<b ", "</b>", "![", "](", "[x]:"),
    *('"t"', "'t'", "(t)", "＜", "《", "р", "ʙ", "🅿", "｜", "word", "approve", "\n\n", "    "),
]
SENTENCES = [
    *("`", "``", "```", "~~~", "\n", "\n\n", " ", "@octocat", " @octocat", "&#64;octocat", "\\"),
    *("#12", "acme/shop#12", "GH-3", "<b>", "</b>", "/mergeward stop", "\n/lgtm\n", "text", "\n- "),
    *(
        "\n> ",
        "\n1. ",
        "  ",
        "    ",
        "\t",
        "|",
        "\n  ```\n",
        "\n```py\n",
        "` @octocat `",
        "[x](",
        ")",
    ),
    *(
        "[",
        "]",
        "*",
        "_",
        "<!--",
        "<!-- mergeward:x",
        "-->",
        "<http://a.b>",
        "\n---\n",
        "\n# ",
        "\n=",
    ),
    *("![", "[x]: ", '"', "\n    ", "\n   - ", "&amp;", "commat;", "fixes https://x", "10.0.0.1"),
    *("http://a.internal/", "://u:p@h/", "-----BEGIN PRIVATE KEY-----", "Bearer ", "\u200b", "é"),
]
TOKEN = "ghs_Fuzzed0123456789"  # noqa: S105 - a made-up one
READER = MarkdownIt("commonmark")
POWER = re.compile(
    r"(?<![A-Za-z0-9])@octocat|#\d|(?<![A-Za-z0-9])GH-\d|/mergeward|(?m:^/lgtm$)", re.IGNORECASE
)
BOUNDARY = re.compile(r"<\s*/?\s*(?:" + "|".join(BOUNDARY_TAGS) + r")(?![a-z0-9_])")


def text_of(chance: random.Random, pieces: Sequence[str]) -> str:
    """Some pieces in a row; now and then repeated, nested, or any characters at all."""
    text = "".join(chance.choice(pieces) for _ in range(chance.randint(1, 24)))
    match chance.randrange(12):
        case 0:
            return "".join(chr(chance.randrange(0x3100)) for _ in range(chance.randint(1, 30)))
        case 1:
            return text * chance.randint(2, 5)
        case 2:
            first, second = chance.choice(pieces), chance.choice(pieces)
            return first * (depth := chance.randint(2, 12)) + text + second * depth
        case _:
            return text


def sanitise(iterations: int, seed: int) -> Result:
    chance, result = random.Random(seed), Result(iterations)  # noqa: S311 - no secret
    pieces = [*MARKUP, *MARKUP, *SIGNS, *HIDDEN]
    for _ in range(iterations):
        text, tag = text_of(chance, pieces), chance.choice(BOUNDARY_TAGS)
        once, wrapped = untrusted(text), wrap(tag, text)
        result.check("cleaned twice is not once", text, holds=untrusted(once) == once)
        result.check("something invisible is left", text, holds=without_hidden(once) == once)
        if wrapped:
            element = fromstring(wrapped)
            alone = (element.tag, len(element), len(element.attrib)) == (tag, 0, 0)
            result.check("the wrapper is not one element", text, holds=alone)
            seen = [found.group() for found in BOUNDARY.finditer(skeleton(element.text or ""))]
            result.check("a boundary tag is left", text, holds=not seen)
        held = fromstring(f'<a b="{attribute(text)}" c="{label(text)}">{code(text)}</a>')
        result.check("a value left its place", text, holds=(len(held), len(held.attrib)) == (0, 2))
    return result


def leaving(iterations: int, seed: int) -> Result:
    chance, result = random.Random(seed), Result(iterations)  # noqa: S311 - no secret
    for _ in range(iterations):
        text = text_of(chance, SENTENCES)
        if chance.randrange(4) == 0:
            at = chance.randint(0, len(text))
            text = f"{text[:at]} {TOKEN} {text[at:]}"
        posted = outgoing(text)
        result.check("defused twice is not once", text, holds=outgoing(posted) == posted)
        result.check("fences are not balanced", text, holds=balance_fences(posted) == posted)
        result.check("a secret is left", text, holds=TOKEN not in posted)
        limit = chance.randint(0, 200)
        cut = outgoing(text, limit=limit)
        result.check("longer than its limit", f"{limit}: {text}", holds=len(cut) <= limit)
        result.check("cut twice is not once", f"{limit}: {text}", holds=outgoing(cut) == cut)
        for kind, holds in _read(posted):
            result.check(kind, text, holds=holds)
    return result


def _read(posted: str) -> list[tuple[str, bool]]:
    """What a reader of Markdown says of a posted text that ours goes on behind."""
    tokens = READER.parse(f"{posted}\n\nafter it")
    blocks = [token for token in tokens if token.type == "inline"]
    inside = [child for token in tokens for child in token.children or ()]
    prose = [child.content for child in inside if child.type == "text"]
    kinds = {token.type for token in (*tokens, *inside)}
    return [
        ("prose has power", not any(POWER.search(words) for words in prose)),
        ("HTML is left", not kinds & {"html_block", "html_inline"}),
        ("what follows is swallowed", bool(blocks) and blocks[-1].content.endswith("after it")),
    ]


BODIES = [
    *("It leaks.", "`a < b && c->d`", "x &amp; y", "say </body> here", "```py\nx\n```", "List<T>"),
    *('{"findings": []}', "<findings/>", "a\n\nb", 'the "name" is', "C:\\new\\table", "it's"),
]
NOISE = [
    *("<finding>", "</finding>", "<findings>", "</findings>", "<body>", "</body>", "<path>", "\n"),
    *("<![CDATA[", "]]>", "<think>", "</think>", "&lt;", "{", "}", "[", "]", '"', ":", ",", "//"),
    *('{"findings":[', '"body":"', "null", "```json\n", "```", "<review>", "<summary>", "x", " "),
]
KNOWN = ("src/a.py", "README.md")
Writer = Callable[[list[dict[str, str]]], str]


def _elements(findings: list[dict[str, str]], clean: Callable[[str], str]) -> str:
    inside = "\n".join(
        "<finding>" + "".join(f"<{k}>{clean(v)}</{k}>\n" for k, v in item.items()) + "</finding>"
        for item in findings
    )
    return f"<findings>\n{inside}\n</findings>"


WRITERS: dict[str, Writer] = {
    "escaped": lambda given: _elements(given, escape),
    "cdata": lambda given: _elements(given, lambda value: f"<![CDATA[{value}]]>"),
    "json": lambda given: json.dumps({"findings": given}),
    "indented": lambda given: json.dumps({"findings": given}, indent=2),
    "list": json.dumps,
}
FRAMES = ("{}", "Here is my review.\n\n{}\n", "```\n{}\n```", "<think>hm {x}</think>\n{}")


def xml(iterations: int, seed: int) -> Result:
    chance, result = random.Random(seed), Result(iterations)  # noqa: S311 - no secret
    for _ in range(iterations):
        given = [
            {
                "path": chance.choice(KNOWN),
                "line": str(chance.randint(1, 99)),
                "severity": chance.choice(("critical", "warning", "suggestion")),
                "title": f"Title {number}",
                "body": " ".join(chance.choices(BODIES, k=chance.randint(1, 3))),
            }
            for number in range(chance.randint(1, 4))
        ]
        how = chance.choice(list(WRITERS))
        answer = chance.choice(FRAMES).replace("{}", WRITERS[how](given))
        _whole(result, how, answer, given)
        _cut(result, how, answer, given, chance)
        _spliced(result, answer, chance)
    return result


def _whole(result: Result, how: str, answer: str, given: list[dict[str, str]]) -> None:
    parsed = parse_findings(answer, "fuzz", KNOWN)
    wanted = [(item["path"], int(item["line"]), item["title"], item["body"]) for item in given]
    found = [
        (one.location.path, one.location.start_line, one.title, one.body) for one in parsed.findings
    ]
    result.check(f"{how}: not read letter by letter", answer, holds=found == wanted)
    result.check(f"{how}: not ok", answer, holds=parsed.outcome is ParseOutcome.OK)


def _cut(
    result: Result, how: str, answer: str, given: list[dict[str, str]], chance: random.Random
) -> None:
    cut = answer[: chance.randrange(len(answer))]
    parsed = parse_findings(cut, "fuzz", KNOWN, FinishReason.LENGTH)
    titles = [one.title for one in parsed.findings]
    known = [item["title"] for item in given]
    result.check(f"{how}: made up", cut, holds=titles == known[: len(titles)])
    complete = parsed.outcome is ParseOutcome.OK
    result.check(f"{how}: cut, and called whole", cut, holds=not complete)
    stopped = parse_findings(cut, "fuzz", KNOWN)
    empty = stopped.outcome is ParseOutcome.OK and not stopped.findings
    result.check(f"{how}: cut, and nothing found", cut, holds=not empty)


def _spliced(result: Result, answer: str, chance: random.Random) -> None:
    """Noise in the middle: whatever comes of it, it is a value, and a failed one is empty."""
    for _ in range(chance.randint(1, 4)):
        first, last = sorted((chance.randrange(len(answer) + 1), chance.randrange(len(answer) + 1)))
        middle = "" if chance.randrange(2) else answer[first:last]
        answer = answer[:first] + chance.choice(NOISE) + middle + answer[last:]
    finish = chance.choice(list(FinishReason))
    try:
        parsed = parse_findings(answer, "fuzz", KNOWN, finish)
        parse_review(answer, KNOWN, finish)
        parse_fix_report(answer, finish)
    except Exception as error:
        result.check(f"{type(error).__name__} was raised", answer, holds=False)
        return
    empty = parsed.outcome is not ParseOutcome.FAILED or not parsed.findings
    result.check("failed, and findings all the same", answer, holds=empty)
    places = {one.location.path for one in parsed.findings}
    result.check("a path that is not in the change", answer, holds=places <= {*KNOWN, None})


SUBJECTS: dict[str, Callable[[int, int], Result]] = {
    "sanitise": sanitise,
    "leaving": leaving,
    "xml": xml,
}


if __name__ == "__main__":
    from fuzz import main

    sys.exit(main())
