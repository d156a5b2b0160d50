"""Print to the terminal: answers on standard output, everything else on standard error.

No control character of a record, a path or a question gets there: what could move the cursor or turn the direction of
text is shown as JSON would write it.  A recall loads this, so it imports next to nothing.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping

NAME = "commonplace"
_UNWRITABLE = "commonplace.unwritable"  # the name under which Python knows what to do about them

# Acts instead of being read.
_UNSEEN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"


FORCE = "COMMONPLACE_FORCE_TTY"  # print as for a terminal of so many columns, also where output is piped
COLOR = "COMMONPLACE_COLOR"  # what `--color` says, for everything that the command starts: always, never, auto


def is_terminal() -> bool:
    """Whether people read the output; else it is one line per record, for programs."""
    return bool(os.environ.get(FORCE)) or sys.stdout.isatty()


def color_choice() -> str:
    """Return what the user wants of colours: always, never or auto."""
    choice = os.environ.get(COLOR, "auto")
    return choice if choice in ("always", "never") else "auto"


def write_row(*cells: str) -> None:
    """Write one line for programs: cells with tabs between them, each on one line and without tabs."""
    sys.stdout.write("\t".join(visible(" ".join(cell.split())) for cell in cells) + "\n")


def print_text(text: str) -> None:
    """Write an answer."""
    sys.stdout.write(visible(text) + "\n")


def print_note(text: str) -> None:
    """Write something besides the answer: one sentence."""
    sys.stderr.write(f"{NAME}: {visible(text)}\n")


def print_json(data: Mapping[str, object]) -> None:
    """Write an answer for programs."""
    import json  # noqa: PLC0415 - a recall renders its own

    print_text(json.dumps(data, ensure_ascii=False, indent=2))


def visible(text: str) -> str:
    """The text without anything that acts instead of being read; JSON stays JSON."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    import re  # noqa: PLC0415 - nearly every text is printable

    return re.sub(_UNSEEN, lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def short_path(path: str) -> str:
    """A path as people write it from where they are."""
    around = os.getcwd().rstrip(os.sep) + os.sep
    return path.removeprefix(around)


def prepare_streams() -> None:
    """Make every text readable and writable, in any encoding and without a terminal."""
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - likewise
    sys.stderr = sys.stderr or sys.stdout
    codecs.register_error(_UNWRITABLE, _unwritable)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_UNWRITABLE)


def _unwritable(error: UnicodeError) -> tuple[str, int]:
    """What the terminal's encoding does not have, as JSON would write it: an answer for programs stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_escape, error.object[error.start : error.end])), error.end


def discard_output() -> None:
    """Discard what is left in the buffer: the reader has closed the pipe."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, sys.stdout.fileno())
    os.close(descriptor)
