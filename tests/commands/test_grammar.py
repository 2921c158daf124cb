"""What counts as a command in a comment (app/commands/grammar.py, shown.py, spans.py)."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.commands.grammar import (
    MOST_COMMANDS,
    BreakGlass,
    Command,
    Dismiss,
    Explain,
    Fix,
    GlassNotAlone,
    Help,
    Resume,
    Review,
    Status,
    Stop,
    TooMany,
    Unfix,
    Unknown,
    Why,
    parse,
)
from app.commands.shown import spoken_lines
from app.webhooks.routing import asks_for_something

GO = "/mergeward review"
RUNS = (Review(),)


@pytest.mark.parametrize(
    ("body", "commands"),
    [
        pytest.param(GO, RUNS, id="review"),
        pytest.param("/MERGEWARD Review", RUNS, id="any-case"),
        pytest.param(
            "Thanks!\r\n\r\n/mergeward fix F1 f3\r\n", (Fix(("F1", "F3")),), id="own-line"
        ),
        pytest.param("/mergeward fix all", (Fix(()),), id="all"),
        pytest.param("/mergeward unfix f1 F1 F2", (Unfix(("F1", "F2")),), id="unfix"),
        pytest.param("/mergeward explain F1", (Explain(("F1",)),), id="explain"),
        pytest.param("/mergeward why", (Why(),), id="why"),
        pytest.param("/mergeward stop", (Stop(),), id="stop"),
        pytest.param("/mergeward resume", (Resume(),), id="resume"),
        pytest.param("/mergeward status", (Status(),), id="status"),
        pytest.param("/mergeward help", (Help(),), id="help"),
        pytest.param("/mergeward", (Help(),), id="alone"),
        pytest.param(
            "/mergeward dismiss f2 It's  `fine`", (Dismiss("F2", "It's `fine`"),), id="dismiss"
        ),
        pytest.param("/mergeward dismiss F2", (Dismiss("F2", ""),), id="dismiss-without-reason"),
        pytest.param("/mergeward dismiss why", (Unknown("dismiss why"),), id="dismiss-what"),
        pytest.param("/mergeward fix F1\n/mergeward fix F1", (Fix(("F1",)),), id="once"),
        pytest.param("/mergeward fix", (Unknown("fix"),), id="fix-what"),
        pytest.param("/mergeward unfix all", (Unknown("unfix all"),), id="unfix-all"),
        pytest.param("/mergeward fix F0", (Unknown("fix F0"),), id="no-such-id"),
        pytest.param("/mergeward stop it", (Unknown("stop it"),), id="more-words"),
        pytest.param("/mergeward dance", (Unknown("dance"),), id="unknown-verb"),
        pytest.param("/mergeward\u2003fix\u00a0F1", (Fix(("F1",)),), id="unicode-white-space"),
        pytest.param(f"{GO} \t ", RUNS, id="space-after"),
        pytest.param(f"a\r{GO}\rb", RUNS, id="carriage-returns"),
        pytest.param(f"`{GO}` is what I say:\n{GO}\nsee `x`", RUNS, id="between-code-of-a-line"),
        pytest.param(f"{GO} <!-- for the last push -->", RUNS, id="comment-after-it"),
        pytest.param(f"> Is it done?\n\nYes.\n{GO}", RUNS, id="below-an-answered-quote"),
        pytest.param(f"> a\n>\n{GO}", RUNS, id="below-a-quote-that-ended"),
        pytest.param(f"- done\n{GO}", RUNS, id="below-a-list"),
        pytest.param(f"| a | b |\n|---|---|\n| 1 | 2 |\n\n{GO}", RUNS, id="below-a-table"),
        pytest.param(f"```\nx\n```\n{GO}", RUNS, id="below-a-fence"),
        pytest.param(f"```\n<!--\n```\n{GO}", RUNS, id="below-a-fence-that-shows-a-comment"),
        pytest.param(f"Write `<!--` there.\n\n{GO}", RUNS, id="below-code-that-shows-a-comment"),
        pytest.param(f"<!-- x -->\n{GO}", RUNS, id="below-a-comment"),
        pytest.param(f"<details>\n\nx\n\n</details>\n\n{GO}", RUNS, id="below-an-element"),
        pytest.param(f"- ```\n  x\n{GO}", RUNS, id="below-a-list-whose-fence-is-open"),
        pytest.param(f"one ` tick\n{GO}", RUNS, id="below-a-lone-tick"),
    ],
)
def test_a_command_is_a_line_of_its_own(body: str, commands: tuple[Command, ...]) -> None:
    """Only a spoken line that starts with the trigger is a command, and the sieve lets it pass."""
    assert parse(body) == commands
    assert asks_for_something(body)


INERT = [
    pytest.param(f"please {GO}", id="inside-a-sentence"),
    pytest.param("/mergewardreview", id="another-word"),
    pytest.param("/mergeward-review", id="a-longer-name"),
    pytest.param("/mergeward/review", id="a-path"),
    pytest.param("@mergeward review", id="a-mention"),
    pytest.param(f"> {GO}", id="quoted"),
    pytest.param(f">{GO}", id="quoted-tight"),
    pytest.param(f"> > {GO}", id="quoted-twice"),
    pytest.param(f"> please\n{GO}", id="taken-into-a-quote"),
    pytest.param(f"- > please\n  {GO}", id="taken-into-a-quote-in-a-list"),
    pytest.param(f"> a\u2028{GO}", id="line-separator-in-a-quote"),
    pytest.param(f"> a\u0085{GO}", id="next-line-in-a-quote"),
    pytest.param(f"> a\x0b{GO}\x0c{GO}", id="other-separators-in-a-quote"),
    pytest.param(f"```\n{GO}\n```", id="fenced"),
    pytest.param(f"````\n```\n{GO}\n````", id="longer-fence"),
    pytest.param(f"~~~\n{GO}\n~~~", id="tilde-fence"),
    pytest.param(f"~~~\n```\n{GO}\n~~~", id="other-sign-in-a-fence"),
    pytest.param(f"~~~\n{GO}", id="unclosed-fence"),
    pytest.param(f"``` sh\n{GO}", id="unclosed-fence-with-a-word"),
    pytest.param(f"```\n      ```\n{GO}\n```", id="fence-that-is-not-closed-yet"),
    pytest.param(f"- ```\n  {GO}\n  ```", id="fence-in-a-list"),
    pytest.param(f"- a\n\n  ```\n  {GO}\n  ```", id="fence-below-a-list-item"),
    pytest.param(f"    {GO}", id="indented-code"),
    pytest.param(f"\t{GO}", id="tab-code"),
    pytest.param(f"  \t{GO}", id="spaces-and-tab-code"),
    pytest.param(f"`{GO}`", id="inline-code"),
    pytest.param(f"`\n{GO}\n`", id="code-over-lines"),
    pytest.param(f"``a `\n{GO}\nb``", id="longer-code-over-lines"),
    pytest.param(f"<!--\n{GO}\n-->", id="html-comment"),
    pytest.param(f"<!--\n\n{GO}\n\n-->", id="html-comment-with-empty-lines"),
    pytest.param(f"<!-- {GO}", id="unclosed-html-comment"),
    pytest.param(f"Nice.\n\n<!--\n{GO}", id="unclosed-html-comment-below-words"),
    pytest.param(f"Nice. <!--\n{GO}", id="unclosed-html-comment-after-words"),
    pytest.param(f"Nice. <!--\n\n{GO}\n\n-->", id="html-comment-after-words"),
    pytest.param(f"- <!--\n{GO}\n-->", id="html-comment-in-a-list"),
    pytest.param(f"<pre>\n\n{GO}\n</pre>", id="pre"),
    pytest.param(f"<blockquote>\n\n{GO}\n\n</blockquote>", id="html-quote"),
    pytest.param(f"Look: <code>\n{GO}\n</code>", id="html-code"),
    pytest.param(f"<div title='\n{GO}\n'>", id="attribute"),
    pytest.param(f"a <a title='\n{GO}\n'>b</a>", id="attribute-in-a-sentence"),
    pytest.param(f"![\n{GO}\n](x.png)", id="alternative-text"),
    pytest.param(f'[a](b "\n{GO}\n")', id="title-of-a-link"),
    pytest.param(f'[a]: b "\n{GO}\n"', id="title-of-a-definition"),
    pytest.param(f"- {GO}", id="list-item"),
    pytest.param(f"| {GO} |", id="table"),
    pytest.param(f"\\{GO}", id="escaped"),
    pytest.param("&#47;mergeward review", id="entity"),
    pytest.param("", id="nothing"),
]


@pytest.mark.parametrize("body", INERT)
def test_who_shows_a_command_gives_none(body: str) -> None:
    """Quotes, code, HTML and what the page hides are not commands, and get no answer."""
    assert parse(body) == ()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("break glass", ""),
        ("  BREAK\t Glass\r\n", ""),
        ("\r\n\nBreak glass: production\nis down!", "production is down!"),
        ("break glass the site is down", "the site is down"),
        ("break\u00a0glass.", ""),
    ],
)
def test_break_glass_is_the_whole_comment(body: str, why: str) -> None:
    """Any case, with a reason or without; the sieve at the door lets it pass."""
    assert parse(body) == (BreakGlass(why),)
    assert asks_for_something(body)


@pytest.mark.parametrize(
    "body",
    [
        "we should not break glass",
        "> break glass",
        "`break glass`",
        "    break glass",
        "```\nbreak glass\n```",
        "<!-- break glass",
        "break glassware",
        "break glass?",
        "break\nglass",
        "/break glass",
    ],
)
def test_what_only_speaks_of_it_breaks_no_glass(body: str) -> None:
    """Nothing before it, no quote, no code, and no question."""
    assert parse(body) == ()


def test_break_glass_and_a_command_are_not_guessed_at() -> None:
    """It is the whole comment or nothing: the commands below it are, and the answer says so."""
    assert parse(f"break glass\n{GO}") == (GlassNotAlone(), Review())


def test_more_commands_than_anybody_means_are_counted() -> None:
    """Nobody makes us write a book; what is not carried out is said."""
    body = "\n".join(f"/mergeward fix F{number}" for number in range(1, MOST_COMMANDS + 4))
    commands = parse(body)
    assert commands[-1] == TooMany(3)
    assert len(commands) == MOST_COMMANDS + 1


COMMANDS = st.sampled_from(
    ["review", "fix F1", "fix all", "unfix F1", "dismiss F2 no", "stop", "resume", "status", "x"]
).map("/mergeward {}".format)
WORDS = st.sampled_from(["", "Hello.", "- a", "* b", "1. c", "# d", "---", "| e |", "f\tg"])
TEXTS = st.lists(st.one_of(COMMANDS, WORDS, st.just("break glass")), min_size=1, max_size=6)


@given(TEXTS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_quoting_any_command_makes_it_inert(lines: list[str], newline: str) -> None:
    """GitHub's quote reply, fences of both kinds, indentation, ticks, HTML comments, `pre`."""
    text = newline.join(lines)
    quoted = newline.join(f"> {line}" for line in lines)
    assert parse(quoted) == ()
    assert parse(f"{quoted}{newline}{newline}No.") == ()
    for fence in ("```", "~~~~"):
        assert parse(f"{fence}{newline}{text}{newline}{fence}") == ()
        assert parse(f"{fence}{newline}{text}") == ()
    assert parse(newline.join(f"    {line}" for line in lines)) == ()
    assert parse(newline.join(f"`{line}`" for line in lines)) == ()
    assert parse(f"<!--{newline}{text}{newline}-->") == ()
    assert parse(f"<pre>{newline}{text}{newline}</pre>") == ()


@given(st.text())
def test_any_text_can_be_read(body: str) -> None:
    """No comment can make the grammar fail, and without the trigger nothing is a command."""
    commands = parse(body)
    assert commands == () or "/mergeward" in body.casefold() or "glass" in body.casefold()


PIECES = st.sampled_from(
    [
        *(
            "`",
            "``",
            "```",
            "~~~",
            "\n<!--",
            "-->",
            "> ",
            "    ",
            "  ",
            "- ",
            "1. ",
            "\\",
            "\t",
            "x",
        ),
        *("<div>", "&lt;", "*", "\n", "\n\n"),
        *("# ", "---", "===", ")", "![", "]", '"', "/mergeward fix F1", "/mergeward x\n"),
        *("\n/mergeward fix F1", "\n/mergeward fix F2\n"),
    ]
)


@given(st.lists(PIECES, max_size=14).map("".join))
@example("`a\n- b`\n/mergeward fix F1\n`c\n")
@example("a\n    ```\n/mergeward fix F1\n    ```")
def test_what_is_obeyed_is_what_the_page_shows(body: str) -> None:
    """A CommonMark parser, as GitHub's is one, shows each line that we obey as prose."""
    shown = Counter(_words(prose_lines(body)))
    assert Counter(_words(spoken_lines(body))) <= shown


def _words(lines: Iterable[str]) -> Iterator[str]:
    """The trigger and the verb of each line that begins with them."""
    for line in lines:
        if found := re.match(r"/mergeward \w+", line):
            yield found.group()


def prose_lines(body: str) -> Iterator[str]:
    """Lines of paragraphs outside quotes that begin with plain text, as the parser has them."""
    depth = 0
    for token in MarkdownIt("commonmark").parse(body):
        depth += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type == "inline" and not depth:
            yield from _plain(token.children or [])


def _plain(children: list[Token]) -> Iterator[str]:
    begins = True
    for child in children:
        if begins and child.type == "text":
            yield child.content.strip()
        begins = child.type in ("softbreak", "hardbreak")


@pytest.mark.parametrize(
    "piece",
    [
        *("`", "<!--", "<a '", '<a "', "![", "](", "* ", "- ", "> ", "\t", "<!-- ", "[", "~~~\n"),
        *(
            "\n",
            "/mergeward x <!-- ",
            "/mergeward fix F1\n",
            "` `` ",
            "<code>",
            "***     ",
            "<a b=c ",
        ),
    ],
)
def test_hostile_text_costs_no_time(piece: str) -> None:
    """The work grows with the length of the text and not with its square."""
    body = f"/mergeward x\n{piece * (70_000 // len(piece))}\n/mergeward y -->"
    began = time.process_time()
    parse(body)
    assert time.process_time() - began < 2
