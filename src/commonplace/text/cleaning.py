r"""Clean text before it is stored, cut it into chunks, estimate its tokens.  Pure.

The rule for input: line ends become ``\n``; control characters other than tab and newline, bidirectional
overrides and invisible tag characters are dropped and counted; blank space around the whole is stripped;
text that is not valid Unicode (a lone surrogate, left by bytes that were not UTF-8) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from commonplace.model.errors import InvalidInput

#: Dropped from every text: invisible characters that can fool a terminal, a reader or a model.
_UNSEEN = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f"
#: Stored but never shown: zero width, marks of direction, and selectors that could smuggle words.
_FAINT = "\u00ad\u061c\u180e\u200b-\u200f\u2060-\u206f\U000e0080-\U000e0fff"
# Patterns as text: re compiles them on first use, and a recall uses neither.
_unseen = f"[{_UNSEEN}]"
_wide = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff]"

CHUNK_CHARS = 1200  # about 300 tokens: long enough to be understood alone, short enough to fit a brief


def clean(text: str, *, what: str) -> tuple[str, int]:
    """Return the text as it is stored, and how many characters were dropped."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} is not valid Unicode at character {error.start}: its bytes were not UTF-8"
        ) from error
    lines = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    kept, dropped = re.subn(_unseen, "", lines)
    return kept.strip(), dropped


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: one for four characters, or for each character of a script without spaces."""
    wide = len(re.findall(_wide, text))
    return wide + -(-(len(text) - wide) // 4)


def chunks(text: str, *, most: int = CHUNK_CHARS) -> Iterator[str]:
    """Cut a long text at a blank line, a line end, a sentence, a space, else anywhere."""
    while len(text) > most:
        cut = next(
            (at for mark in ("\n\n", "\n", ". ", " ") if (at := text.rfind(mark, most // 3, most)) > 0), most - 1
        )
        head, text = text[: cut + 1].strip(), text[cut + 1 :].strip()
        if head:
            yield head
    if text:
        yield text


def slug(text: str) -> str:
    """Return a category as it is stored: lower-case letters, digits, underscores; ``general`` if nothing is left."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "general"


def one_line(text: str) -> str:
    """Return a text on one line with its line ends shown, all that Unicode knows (also U+2028)."""
    return " ⏎ ".join(part for line in text.splitlines() if (part := line.strip()))


def plain_line(text: str) -> str:
    """Return a text on one line without invisible characters, for a model or a terminal."""
    return re.sub(f"[{_UNSEEN}{_FAINT}]", "", one_line(text))


def plural(count: int, what: str) -> str:
    """A count with its noun: 1 record, 2 records, 2 memories."""
    if count == 1:
        return f"{count} {what}"
    return f"{count} {what[:-1]}ies" if what.endswith("ry") else f"{count} {what}s"
