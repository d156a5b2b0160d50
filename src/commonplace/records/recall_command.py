"""``commonplace recall``: the command that runs on every prompt, so it starts without a command-line library.

Its options are declared once, below.  ``simple`` parses ordinary calls by that table; everything else, help and
mistakes included, goes to the click command that ``commands.recall`` builds from the same table.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.app import App, open_app
from commonplace.cli.terminal import print_note, print_text, short_path
from commonplace.config.project import ASSISTANT, PROJECT
from commonplace.engine import rendering as render
from commonplace.files.folders import RecallAnswer
from commonplace.model.queries import ANY_STATE, State
from commonplace.model.records import Trust
from commonplace.model.values import Value


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
    Option(name="format", choices=("snippets", "prompt", "json"), default="snippets", help="Output format."),
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
    Option(name="explain", flag=True, help="Show why each hit ranks where it does."),
)
QUESTION = "question"

HELP = """Search memory with a question in plain words; the best hits come first.

Searches the memory of the project and your own together.  Files that were edited by hand are synced first.  `-` reads
the question from standard input; a question without words returns the newest records.

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
    with open_app() as app:
        brief = app.recall(question, **_options(asked, app))
        notes = [*app.where.hints, *map(short_path, brief.notes)]
        _SHOWN["json" if asked["json"] else asked["format"]](brief, app, notes, explain=asked["explain"])
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
        "states": ANY_STATE if asked["state"] == "all" else [State(asked["state"])],
        "trusts": None if asked["trust"] is None else [Trust[asked["trust"].upper()]],
    }


def _snippets(brief: RecallAnswer, _app: App, notes: Sequence[str], *, explain: bool) -> None:
    references = {key: short_path(path) for key, path in brief.references.items()}
    lines = [
        render.snippets([hit], references, question=brief.recall.query)
        + (f"\n      {render.explanation(hit)}" if explain else "")
        for hit in brief.hits
    ]
    if lines:
        print_text("\n".join(lines))
    _progress(notes if brief.hits else [*notes, "Nothing found."])


def _prompt(brief: RecallAnswer, app: App, notes: Sequence[str], *, explain: bool) -> None:
    references = {key: short_path(path) for key, path in brief.references.items()}
    if brief.hits:
        print_text(render.prompt(brief.hits, references, secret=app.secret()))
    _progress([*notes, *([render.explanation(hit) for hit in brief.hits] if explain else [])])


def _json(brief: RecallAnswer, _app: App, notes: Sequence[str], *, explain: bool) -> None:
    print_text(render.as_json(brief.recall.query, brief.hits, brief.references, explain=explain, notes=notes))
    _progress(notes)


_SHOWN = {"snippets": _snippets, "prompt": _prompt, "json": _json}


def _progress(notes: Sequence[str]) -> None:
    for sentence in notes:
        print_note(sentence)
