"""The least that a text has to say to be worth a record.  Pure."""

from __future__ import annotations

from commonplace.text.words import terms

CONTENT_CHARS = 8  # "Use pnpm": shorter is no sentence
CONTENT_WORDS = 2
_EMPTY_WORDS = frozenset(
    """a an the is are was were be it this that these those i you we they he she do does did done to of in on at for
    and or but not no yes ok okay please thanks thank so just very really will would can could should there here
    """.split()  # noqa: SIM905 - fifty quoted words are harder to read
)


def worthless_reason(content: str) -> str | None:
    """Why a text is no fact: the least that a record has to say."""
    text = " ".join(content.split())
    words = [word for word in terms(text) if word not in _EMPTY_WORDS]
    if len(text) < CONTENT_CHARS or len(words) < CONTENT_WORDS:
        return "too short to mean anything"
    if text.endswith("?"):
        return "a question"
    return None
