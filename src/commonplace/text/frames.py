"""Read what a clause says as a frame: of what (subject), in what respect (attribute), and what (value).  Pure; English.

"The API listens on port 8080 now" is about *the API*, in respect of *listen on*, with the value *port 8080*.  A frame
is read from the shape of the clause alone, without a dictionary of topics: copulas, verbs by a closed list and by their
place, prepositions.  What cannot be read is None, never a guess.  Whether one clause contradicts another one is for
``replacement`` to say.
"""

# ruff: noqa: E501, SIM905 - one pattern a line; quoted, lists of words could not be read

from __future__ import annotations

import re
from functools import lru_cache

from commonplace.model.values import Value
from commonplace.text.stem import stem

CLAUSE_CHARS = 400  # a longer one states no single fact

Slots = tuple[tuple[str, str], ...]


class Frame(Value):
    """What one clause says."""

    subject: str  #: as it was written, without an article; "" where it is the speaker or the one who is told
    verb: str  #: its stem; "be" for all copulas
    slots: Slots  #: what follows, by preposition; "" is the object or complement
    condition: str = ""  #: the "before merging", "to publish the docs" or "if ..." that it is said under
    negated: bool = False
    past: bool = False  #: it tells what happened once
    modal: str = ""  #: must, should, may ...
    ordered: bool = False  #: an imperative
    definite: bool = False  #: the subject has an article, or whose it is
    some: bool = False  #: the subject is one of several: "a customer", "one of our offices"
    passive: bool = False
    speaker: str = ""  #: the pronoun where that is the subject

    @property
    def attribute(self) -> str:
        """The respect in which something is said of the subject."""
        last = self.slots[-1][0] if self.slots else ""
        return f"{self.verb} {last}".strip()

    @property
    def value(self) -> str:
        """What is said: the last that follows the verb."""
        return self.slots[-1][1] if self.slots else ""


DETERMINERS = frozenset(
    "the a an our my your their his her its this that these those all every each any some both".split()
)
PRONOUNS = frozenset(["we", "i", "you", "they", "he", "she", "it"])
COPULAS = frozenset("is are am was were be been being becomes become became remains remain stays stay".split())
MODALS = frozenset("must should may can could will shall would might cannot".split())
NEGATIONS = frozenset(["not", "never", "no", "nobody", "cannot", "without"])
PREPOSITIONS = frozenset(
    """in on at to for with by from through via into onto under over above below after before until within behind as
    about against between during per every inside outside without using instead than like around near since because
    every""".split()
)
_INSIDE = frozenset(["of", "per", "and", "or", "than"])  # these keep a phrase together
_ADVERBS = frozenset(
    """now always currently also still only just already usually normally finally recently both all actually really
    generally mostly ever never exclusively primarily mainly simply once again too today anymore""".split()
)
_IRREGULAR = {
    "ran": "run", "went": "go", "gone": "go", "kept": "keep", "sent": "send", "built": "build", "written": "write",
    "wrote": "write", "rewrote": "rewrite", "rewritten": "rewrite", "held": "hold", "set": "set",
    "stored": "store", "paid": "pay", "sold": "sell", "chose": "choose", "chosen": "choose", "left": "leave",
    "led": "lead", "met": "meet", "got": "get", "took": "take", "taken": "take", "made": "make", "done": "do",
    "did": "do", "has": "have", "had": "have", "does": "do", "goes": "go", "bought": "buy", "taught": "teach",
    "begun": "begin", "began": "begin", "spoken": "speak", "spoke": "speak", "known": "know", "put": "put",
    "cut": "cut", "hidden": "hide", "shown": "show", "given": "give", "drawn": "draw", "driven": "drive",
    "broke": "break", "broken": "break", "found": "find", "said": "say", "thought": "think", "slept": "sleep",
    "flew": "fly", "saw": "see", "ate": "eat", "came": "come", "gave": "give", "grew": "grow", "knew": "know",
    "lost": "lose", "won": "win", "bound": "bind", "split": "split", "dealt": "deal", "spent": "spend",
}  # fmt: skip
_PARTICIPLES = frozenset(
    """kept sent built written held set stored paid sold chosen led met made done run put cut hidden shown given drawn
    driven broken found split bought taught known rewritten spent bound taken hit read shut spoken""".split()
)
#: Verbs that stand between a subject and what is said of it.
_VERBS = frozenset(
    """use run live listen expire open close start end begin finish cost last take host store save keep hash
    encrypt format write build base send go belong lead report call name locate refresh sync deploy ship release meet
    happen sit point default limit set log publish cache route pay bill train retry sign approve review manage own
    maintain handle test render install mount authenticate track power require need want support have prefer like love
    hate accept allow include contain return reside weigh read work move switch migrate change upgrade update replace
    rename extend postpone raise lower increase decrease reduce reschedule shift bump come leave arrive depart fly play
    eat drink drive speak study teach learn visit know consist depend follow enforce archive anonymise delete purge
    rotate validate generate compile bundle lint document monitor alert page consume serve contact email phone
    invoice charge renew retain back restore scale provision schedule aim buy sell make cover handle hold wear answer
    reply respond commit push merge tag branch indent restart reboot stop avoid ignore skip pin mock throw raise catch
    wrap import export expose escape round sort parse convert encode decode stream batch queue poll subscribe
    announce discuss plan budget allocate assign hire serve print paint rent park store book reserve swim walk bike
    train exercise sleep wake get give show put draw tell ask explain spell capitalize capitalise translate summarize
    decide agree choose pick settle standardize standardise drop remove retire replace merge rely build target compile
    exceed reach fall rise stay total measure count amount differ equal expect check fine-tune tune fetch load
    connect bind resolve redirect proxy forward mirror replicate upload download process go climb grow shrink jump originate execute rewrite convert port remain quit""".split()
)
#: These begin an order, whatever follows.
_ORDERS = frozenset("use keep run call put give show avoid stop always never do answer write restart".split())
_OPENING = re.compile(
    r"""^\W*(?:(?:please|remember(?:\s+that)?|note(?:\s+that)?|keep\s+in\s+mind\s+that|fyi|also|so|and|but|ok(?:ay)?|yes
        |no(?=,)|actually|well|btw|by\s+the\s+way|just|now|today|currently|from\s+(?:now|here)\s+on(?:wards)?|going\s+forward
        |as\s+of\s+\S+(?:\s+\d+)?(?=,)|starting\s+\S+(?=,)|correction|update|heads[- ]up|reminder|good\s+news)\b[\s,:]*)+""",
    re.IGNORECASE | re.VERBOSE,
)
_DECIDED = re.compile(
    r"^(?P<who>we|i|the team)\s+(?:have\s+|'ve\s+)?(?:decided|agreed|chose|want|plan)\s+(?:to|that)\s+", re.IGNORECASE
)
_CLOSING = re.compile(
    r"""[\s,]+(?:now(?:adays)?|from\s+(?:now|here)\s+on(?:wards)?|any\s?more|any\s+longer|again|these\s+days|today|currently
        |after\s+all|yesterday|last\s+(?:week|month|year|spring|summer|autumn|winter)|going\s+forward|at\s+the\s+moment|already|instead|then|ever|too|as\s+well
        |(?:in|for|of|across)\s+(?:this|our|the)\s+(?:whole\s+|entire\s+)?(?:repo(?:sitory)?|project|code\s?base|team|company)
        |(?:since|as\s+of|starting|from|effective)\s+(?:the\s+)?(?:[\w-]+\s+){0,3}?(?:on|onwards?|sprint|release|migration|week
            |month|year|quarter|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april
            |may|june|july|august|september|october|november|december|today|now|last\s+\w+|spring|summer|autumn|winter
            |\d{4}|\d{1,2}\s+\w+))$""",
    re.IGNORECASE | re.VERBOSE,
)
_HERE = re.compile(
    r"\s+(?:in|for|of|across)\s+(?:this|our)\s+(?:whole\s+|entire\s+)?(?:repo(?:sitory)?|project|code\s?base)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"^(?P<condition>(?:before|after|to|when(?:ever)?|if|unless|while|during|for|in|on|at|until|once|as soon as|with)\s+"
    r"[^,]{2,80}),\s*(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"^(?P<condition>to \w[^,]{2,60}?)\s+(?P<rest>(?:run|use|execute|call|type|press|do)\b.+)$", re.IGNORECASE
)
_PLACED = re.compile(r"^(?P<condition>(?:in|on|for|at) [^,]{2,40}?) (?P<rest>(?:i|we|you) .*)$", re.IGNORECASE)
_TRAILING = re.compile(
    r"\s+(?P<condition>(?:(?:before|when(?:ever)?|if|unless|while|until)\s+(?:the|a)\b"
    r"|(?:before|when(?:ever)?|if|unless|while|until|once|after)\s+(?:[a-z]+ing|you|we|i|it)\b)"
    r".{0,80})$",
    re.IGNORECASE,
)
_CONTRACTED = (
    (re.compile(r"\b(is|are|was|were|do|does|did|has|have|had|must|should|could|would|need)n['\u2019]t\b", re.IGNORECASE), r"\1 not"),
    (re.compile(r"\bcan['\u2019]t\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon['\u2019]t\b", re.IGNORECASE), "will not"),
    (re.compile(r"\bcannot\b", re.IGNORECASE), "can not"),
    (re.compile(r"\b(i)['\u2019]m\b", re.IGNORECASE), r"\1 am"),
    (re.compile(r"\b(we|they|you)['\u2019]re\b", re.IGNORECASE), r"\1 are"),
    (re.compile(r"\b(we|they|you|i)['\u2019]ve\b", re.IGNORECASE), r"\1 have"),
    (re.compile(r"\b(it|that|he|she|there|what)['\u2019]s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\blet['\u2019]?s\b", re.IGNORECASE), "we"),
)  # fmt: skip
_TOKEN = re.compile(r"\S+")
_EDGE = "\"'`()[]{}.,;:!?\u201c\u201d"


def read_frame(clause: str) -> Frame | None:
    """Return what a clause says; None if it cannot be read for certain."""
    if len(clause) > CLAUSE_CHARS:
        return None
    return _read(" ".join(clause.split()))


@lru_cache(maxsize=4096)
def _read(clause: str) -> Frame | None:
    text, condition = _body(clause)
    tokens = [token.strip(_EDGE) for token in _TOKEN.findall(text)]
    tokens = [token for token in tokens if token]
    at = _verb_at(tokens)
    if at is None:
        return _labelled(text, condition)
    subject = _without_determiners(tokens[:at])
    ordered = at == 0
    plain = () if len(subject) == 1 and subject[0].lower() in PRONOUNS else subject
    frame = _predicate(tokens[at:], " ".join(plain), condition, ordered=ordered)
    if frame is None:
        return None
    speaker = subject[0].lower() if len(subject) == 1 and not plain else ""
    first = tokens[0].lower() if at else ""
    some = first in ("a", "an", "some", "another") or (first == "one" and at > 1 and tokens[1].lower() == "of")
    return frame.replace(definite=first in DETERMINERS and not some, some=some, speaker=speaker)


def _body(clause: str) -> tuple[str, str]:
    """Return a clause without the words around its fact, and the condition that it is said under."""
    text = clause
    for pattern, plain in _CONTRACTED:
        text = pattern.sub(plain, text)
    opening = _OPENING.match(text)
    text = (text[opening.end() :] if opening else text).strip(" .!;,")
    if decided := _DECIDED.match(text):
        text = (
            f"{decided['who']} {text[decided.end() :]}"
            if _first_is_verb(text[decided.end() :])
            else text[decided.end() :]
        )
    text = without_closing(_HERE.sub("", text))
    condition = ""
    if found := _CONDITION.match(text) or _PURPOSE.match(text) or _PLACED.match(text):
        condition, text = found["condition"], found["rest"]
    elif (found := _TRAILING.search(text)) and found.start() > 0:
        condition, text = found["condition"], text[: found.start()]
    opening = _OPENING.match(text)
    return without_closing(text[opening.end() :] if opening else text), condition


def without_closing(text: str) -> str:
    """Return a text without what only says since when it holds."""
    while found := _CLOSING.search(text):
        text = text[: found.start()].rstrip(" .,;")
    return text


def _first_is_verb(text: str) -> bool:
    return base_of(text.split(maxsplit=1)[0].strip(_EDGE).lower() if text.strip() else "") is not None


@lru_cache(maxsize=1)
def _forms() -> dict[str, str]:
    """Every form of every known verb, with its base."""
    forms: dict[str, str] = {}
    for verb in _VERBS:
        cut = verb.removesuffix("e")
        third = f"{verb[:-1]}ies" if verb[-1] == "y" and verb[-2] not in "aeiou" else f"{verb}s"
        forms |= {f"{verb}es": verb, third: verb, f"{cut}ed": verb, f"{cut}ing": verb, f"{cut}{cut[-1]}ed": verb,
                  f"{cut}{cut[-1]}ing": verb}  # fmt: skip
        if verb[-1] == "y":
            forms[f"{verb[:-1]}ied"] = verb
    forms |= {form: verb for form, verb in _IRREGULAR.items() if verb in _VERBS}
    return forms | {verb: verb for verb in _VERBS}


def base_of(word: str) -> str | None:
    """Return the verb that a word is a form of, if it is a known one."""
    return _forms().get(word)


def verb_stem(word: str) -> str:
    """Return the stem of a verb in any form."""
    word = word.lower()
    plain = base_of(word) or _IRREGULAR.get(word, word)
    return stem(plain) if plain.isascii() and plain.isalpha() else plain


def _verb_at(tokens: list[str]) -> int | None:
    """Return where the verb of the clause is: a copula, or a verb in the place of one."""
    small = [token.lower() for token in tokens]
    if small and small[0] in PRONOUNS:
        return next((at for at in range(1, len(small)) if small[at] not in _ADVERBS), None)
    copula, verb = _first(small, copula=True), _first(small, copula=False)
    if _is_order(small, stated=copula is not None or verb is not None):
        return 0
    if verb is not None and (copula is None or (verb < copula and small[verb + 1] in DETERMINERS | PREPOSITIONS)):
        return verb
    return copula if copula is not None else _guess_verb(small)


def _is_order(small: list[str], *, stated: bool) -> bool:
    """Whether a clause begins with its verb; ``stated`` if another word could be it."""
    if len(small) < 2 or _is_copula(small[1]):  # noqa: PLR2004 - the verb and what to do with it
        return False
    if small[0] in _ORDERS or (
        small[0] in _VERBS and (not stated or small[1] in DETERMINERS | PRONOUNS | PREPOSITIONS)
    ):
        return True
    return not stated and small[1] in DETERMINERS and _guess_verb(small) is None


_PARTICLES = frozenset(["out", "off", "up", "down", "back"])


def _guess_verb(small: list[str]) -> int | None:
    """Return where a verb that is not known has to stand: a word with its ending, between a noun and what follows."""
    for at in range(1, len(small) - 1):
        word, before, after = small[at], small[at - 1], small[at + 1]
        follows = after in PREPOSITIONS | DETERMINERS | _PARTICLES or after[:1].isdigit()
        ended = word.endswith("s") and not word.endswith(("ss", "us", "is"))
        plural = before.endswith("s") and not before.endswith(("ss", "us", "is"))
        agrees = ended != plural and before not in DETERMINERS | PREPOSITIONS | _INSIDE
        if follows and agrees and (ended or after in _PARTICLES) and word.isalpha() and "'" not in before:
            return at
    return None


def _is_copula(word: str) -> bool:
    return word in COPULAS or word in MODALS


def _first(small: list[str], *, copula: bool) -> int | None:
    """Return the first verb of a sort that is not part of the subject: not in "the model we use is ..."."""
    relative = False
    for at in range(1, len(small)):
        word = small[at]
        if word in PRONOUNS and small[at - 1] not in PREPOSITIONS:
            relative = True
        elif relative and base_of(word):
            relative = False
        elif (
            not relative and copula and (_is_copula(word) or (word in ("has", "have") and base_of(word) is not None))
        ) or (not relative and not copula and _is_verb(small, at)):
            return at
    return None


def _is_verb(small: list[str], at: int) -> bool:
    """Whether a word is the verb of its clause, and no noun that looks like one: by its neighbours and its ending."""
    word, before = small[at], small[at - 1]
    after = small[at + 1] if at + 1 < len(small) else ""
    if base_of(word) is None or word.endswith("ing") or before in DETERMINERS | PREPOSITIONS | _INSIDE:
        return False
    if not after or _is_copula(after) or after in _INSIDE or before.endswith("'s"):
        return False
    if after not in PREPOSITIONS | DETERMINERS and after.endswith(("s", "ed")) and base_of(after):
        return False  # the next one is the verb
    ended = word.endswith("s") and not word.endswith("ss")
    beyond = small[at + 2] if at + 2 < len(small) else ""
    if ended and after in _VERBS and beyond in PREPOSITIONS | DETERMINERS:
        return False  # a plural, and the verb after it
    plural = before.endswith("s") and not before.endswith(("ss", "us", "is"))
    return word.endswith("ed") or word in _IRREGULAR or ended or plural or before in _ADVERBS


def _without_determiners(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at].lower() in DETERMINERS | _ADVERBS:
        at += 1
    end = len(words)
    while end > at and words[end - 1].lower() in _ADVERBS:
        end -= 1
    return words[at:end]


def _predicate(words: list[str], subject: str, condition: str, *, ordered: bool) -> Frame | None:
    """Read the verb and what follows it."""
    modal, negated, past, passive, verb = "", False, False, False, ""
    at = 0
    while at < len(words):
        word = words[at].lower()
        if word in MODALS:
            modal = word
        elif word in NEGATIONS:
            negated = True
        elif word in COPULAS:
            verb, past = "be", past or word in ("was", "were", "became")
        elif word in ("do", "does", "did", "have", "has", "had") and _auxiliary(words, at):
            past = past or word == "did"
        elif word in _ADVERBS:
            pass
        elif verb == "be" and words[at] == word and _is_participle(word) and at + 1 < len(words):
            verb, passive = verb_stem(word), True
            at += 1
            break
        elif verb == "be":
            break
        else:
            past = past or (not ordered and (word.endswith("ed") or word in _IRREGULAR) and word == word.lower()
                            and word not in _PARTICIPLES_AND_PRESENT and not word.endswith("s"))  # fmt: skip
            verb = verb_stem(word)
            at += 1
            break
        at += 1
    slots = _slots(words[at:])
    if not verb or (not slots and not (negated or modal)):
        return None
    return Frame(
        subject=subject, verb=verb, slots=slots, condition=condition, negated=negated, past=past, modal=modal,
        ordered=ordered, passive=passive,
    )  # fmt: skip


_PARTICIPLES_AND_PRESENT = frozenset(
    ["need", "set", "put", "cut", "split", "has", "does", "goes", "hit", "read", "shut"]
)


def _auxiliary(words: list[str], at: int) -> bool:
    """Whether do or have only helps another verb."""
    rest = [word.lower() for word in words[at + 1 : at + 4] if word.lower() not in _ADVERBS | NEGATIONS]
    first = rest[0] if rest else ""
    if words[at].lower() in ("do", "does", "did"):
        return bool(first)
    return first in COPULAS or _is_participle(first) or first == "to"


def _is_participle(word: str) -> bool:
    word = word.lower()
    return word in _PARTICIPLES or (word.endswith("ed") and len(word) > 4)  # noqa: PLR2004 - not "red"


_OFTEN = frozenset("hourly daily nightly weekly fortnightly monthly quarterly yearly annually".split())


def _slots(words: list[str]) -> Slots:
    """Cut what follows a verb at its prepositions; a range such as "9 to 5" stays whole."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for at, word in enumerate(words):
        small = word.lower()
        before, after = (words[at - 1] if at else ""), (words[at + 1] if at + 1 < len(words) else "")
        limit = small == "at" and after.lower() in ("most", "least")
        ranged = limit or (small in ("to", "through") and before[-1:].isdigit() and after[:1].isdigit())
        if small in PREPOSITIONS and small not in _INSIDE and not ranged and after:
            found.append((small, []))
        elif small in _OFTEN:
            found += [("every", [word]), ("", [])]
        elif small not in _ADVERBS or found[-1][1]:
            found[-1][1].append(word)
    return tuple((preposition, " ".join(said)) for preposition, said in found if said)


_LABEL = re.compile(r"^(?P<subject>[\w' -]{3,50}?)\s*[:=]\s*(?P<value>\S.{0,120})$")


def _labelled(text: str, condition: str) -> Frame | None:
    """Read "trial period: 30 days"."""
    found = _LABEL.match(text)
    if found is None:
        return None
    subject = " ".join(_without_determiners(found["subject"].split()))
    return Frame(subject=subject, verb="be", slots=(("", found["value"].strip(_EDGE)),), condition=condition)
