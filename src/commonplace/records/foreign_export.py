"""Records as other tools read them: a block between two marks in AGENTS.md, a note in Claude Code's folder.  Pure.

Only the text between our marks is ours; the rest of the file is never changed.  Only live records are exported that a
person wrote or approved: there they are read as instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.model.errors import InvalidInput
from commonplace.model.records import CATEGORIES, Record
from commonplace.records.foreign import BEGIN, END
from commonplace.text.blocks import escape_tags
from commonplace.text.cleaning import plain_line

TITLE = "What earlier sessions have learned"
NOTE = "commonplace.md"  # the note in Claude Code's folder
_OPENING = f"{BEGIN} (written by `commonplace export`; edit the records, not these lines) -->"


def section(records: Sequence[Record], *, level: int = 2) -> str:
    """Return the records with a person's authority as Markdown, by category, newest first."""
    fit = [record for record in records if record.has_authority]
    lines = [f"{'#' * level} {TITLE}"]
    for category in sorted({record.category for record in fit}, key=_place):
        lines += ["", f"{'#' * (level + 1)} {category.capitalize()}", ""]
        lines += [
            f"- {escape_tags(plain_line(record.content))} (record {record.short})"
            for record in fit
            if record.category == category
        ]
    return "\n".join(lines if fit else [*lines, "", "Nothing yet."]) + "\n"


def _place(category: str) -> tuple[int, str]:
    known = list(CATEGORIES)
    return known.index(category) if category in known else len(known), category


def between_marks(text: str, block: str, *, file: str) -> str:
    """Return a file's text with our block in it: where it was before, else at the end."""
    ours = f"{_OPENING}\n{block.strip()}\n{END}\n"
    begun, ended = text.count(BEGIN), text.count(END)
    if begun != ended or begun > 1:
        raise InvalidInput(
            f"{file!r} has {begun} beginnings and {ended} ends of our block; mend its marks by hand first"
        )
    if text.find(END) < text.find(BEGIN):
        raise InvalidInput(f"{file!r} has the end of our block before its beginning; mend its marks by hand first")
    if not begun:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{ours}"
    before, rest = text.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    return f"{before}{ours}{after.removeprefix(chr(10))}"


def index_line() -> str:
    """Return the line for our note in the index of Claude Code's folder."""
    return f"- [{TITLE}]({NOTE}): kept by Commonplace; `commonplace recall` finds more."
