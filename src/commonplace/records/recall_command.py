"""``commonplace recall``: the command that runs on every prompt, so it starts without a command-line library.

Its options are declared once, below.  ``simple`` parses ordinary calls by that table; everything else, help and
mistakes included, goes to the click command that ``commands.recall`` builds from the same table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.app import App, open_app
from commonplace.cli.terminal import is_terminal, print_note, print_text, short_path, write_row
from commonplace.config.paths import STORE, require_store
from commonplace.config.project import ASSISTANT, PROJECT
from commonplace.engine import rendering as render
from commonplace.files.folders import RecallAnswer
from commonplace.model.queries import ANY_STATE, State
from commonplace.model.records import Trust
from commonplace.model.values import Value
from commonplace.text.question import PROFILES


class Option(Value):
    """One option of the command."""

    name: str  #: as it is typed, without the dashes
    help: str
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()
    number: bool = False
    flag: bool = False
    many: bool = False  #: may be given several times
    default: str | None = None

    @property
    def field(self) -> str:
        """Its name as a field."""
        return self.name.replace("-", "_")

    @property
    def empty(self) -> Any:
        """What it is when it was not given."""
        return [] if self.many else False if self.flag else self.default

    def read(self, text: str) -> Any:
        """The value in a text; None if it is none."""
        if self.number:
            return int(text) if text.isascii() and text.isdecimal() else None
        return None if self.choices and text not in self.choices else text


OPTIONS = (
    Option(
        name="format",
        choices=("snippets", "prompt", "json", "lines"),
        help="Output format (default: for people on a terminal, else lines with tabs between fields).",
    ),
    Option(name="json", flag=True, help="Print JSON, as --format json does."),
    Option(name="scope", choices=(PROJECT, ASSISTANT), many=True, help="Search this memory only (default: both)."),
    Option(name="category", metavar="CATEGORY", many=True, help="Only records of this category; repeatable."),
    Option(name="tag", metavar="TAG", many=True, help="Only records with this tag; repeated: with all of them."),
    Option(name="trust", choices=("user", "agent", "external"), help="Only records that are trusted so."),
    Option(
        name="state",
        choices=("live", "archived", "held", "expired", "all"),
        default="live",
        help="Only records in this state.",
    ),
    Option(
        name="limit", metavar="N", number=True, help="Maximum number of hits (default: recall_limit in the settings)."
    ),
    Option(name="budget", metavar="TOKENS", number=True, help="Maximum number of tokens."),
    Option(name="as-of", metavar="DATE", help="Search what held then: a date, or a time ago (7d)."),
    Option(
        name="profile",
        choices=("past", "work"),
        help="Rank for a question about the past, or for the work at hand (default: by its form).",
    ),
    Option(name="paths", flag=True, help="Show the file of each hit."),
    Option(name="explain", flag=True, help="Show why each hit ranks where it does."),
)
QUESTION = "question"

HELP = """Search memory with a question in plain words; the best hits come first.

Searches the memory of the project and your own together.  Files that were edited by hand are synced first.  `-` reads
the question from standard input; a question without words returns the newest records.  What is between quotation marks
is found word for word.

On a terminal, results are wrapped and matching words stand out.  Piped, each hit is one line with tabs between score,
id, category, scope, date, tags, words and file; --json prints objects.

Examples:
  commonplace search "how do we deploy?"
  commonplace search "package manager" --format prompt --budget 500
  commonplace search "which database" --as-of 2026-03-01 --explain
"""


def simple(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The question and the options of an ordinary call; None if it is not one."""
    known = {f"--{option.name}": option for option in OPTIONS}
    asked: dict[str, Any] = {option.field: option.empty for option in OPTIONS}
    words: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            words += rest
        elif not argument.startswith("-") or argument == "-":
            words.append(argument)
        elif not _option(argument, known, rest, asked):
            return None
    return {**asked, QUESTION: words} if words else None


def _option(argument: str, known: Mapping[str, Option], rest: Any, asked: dict[str, Any]) -> bool:
    name, equals, attached = argument.partition("=")
    option = known.get(name)
    if option is None or (option.flag and equals):
        return False
    value = True if option.flag else option.read(attached if equals else next(rest, ""))
    if value is None:
        return False
    asked[option.field] = [*asked[option.field], value] if option.many else value
    return True


def quick(arguments: Sequence[str]) -> int | None:
    """Run an ordinary call and return its exit code; None if it is not one."""
    asked = simple(arguments)
    return None if asked is None else run(asked)


def run(asked: Mapping[str, Any]) -> int:
    """Recall and print the hits."""
    question = _question(asked[QUESTION])
    if named := os.environ.get(STORE):
        require_store(named)
    with open_app() as app:
        brief = app.recall(question, **_options(asked, app))
        notes = [*app.where.hints, *map(short_path, brief.notes)]
        form = "json" if asked["json"] else asked["format"] or ("screen" if is_terminal() else "lines")
        _SHOWN[form](brief, app, notes, asked)
    return 0


def _question(words: Sequence[str]) -> str:
    return sys.stdin.buffer.read().decode(errors="replace") if list(words) == ["-"] else " ".join(words)


def _options(asked: Mapping[str, Any], app: App) -> dict[str, Any]:
    settings, as_of = app.where.project_settings, None
    if asked["as_of"] is not None:
        from commonplace.cli.dates import since  # noqa: PLC0415 - few questions are about the past

        as_of = since(asked["as_of"], app.clock())
    return {
        "scopes": [app.where.scope(name) for name in asked["scope"]] or None,
        "categories": asked["category"] or None,
        "tags": asked["tag"],
        "limit": settings["recall_limit"] if asked["limit"] is None else asked["limit"],
        "budget": settings["recall_budget"] if asked["budget"] is None else asked["budget"],
        "as_of": as_of,
        "profile": None if asked["profile"] is None else PROFILES[asked["profile"]],
        "states": ANY_STATE if asked["state"] == "all" else [State(asked["state"])],
        "trusts": None if asked["trust"] is None else [Trust[asked["trust"].upper()]],
    }


def _screen(brief: RecallAnswer, app: App, notes: Sequence[str], asked: Mapping[str, Any]) -> None:
    from commonplace.cli.screen import Screen, show  # noqa: PLC0415 - programs get lines

    screen = Screen(now=app.clock())
    blocks = []
    for hit in brief.hits:
        found, path = hit.record or hit.chunk, brief.references.get(hit.id)
        block = screen.result(
            hit, label=app.where.label(found.scope) if found else "", query=brief.recall.query,
            path=short_path(path) if path else None, show_path=asked["paths"],
        )  # fmt: skip
        blocks.append(block + (f"\n  {render.explanation(hit)}" if asked["explain"] else ""))
    if blocks:
        show(blocks)
    _progress(notes if blocks else [*notes, "Nothing found."])


def _lines(brief: RecallAnswer, app: App, notes: Sequence[str], asked: Mapping[str, Any]) -> None:
    for hit in brief.hits:
        path = short_path(brief.references.get(hit.id, ""))
        why = [render.explanation(hit)] if asked["explain"] else []
        if hit.record:
            date = hit.record.occurred_at or hit.record.created_at
            facts = [hit.record.category, app.where.label(hit.record.scope), f"{date:%Y-%m-%d}"]
            cells = [hit.id, *facts, ",".join(sorted(hit.record.tags))]
        else:
            chunk = hit.chunk
            date_text = f"{chunk.occurred_at:%Y-%m-%d}" if chunk and chunk.occurred_at else ""
            kind, scope = (chunk.kind.value, app.where.label(chunk.scope)) if chunk else ("", "")
            cells = [hit.id, kind, scope, date_text, ""]
        write_row(f"{hit.score:.2f}", *cells, hit.text, path, *why)
    _progress(notes if brief.hits else [*notes, "Nothing found."])


def _snippets(brief: RecallAnswer, _app: App, notes: Sequence[str], asked: Mapping[str, Any]) -> None:
    references = {key: short_path(path) for key, path in brief.references.items()}
    lines = [
        render.snippets([hit], references, question=brief.recall.query)
        + (f"\n      {render.explanation(hit)}" if asked["explain"] else "")
        for hit in brief.hits
    ]
    if lines:
        print_text("\n".join(lines))
    _progress(notes if brief.hits else [*notes, "Nothing found."])


def _prompt(brief: RecallAnswer, app: App, notes: Sequence[str], asked: Mapping[str, Any]) -> None:
    references = {key: short_path(path) for key, path in brief.references.items()}
    if brief.hits:
        print_text(render.prompt(brief.hits, references, secret=app.secret()))
    _progress([*notes, *([render.explanation(hit) for hit in brief.hits] if asked["explain"] else [])])


def _json(brief: RecallAnswer, app: App, notes: Sequence[str], asked: Mapping[str, Any]) -> None:
    from commonplace.wire import encode  # noqa: PLC0415 - the one form that needs it

    now = app.clock()
    records = {}
    for hit in brief.hits:
        if hit.record:
            whole = {name: value for name, value in encode(hit.record).items() if name != "usage"}  # recalls count it
            records[hit.id] = whole | {"state": hit.record.state(now).value, "path": brief.references.get(hit.id)}
    query, hits, references = brief.recall.query, brief.hits, brief.references
    print_text(render.as_json(query, hits, references, explain=asked["explain"], notes=notes, records=records))
    _progress(notes)


_SHOWN = {"snippets": _snippets, "prompt": _prompt, "json": _json, "lines": _lines, "screen": _screen}


def _progress(notes: Sequence[str]) -> None:
    for sentence in notes:
        print_note(sentence)
