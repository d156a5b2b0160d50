"""Which of the known words a mistyped one was probably meant to be.  Pure."""

from __future__ import annotations

from collections.abc import Iterable

CLOSENESS = 0.6  # of difflib: two of three letters in order


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like this one; None if none is."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    names = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), names, n=1, cutoff=CLOSENESS)
    begun = [name for name in names if name.startswith(word.lower())] if word else []
    return names[found[0]] if found else names[begun[0]] if len(begun) == 1 else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that asks whether the closest known word was meant; "" if none is close."""
    meant = closest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def unknown_category(category: str, known: Iterable[str]) -> str:
    """Return the sentence about a category that is none."""
    return f"{category!r} is not a category; use one of {', '.join(known)}{suggestion(category, known)}"
