"""Reduce an English word to its stem: the Porter2 ("English Snowball") algorithm, as revised for Snowball 3.

Pure, and English only.  It takes one word of lower-case ASCII letters; it does not find words, fold case or know
apostrophes (``words`` does that).  A stem is a key for comparing words, not a word: ``happy`` gives ``happi``.

The region R1 begins after the first consonant that follows a vowel, R2 after the next such place inside R1.  An ending
is only removed where it lies in the region its step names, so that ``rate`` does not lose what ``generate`` may lose.
Description: https://snowballstem.org/algorithms/english/stemmer.html
"""

from __future__ import annotations

from functools import lru_cache

_VOWELS = frozenset("aeiouy")
_DOUBLES = frozenset(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"))
_BEFORE_LI = frozenset("cdeghkmnrt")
_NOT_AFTER_SHORT_VOWEL = frozenset("wxY")

# Words that the rules would confuse with others: news is no plural of new, Howe is a name.
_SPECIAL = {
    "skis": "ski", "skies": "sky", "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli",
    "singly": "singl", "sky": "sky", "news": "news", "howe": "howe", "atlas": "atlas", "cosmos": "cosmos",
    "bias": "bias", "andes": "andes",
}  # fmt: skip

# After these beginnings R1 starts at once: otherwise general, generic and generous would all be one word.
_WHOLE_PREFIXES = ("gener", "commun", "arsen", "past", "univers", "later", "emerg", "organ", "inter")

_NOT_PARTICIPLES = frozenset(("succ", "proc", "exc"))  # before -eed
_NOT_GERUNDS = frozenset(("inn", "out", "cann", "herr", "earr", "even"))  # before -ing

_STEP2 = {
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize", "ization": "ize",
    "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al", "alli": "al", "fulness": "ful",
    "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive", "biliti": "ble", "bli": "ble", "ogist": "og",
    "ogi": "og", "fulli": "ful", "lessli": "less", "li": "",
}  # fmt: skip
_STEP3 = {
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic",
    "ful": "", "ness": "", "ative": "",
}  # fmt: skip
_STEP4 = dict.fromkeys((
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous", "ive",
    "ize", "ion",
), "")  # fmt: skip


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the stem of a word of lower-case ASCII letters; words of one or two letters are their own stems."""
    if not word[2:]:
        return word
    if word in _SPECIAL:
        return _SPECIAL[word]
    word = _consonant_y(word)
    r1, r2 = _regions(word)
    word = _step1b(_step1a(word), r1)
    word = _step2(_step1c(word), r1)
    word = _step4(_step3(word, r1, r2), r2)
    return _step5(word, r1, r2).lower()


def _consonant_y(word: str) -> str:
    """Write Y for a y that is a consonant: the first letter, or after a vowel."""
    if "y" not in word:
        return word
    letters = list(word)
    for at, letter in enumerate(letters):
        if letter == "y" and (at == 0 or letters[at - 1] in _VOWELS):
            letters[at] = "Y"
    return "".join(letters)


def _regions(word: str) -> tuple[int, int]:
    """Return where R1 and R2 begin."""
    r1 = _past_syllable(word, 0)
    if word.startswith(_WHOLE_PREFIXES):
        r1 = next(len(prefix) for prefix in _WHOLE_PREFIXES if word.startswith(prefix))
    return r1, _past_syllable(word, r1)


def _past_syllable(word: str, start: int) -> int:
    """Return the place after the first consonant that follows a vowel, or the end of the word."""
    for at in range(start + 1, len(word)):
        if word[at] not in _VOWELS and word[at - 1] in _VOWELS:
            return at + 1
    return len(word)


def _has_vowel(part: str) -> bool:
    return not _VOWELS.isdisjoint(part)


def _ends_short(word: str) -> bool:
    """Tell whether the word ends in a short syllable, as rap, trap and on do and uproot does not."""
    before, vowel, last = word[-3:-2], word[-2:-1], word[-1:]
    if vowel not in _VOWELS or last in _VOWELS:
        return word.endswith("past")
    return not before or (before not in _VOWELS and last not in _NOT_AFTER_SHORT_VOWEL)


def _ending(word: str, table: dict[str, str]) -> str:
    """Return the longest ending of the word that the table knows, or nothing."""
    for size in (7, 6, 5, 4, 3, 2):
        if word[-size:] in table:
            return word[-size:]
    return ""


def _step1a(word: str) -> str:
    """Plurals: caresses, ties, cries, gaps; but gas, this and bus stay."""
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if word[:-4] else word[:-1]
    if word[-1] == "s" and word[-2] not in "us" and _has_vowel(word[:-2]):
        return word[:-1]
    return word


def _step1b(word: str, r1: int) -> str:
    """Past forms and gerunds: agreed, hopping, hoping, dying; but succeed and herring stay."""
    if word.endswith(("eed", "eedly")):
        base = word[: word.rindex("eed")]
        return base + "ee" if len(base) >= r1 and base not in _NOT_PARTICIPLES else word
    for suffix in ("ingly", "edly", "ing", "ed"):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            if suffix == "ing" and base[1:] == "y" and base[0] not in _VOWELS:
                return base[0] + "ie"
            if not _has_vowel(base) or (suffix == "ing" and base in _NOT_GERUNDS):
                return word
            return _repair(base, r1)
    return word


def _repair(base: str, r1: int) -> str:
    """Append the e that a removed ending replaced (hop(ing) is hope), or remove the letter that it doubled."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base[-2:] in _DOUBLES:
        return base if base[:-2] in ("a", "e", "o") else base[:-1]
    return base + "e" if r1 >= len(base) and _ends_short(base) else base


def _step1c(word: str) -> str:
    """A final y after a consonant: cry and cries meet at cri; by and say stay."""
    return word[:-1] + "i" if word[:-2] and word[-1] in "yY" and word[-2] not in _VOWELS else word


def _step2(word: str, r1: int) -> str:
    """Double endings to single ones: relational to relate."""
    suffix = _ending(word, _STEP2)
    base = word[: len(word) - len(suffix)]
    if not suffix or len(base) < r1:
        return word
    if (suffix == "ogi" and base[-1:] != "l") or (suffix == "li" and base[-1:] not in _BEFORE_LI):
        return word
    return base + _STEP2[suffix]


def _step3(word: str, r1: int, r2: int) -> str:
    """More double endings, and -ful and -ness."""
    suffix = _ending(word, _STEP3)
    base = word[: len(word) - len(suffix)]
    if not suffix or len(base) < (r2 if suffix == "ative" else r1):
        return word
    return base + _STEP3[suffix]


def _step4(word: str, r2: int) -> str:
    """Single endings, where enough of a word is left without them."""
    suffix = _ending(word, _STEP4)
    base = word[: len(word) - len(suffix)]
    if not suffix or len(base) < r2 or (suffix == "ion" and base[-1:] not in ("s", "t")):
        return word
    return base


def _step5(word: str, r1: int, r2: int) -> str:
    """A final e, and the second of two final l."""
    base = word[:-1]
    if word[-1] == "e" and (len(base) >= r2 or (len(base) >= r1 and not _ends_short(base))):
        return base
    if word[-1] == "l" and len(base) >= r2 and base[-1:] == "l":
        return base
    return word
