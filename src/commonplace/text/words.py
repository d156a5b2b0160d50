"""Turn text into search terms: ``terms`` for what is stored, ``plan`` for a question.

Pure, and the only tokenizer: a store indexes exactly these terms and never cuts text itself.  Not here: ranking,
synonyms, prefix search.  Both sides read a text with the same pattern and the same readers, so a stored text is
found by the words in which it was written.

A term has 1 to 64 characters: ASCII letters and digits, ``_ - . / : @ # +``, and beyond ASCII letters, numbers, marks
and symbols (category So); all of it case-folded.  It never starts or ends with ``.``, ``:`` or ``-``.

A token is read in one of these ways, and its parts are read in the same ways again:

===================== ===============================================================================================
running, Café, APIs   a word: without accents, and stemmed when it is ASCII then
user's, don't         a contraction: ``user``, ``dont``; ``O'Brien`` is ``obrien``, and ``brien`` finds it
foo_bar, a/b.py, c++  a compound: the whole as it is, and its parts; the outermost mark splits first
e-mail, node.js       a compound of two words: also both in one, ``email`` and ``nodejs``
useEffect             a compound by its humps: the whole, and its parts
gpt4, 30min           a number next to two letters or more: the whole, and both; ``E1234`` and ``v2`` have no parts
2024-05-17            a date: the day, under its month ``2024-05`` and its year ``2024``
v2.1.3, 10.0.0.1      a version: with and without its v, under ``2.1`` and ``v2``
1,200                 a number: ``1200``
U.S., p.m.            initials: ``us``, ``pm``
東京都, ไทย, 서울     a script without spaces (and Hangul): characters and pairs; a question searches the pairs
🎉                    a symbol is a word; frames, blocks and spinners are not
===================== ===============================================================================================

Accents go where they are accents (Latin, Greek, Cyrillic; Hebrew and Arabic points); marks of other scripts stay.
Format characters vanish (a joiner, a soft hyphen), but the zero-width space divides.  Control characters, NUL, lone
surrogates, private and unassigned code points divide.  So does all other punctuation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from commonplace.model.queries import Query, Word
from commonplace.text.stem import stem

TERM_CHARS = 64  # a digest in hex fits; a pasted key does not fill the index
QUERY_WORDS = 64  # a paragraph's worth: more makes a question slower and no clearer
TOKEN_PARTS = 16  # a question for a longer path asks for its beginning only
HUMPS = 8  # a name has fewer; base64 has more
NUMBERED_CHARS = 24  # as in sha256sum; a longer mix of letters and digits is a digest or a key
VERSION_NUMBERS = 4  # as an address; longer dotted runs are outlines and object identifiers

# Every character of a script without spaces gets one of these before it: a control character, which folded text cannot
# hold otherwise.  Naming the scripts in the pattern instead would cost each process 15 ms of compiling.
_LETTER, _MARK = "\x80", "\x81"

_RUN = r"[^\x00-/:-@\[-^`{-\x81]+"
_JOINT = r"(?:[-.@#+']|::?|/\.?|(?<=[0-9]),(?=[0-9]{3}(?![0-9])))"
_TOKEN = re.compile(rf"[@#]?{_RUN}(?:{_JOINT}{_RUN})*[+#]*|(?:[\x80\x81].)+")
# These two are compiled when first used, by re itself.
_HUMP = r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])(?![A-Z]s(?![a-z]))"  # HTTP|Server, but APIs
_DOT = r"(?<![0-9])\.|\.(?![0-9])"  # not the dot of 3.5

_MARKS = ":@#/+.-_"  # outermost first: paths with a line, paths, names, words
_EDGES = _MARKS + "',"
_DIGITS = "0123456789"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CONTRACTED = frozenset(("s", "m", "re", "ve", "ll", "d"))  # user's, I'm, we're, I've, we'll, she'd

# Words that say how something is asked.  Not among them, because they can say what: may, will, us, never.
_ASKING = """
a about again all am an and any are as at be been being both but by can cannot could did do does doing down each few for
from had has have having he her here hers herself him himself his how i if in into is it its itself just many me might
more most much must my myself no nor not of on once only onto or other our ours out over own same shall she should so
some such than that the their theirs them themselves then there these they this those to too under up very was we were
what when where which who whom whose why with would you your yours yourself arent cant couldnt didnt doesnt dont e.g etc
hadnt hasnt havent i.e isnt shouldnt wasnt werent wont wouldnt
"""
_STOP_WORDS = frozenset(_ASKING.split())

# Words that nearly every conversation has: "do it", "go on" and "can you take care of that next?" say nothing that a
# note could be found by, and a note that shares "go" with a question does not answer it.
_COMMON = """
able actually add allow almost already alright also although always another answer anybody anyone anything
anyway appear apply arrive ask assume attempt available avoid away back bad basically become begin believe best
better big bit bring build busy call came care carry case cause certain change check choose clear close come
common complete consider contain continue correct could count cover create current currently cut deal decide
definitely describe different do done drop early easy either else end enough especially even ever every
everybody everyone everything exactly example except exist expect explain fact fail fall far fast feel few
figure fill find fine finish first fix follow forget form forward free full general get give glad go going good
got great guess handle happen hard have hear hello help hey high hit hold hope idea important improve include
instead involve issue job join just keep kind know large last late later lead learn least leave left less let
like likely listen little long look lose lot love low main make manage many matter may maybe mean mention might
mind miss moment more morning most move much must name near necessary need never new next nice nobody none
normal note nothing notice now number obvious often ok okay old once one only open order other otherwise part
pass perfect perhaps person pick piece place plan play please plus point possible prefer prepare present pretty
probably problem produce provide put question quick quickly quite rather reach read ready real really reason
receive recent recently recommend reduce refer regard relate remain remember remind remove repeat replace reply
require rest return right run same save say second see seem seen send separate set several shall show side
similar simple simply since single sit situation small somebody someone something sometimes somewhere soon sorry
sort sound speak special specific spend stand start state stay still stop strange stuff suggest support suppose
sure switch take talk tell thank thanks thing think third though thought time today together told tomorrow too
top total toward true try turn two type under understand unless until update use useful usual various very via
view wait walk want watch way week well went whatever whenever wherever whether whole will wish within without
wonder work world worry worth would write wrong yeah yes yesterday yet
"""
# Some word of every sort of tool that ``tools`` knows.
_TOOL_WORDS = frozenset(
    ("manager", "managers", "formatter", "linter", "framework", "runner", "library", "database", "databases", "db",
     "orm", "bundler", "ci", "system", "queue", "broker", "cache", "frontend", "management", "validation",
     "infrastructure", "tool", "charts", "checker", "build", "hosting", "provider")
)  # fmt: skip
COMMON_WEIGHT = 0.3  # of a common word, beside another one of the same rarity

_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar, and below its extensions
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0x1780, 0x17FF),  # Khmer
    (0x1100, 0x11FF),  # Hangul letters, and below its syllables
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),
    (0x3005, 0x3007),  # Han, and below the rest of it
    (0x3021, 0x3029),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
    (0x3040, 0x31FF),  # Hiragana, Katakana, Bopomofo
    (0x1F1E6, 0x1F1FF),  # letters that make a flag in pairs
)
_ACCENTS = ((0, 0x6FF), (0x1AB0, 0x1AFF), (0x1DC0, 0x20FF), (0xFE00, 0xFE2F), (0xE0100, 0xE01EF))
_DECORATION = ((0x2400, 0x25FF), (0x2800, 0x28FF), (0xFFFC, 0xFFFD))  # frames, blocks; spinners; lost characters
_REPLACED = {
    "\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u200b": " ", "\u0640": "", "\u0131": "i",
    "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "ħ": "h", "Ħ": "H",
    "ŧ": "t", "Ŧ": "T", "þ": "th", "Þ": "Th", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe",
}  # fmt: skip
_DATES = ([4, 2, 2], [4, 2])  # digits

#: The forms of a token: terms that each stand for all of it; smaller tokens that do so together; and larger ones
#: under which it should be found though they do not mean it, as a day under its month.
Forms = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
Ways = tuple[tuple[str, ...], ...]


def terms(text: str) -> list[str]:
    """Return the terms of a text in order of appearance, each as often as it occurs."""
    found: list[str] = []
    for token in _TOKEN.findall(text if text.isascii() else _fold(text)):
        found += _terms_of(token)
    return found


def plan(query: str) -> Query:
    """Return the words of a question; any text is a legal one.

    Stop words are left out unless there is nothing else.  The text of a word is how it was read: in its own case, but
    without accents.
    """
    wanted: dict[Ways, str] = {}
    idle: dict[Ways, str] = {}
    seen: set[str] = set()
    for match in _TOKEN.finditer(query if query.isascii() else _fold(query)):
        token = match[0]
        if token not in seen:
            seen.add(token)
            words = idle if _is_stop_word(token) else wanted
            for text, ways in _query_words(token):
                words.setdefault(ways, text)
        if len(wanted) >= QUERY_WORDS:
            break
    chosen = list((wanted or idle).items())[:QUERY_WORDS]
    return Query(text=query, words=tuple([Word(text=text, terms=ways) for ways, text in chosen]))


def with_tools(query: Query) -> Query:
    """Return a question for a sort of tool, such as a package manager, so that the tools of that sort match it too."""
    if _TOOL_WORDS.isdisjoint([word.text.casefold() for word in query.words]):
        return query
    from commonplace.text.tools import named_groups  # noqa: PLC0415 - few questions ask for a tool

    named = named_groups(query.text)
    return query.replace(words=tuple([_or_tools(word, named.get(word.text.casefold(), "")) for word in query.words]))


def _or_tools(word: Word, tools: str) -> Word:
    found = [ways for tool in tools.split() for _, ways in _query_words(tool)]
    return word.replace(terms=tuple(dict.fromkeys([*word.terms, *(way for ways in found for way in ways)])))


def word_weights(words: Sequence[Word]) -> tuple[float, ...]:
    """Return what each word of a question counts, beside its rarity: common words count for less."""
    common = _common_stems()
    return tuple(
        [COMMON_WEIGHT if all(len(way) == 1 and way[0] in common for way in word.terms) else 1.0 for word in words]
    )


@lru_cache(maxsize=1)
def _common_stems() -> frozenset[str]:
    return frozenset(map(stem, _COMMON.split()))


def says_something(text: str) -> bool:
    """Whether a question has a word that says what it is about, not only how it is asked."""
    found = _TOKEN.finditer(text if text.isascii() else _fold(text))
    return any(not _is_stop_word(match[0]) and _query_words(match[0]) for match in found)


class _Folding(dict[int, str]):
    """The folded form of each character, computed when it first occurs."""

    def __missing__(self, code: int) -> str:
        return self.setdefault(code, _fold_character(chr(code)))


_FOLDING = _Folding({ord(char): text for char, text in _REPLACED.items()})


def _fold(text: str) -> str:
    """Reduce a text to ASCII, letters without accents, marks that matter and symbols; case stays, for the humps."""
    return unicodedata.normalize("NFKC", text).translate(_FOLDING)


def _fold_character(char: str) -> str:
    category = unicodedata.category(char)
    if char.isascii():
        return " " if category == "Cc" else char
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Cf" or _is_accent(char):
        return ""
    return _fold_visible(char, category) if category == "So" or category[0] in "LNM" else " "


def _fold_visible(char: str, category: str) -> str:
    """Return a letter, number, mark or symbol in the form that the pattern expects."""
    if _is_in(_UNSPACED, char):
        return (_MARK if category[0] == "M" else _LETTER) + char
    if category == "So":
        return " " if _is_in(_DECORATION, char) else f" {char} "
    plain = "".join([part for part in unicodedata.normalize("NFD", char) if not _is_accent(part)])
    return unicodedata.normalize("NFC", plain)


def _is_accent(char: str) -> bool:
    return unicodedata.category(char) in ("Mn", "Me") and _is_in(_ACCENTS, char)


def _is_in(ranges: tuple[tuple[int, int], ...], char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in ranges)


def _terms_of(token: str) -> tuple[str, ...]:
    """Return every term under which a token is found."""
    # A long token is not cached: a pasted blob would stay in memory for the life of a server.
    return _cached_terms(token) if len(token) <= TERM_CHARS else _find_terms(token)


def _find_terms(token: str) -> tuple[str, ...]:
    if token[0] in (_LETTER, _MARK):
        return _grams(token)
    exact, parts, larger = _read(token)
    return exact + tuple([term for part in parts + larger for term in _terms_of(part)])


_cached_terms = lru_cache(maxsize=16384)(_find_terms)


def _query_words(token: str) -> list[tuple[str, Ways]]:
    """Return the words of a question that a token makes, and the ways in which a text can hold each."""
    if token[0] in (_LETTER, _MARK):
        grams = _grams(token)
        return [(gram, ((gram,),)) for gram in grams[1::2] or grams]
    exact, parts, _ = _read(token)
    ways: list[tuple[str, ...]] = [(term,) for term in exact]
    if parts and len(parts) <= TOKEN_PARTS:
        ways.append(tuple([_read(part)[0][0] for part in parts]))
    return [(token, tuple(dict.fromkeys(ways)))] if ways else []


def _grams(token: str) -> tuple[str, ...]:
    """Return characters and overlapping pairs in turn; a character keeps its marks."""
    chars = [char for char in token.replace(_MARK, "").split(_LETTER) if char]
    pairs = [first + second for first, second in pairwise(chars)]
    mixed = [gram for both in zip(chars, pairs, strict=False) for gram in both]
    return tuple([gram[:TERM_CHARS] for gram in mixed + chars[-1:]])


def _is_stop_word(token: str) -> bool:
    return _strip_contraction(token).replace("'", "").casefold() in _STOP_WORDS


def _strip_contraction(token: str) -> str:
    """Remove a contracted ending: user's is user, we'll is we."""
    end = len(token)
    while (at := token.rfind("'", 0, end)) > 0 and token[at + 1 : end].casefold() in _CONTRACTED:
        end = at
    return token[:end]


def _read(token: str) -> Forms:
    """Return the forms of a token: those of the first reader that knows its shape."""
    token = _strip_contraction(token)
    if not token.strip(_EDGES):
        return (), (), ()
    for reader in _READERS:
        if forms := reader(token):
            exact, parts, larger = forms
            return tuple(dict.fromkeys([_clip(term) for term in exact])), parts, larger
    return (_clip(_stem_ascii(token.casefold())),), (), ()


def _clip(term: str) -> str:
    return term.replace("'", "").replace(",", "")[:TERM_CHARS].rstrip("/.:-@")


def _stem_ascii(word: str) -> str:
    return stem(word[:TERM_CHARS]) if word.isascii() and word.isalpha() else word


def _read_word(token: str) -> Forms | None:
    """Read a word: first for speed, since most tokens are words."""
    word = token.casefold()
    return ((_stem_ascii(word),), (), ()) if word.isalpha() and token[1:] == word[1:] else None


def _read_date(token: str) -> Forms | None:
    """Read 2024-05-17, 2024/05/17, 2024-05 and 2024-05-17T10:30:00Z."""
    word = token.casefold()
    date, _, time = word.partition("t")
    mark = date[4:5]
    numbers = date.split(mark) if mark in ("-", "/", ".") else []
    shape = [len(number) for number in numbers]
    if shape not in _DATES or not "".join(numbers).isdecimal() or not "01" <= numbers[1] <= "12":
        return None
    if shape == [4, 2] and (mark == "." or time or numbers[0][:2] not in ("19", "20")):
        return None
    day = "-".join(numbers)
    if time:
        return ((word,), (day, time[:5].strip(_EDGES)), ()) if time[:2].isdecimal() else None
    return (day,), (), ("-".join(numbers[:-1]),)


def _read_version(token: str) -> Forms | None:
    """Read v2.1.3, and any number with a dot."""
    word = token.casefold()
    numbers = word.removeprefix("v").split(".")
    if not 1 < len(numbers) <= VERSION_NUMBERS or not all(number.isdecimal() for number in numbers):
        return None
    larger = (".".join(numbers[:-1]),) if numbers[2:] else ()
    return ((word, ".".join(numbers)), (), (f"v{numbers[0]}", *larger)) if word[0] == "v" else ((word,), (), larger)


def _read_initials(token: str) -> Forms | None:
    """Read initials with dots: as one word, which is how others write them."""
    letters = token.casefold().split(".")
    known = len(letters) > 1 and all(len(letter) == 1 and letter.isalpha() for letter in letters)
    return ((_stem_ascii("".join(letters)),), (), ()) if known else None


def _read_thousands(token: str) -> Forms | None:
    """Read a number with its thousands apart; found by the groups too, because 100,200,300 may be a list."""
    return ((token.casefold(),), (), tuple(token.split(","))) if "," in token else None


def _read_compound(token: str) -> Forms | None:
    """Read what holds marks: the whole, and what the outermost mark divides."""
    whole = token.casefold()
    for mark in _MARKS:
        if mark not in token:
            continue
        pieces = re.split(_DOT, token) if mark == "." else token.split(mark)
        parts = tuple([piece.strip("',.:-") for piece in pieces if piece.strip(_EDGES)])
        if parts == (token,):
            continue
        if _is_one_letter(parts):
            return (whole,), (), ()
        if _is_place(mark, parts):
            return (whole,), parts[:1], parts[1:]
        return (whole, *_in_one(mark, parts)), parts, ()
    return None


def _is_one_letter(parts: tuple[str, ...]) -> bool:
    """Whether the marks are what matters: c++ is not found by c."""
    return len(parts) == 1 and len(parts[0]) == 1 and parts[0].isalpha()


def _is_place(mark: str, parts: tuple[str, ...]) -> bool:
    """Whether numbers follow a file or host: lines move, so a question for main.py:42 also matches main.py."""
    named = mark == ":" and ("." in parts[0] or "/" in parts[0])
    return named and len(parts) > 1 and all(part.isdecimal() for part in parts[1:])


def _in_one(mark: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return two words as the one that others write: e-mail as email, node.js as nodejs."""
    match parts:
        case (first, second) if mark in "-." and first.isalpha() and second.isalpha():
            return (_stem_ascii((first + second).casefold()),)
        case _:
            return ()


def _read_apostrophe(token: str) -> Forms | None:
    """Read an apostrophe inside: don't as dont; l'avion and O'Brien by their second half too."""
    pieces = token.split("'")
    if len(pieces) == 1:
        return None
    halves = tuple([piece for piece in pieces if len(piece) > 1]) if pieces[-1][2:] else ()
    return (_stem_ascii("".join(pieces).casefold()),), halves, ()


def _read_camel_case(token: str) -> Forms | None:
    """Read camelCase; its stem stands for it too, since a question in lower case is stemmed."""
    parts = tuple(re.split(_HUMP, token))
    if not 1 < len(parts) <= HUMPS:
        return None
    word = token.casefold()
    long = tuple([part for part in parts if len(part) > 1])
    # iOS is found by os, but does not ask for it.
    return ((word, _stem_ascii(word)), parts, ()) if long == parts else ((word, _stem_ascii(word)), (), long)


def _read_letters_and_digits(token: str) -> Forms | None:
    """Read letters next to a number: gpt4 as gpt and 4, 30min as 30 and min."""
    word = token.casefold()
    if len(word) > NUMBERED_CHARS:
        return None
    rest = word.lstrip(_LETTERS)
    head = word[: len(word) - len(rest)]
    if len(head) > 1 and rest[:1].isdecimal():
        return (word,), (head, rest), ()
    rest = word.lstrip(_DIGITS)
    head = word[: len(word) - len(rest)]
    return ((word,), (head, rest), ()) if head and len(rest) > 1 and rest.isalpha() else None


_READERS = (
    _read_word,
    _read_date,
    _read_version,
    _read_initials,
    _read_thousands,
    _read_compound,
    _read_apostrophe,
    _read_camel_case,
    _read_letters_and_digits,
)
