"""Cut text into words, and words into pieces of a vocabulary, as bert-base-uncased does.  No model, no file.

Lower case, accents off, punctuation and Chinese characters each a word of their own; then the longest piece that the
vocabulary knows, again and again.  Unlike the original, nothing is special: ``[MASK]`` in a text is three words.  A
character that Unicode gained after the running Python was built counts as a letter.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see local
if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_WORD = 100  # characters: a longer word has no pieces, as in the original
CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Rules(dict[int, str]):
    """For ``str.translate``: what each character becomes, found out when it is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = text = _ascii(chr(code)) if code < 128 else _other(chr(code))  # noqa: PLR2004
        return text


def _ascii(character: str) -> str:
    if character.isalnum():
        return character.lower()
    if character in "\t\n\r ":
        return " "
    return f" {character} " if character.isprintable() else ""


def _other(character: str) -> str:
    from unicodedata import category, normalize  # noqa: PLC0415 - most text is ASCII, and the tables are large

    if any(low <= ord(character) <= high for low, high in CHINESE):
        return f" {normalize('NFD', character)} "
    if character == "\ufffd" or category(character) in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    if character.isspace():
        return " "
    bare = [part for part in normalize("NFD", character) if category(part) != "Mn"]
    return "".join(f" {part} " if category(part)[0] == "P" else _lower(part) for part in bare)


def _lower(character: str) -> str:
    return _RULES[ord(character)] if character.isascii() else character.lower()


_RULES = _Rules()


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    return text.translate(_RULES).split()


def pieces(word: str, find: Callable[[bytes], int | None]) -> list[int]:
    """The numbers of a word's pieces, longest first match; empty if the word cannot be put together from any.

    ``find`` gives the number of a vocabulary entry, in UTF-8, or None.
    """
    if len(word) > LONGEST_WORD:
        return []
    found = []
    start = 0
    while start < len(word):
        prefix = b"##" if start else b""
        for end in range(len(word), start, -1):
            number = find(prefix + word[start:end].encode())
            if number is not None:
                break
        else:
            return []
        found.append(number)
        start = end
    return found
