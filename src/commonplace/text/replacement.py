"""Say whether one statement replaces another: same subject, same respect, one value at a time.  Pure; English.

Three answers.  *Replaces*: both are read, they speak of the same thing in the same respect, of which there is one value
at a time, and the values differ; or the new one takes the old one back in words ("no longer", "instead of").  *May
replace*: it looks so, and a person should say.  *None*: both hold, as far as can be read.  A statement that adds
("also"), one under another condition and what happened once replace nothing.
"""

# ruff: noqa: E501, SIM905 - one pattern a line; quoted, lists of words could not be read

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias, Union

from commonplace.model.values import Value
from commonplace.text.claims import (
    GENERIC,
    LIGHT,
    MEASURES,
    OWNING,
    PREPOSITION_STEMS,
    ROLES,
    Claim,
    is_definite,
    is_named,
    is_negated,
    is_versioned,
    read_claims,
    split_statements,
    stem_word,
    stems_of,
    topic_of,
)
from commonplace.text.frames import DETERMINERS, MODALS, verb_stem
from commonplace.text.stem import stem
from commonplace.text.tools import same_exclusive, tool_group

STATEMENT_CHARS = 1000  # of a text that is compared; a longer one is a document
SHARED = 0.6  # of the old statement's words, from which on a change that is named in a new one is asked about
ALIKE = 0.6  # of the words of what two statements are about, from which on a change that is named is asked about


class Relation(StrEnum):
    """What a new statement does to an old one."""

    REPLACES = "replaces"
    MAY_REPLACE = "may replace"
    SAME = "same"
    NONE = "none"


#: Of these there are several at a time: who has one has not lost the other.
_MANY = frozenset(
    map(
        verb_stem,
        """have support need want like love hate accept allow include contain require visit play know speak study learn
        read buy sell eat drink announce discuss decide agree avoid ignore choose drop remove depend consist cover
        alert expect sell translate integrate connect talk contribute share participate invite link appear export
        mention commit push skip pin mock throw catch write""".split(),
    )
)
#: Of these there is one at a time: where it lives, when it opens, what it costs, how it is done.
_ONE = frozenset(
    map(
        verb_stem,
        """be call live run listen expire open close start end begin finish cost last host store save keep hash encrypt
        format build base send go belong name locate refresh sync deploy ship release sit default limit set cache
        route sign manage own maintain render install mount authenticate track power reside weigh answer reply respond
        lead log page invoice back serve point indent restart write replicate redirect proxy resolve use take report
        handle upload download process come originate schedule provision bundle compile generate paint park print point queue stream archive retain rotate
        test lint monitor""".split(),
    )
)
#: Of these there are several ways at a time.
_WAYS = frozenset(
    map(verb_stem, "test monitor lint check validate protect secure document review publish list".split())
)
_PLATFORMS = frozenset("linux macos windows ios android chrome firefox safari edge ubuntu debian fedora".split())
_RELATIONS = frozenset(
    map(
        stem,
        """friend colleague client customer partner brother sister child son daughter neighbour neighbor competitor supplier
        sponsor contributor teammate user uncle aunt cousin hobby goal risk problem bug member speaker guest example
        reason challenge option""".split(),
    )
)

_COLORS = frozenset(
    """red green blue teal navy orange yellow purple violet pink black white grey gray brown beige gold silver cyan
    magenta turquoise maroon olive indigo""".split()
)

_CUE = re.compile(
    r"\b(?:now|no longer|any ?more|instead|switched|moved|changed|migrated|renamed|replaced|upgraded|from now on|since"
    r"|as of|these days|new|nowadays|no more|rewrote|converted|starting)\b",
    re.IGNORECASE,
)
_ADDS = re.compile(
    r"\b(?:also|too|as well|in addition|additionally|another|besides|as an alternative|both)\b", re.IGNORECASE
)
_ONLY = re.compile(r"\b(?:only|just|exclusively)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:\b(?:number|nr|no)\.?\s*|#)\d+$", re.IGNORECASE)  # one of a series: there are others
_TRAILING = re.compile(r"\d+$")
_ADJECTIVE = re.compile(r"(?:able|ible|less|ful|ive|ous|al|ic|ary|ant|ent|ish|ed|ing|ly|free|safe|only)$")


_NOTHING, _ASKED, _REPLACED = 0, 1, 2
_NAMING = frozenset(map(verb_stem, "call name paint".split()))
_HOMES = (verb_stem("live"), verb_stem("reside"), verb_stem("work"))
_ALLOWED = frozenset(map(verb_stem, "allow permit ok okay fine forbid ban prohibit longer any".split()))
_OPPOSITES = """open closed,enabled disabled,on off,public private,active inactive,required optional,mandatory optional
    ,available unavailable,online offline,internal external,manual automatic,mandatory voluntary,paid free
    ,allowed forbidden,visible hidden,short long,up down,always never,everyone nobody,full empty,single married
    ,merged open,synchronous asynchronous,encrypted unencrypted,signed unsigned,blocking optional,verbose concise
    ,brief detailed,lowercase uppercase,singular plural,pending approved,pending done"""


@lru_cache(maxsize=4096)
def compare(old: str, new: str) -> Relation:
    """Return what the new statement does to the old one."""
    if max(len(old), len(new)) > STATEMENT_CHARS:
        return Relation.NONE
    before, after = stems_of(old), stems_of(new)
    if before == after and is_negated(old) == is_negated(new):
        return Relation.SAME
    if _ADDS.search(new) or _ADDS.search(old):
        return Relation.NONE
    if _is_denied(old, new) or _is_opposed(old, new) or _is_widened(old, new) or _is_other_tool(old, new):
        return Relation.REPLACES
    claims = [claim for piece in split_statements(old) for claim in read_claims(piece)]
    later = [claim for piece in split_statements(new) for claim in read_claims(piece)]
    cue = bool(_CUE.search(new))
    found = max((_judge(a, b, cue=cue) for a in claims for b in later), default=_NOTHING)
    if found < _REPLACED:
        found = max(found, _taken_back(old, new, claims), _looks_alike(before, after, new))
    return (Relation.NONE, Relation.MAY_REPLACE, Relation.REPLACES)[found]


def _is_denied(old: str, new: str) -> bool:
    """Whether one says in the same words that it is, the other that it is not."""
    before, after = stems_of(old) - _ALLOWED, stems_of(new) - _ALLOWED
    return bool(before) and before == after and is_negated(old) != is_negated(new)


@lru_cache(maxsize=1)
def _opposites() -> frozenset[tuple[frozenset[str], frozenset[str]]]:
    """Pairs of words of which only one can be true."""
    pairs = [tuple(stem_word(word) for word in pair.split()) for pair in _OPPOSITES.split(",")]
    both = [(frozenset({one}), frozenset({other})) for one, other in pairs]
    return frozenset([*both, *((other, one) for one, other in both)])


def _is_opposed(old: str, new: str) -> bool:
    """Whether what is said is opposed, and not what it is said of: "internal docs", "external docs"."""
    before, after = stems_of(old), stems_of(new)
    if (before - after, after - before) not in _opposites():
        return False
    claims, later = read_claims(old), read_claims(new)
    opposed = any(a.about == b.about and a.words != b.words for a in claims for b in later)
    return opposed or not (claims and later)


def _is_widened(old: str, new: str) -> bool:
    """Whether "only in German" becomes "in German and English"."""
    pairs = ((a, b) for a in read_claims(old) for b in read_claims(new))
    return bool(_ONLY.search(old)) and any(a.words < b.words and a.about == b.about for a, b in pairs)


_CHOSEN = re.compile(
    r"^(?:(?:we|now|please|in this (?:repo|project)|let's|always)[,\s]+)*(?:use|using|(?:switched|moved|migrated) (?:\w+ )?to)\s+"
    r"(?P<tool>[\w.-]+)(?P<rest>.*)$",
    re.IGNORECASE,
)
_CHOICE_WORDS = frozenset(
    stem_word(word) for word in "package manager tool repo project code base whole version".split()
)


def _is_other_tool(old: str, new: str) -> bool:
    """Whether both choose a tool of a group of which there is one at a time, and say no more than that."""
    before, after = _CHOSEN.match(old), _CHOSEN.match(new)
    if not (before and after and same_exclusive(before["tool"], after["tool"])):
        return False
    chosen = {before["tool"].lower(), after["tool"].lower()}
    rest = [
        {word for word in stems_of(found["rest"]) if tool_group(word) is None}
        - _CHOICE_WORDS - LIGHT - PREPOSITION_STEMS
        for found in (before, after)
    ]  # fmt: skip
    return len(chosen) > 1 and rest[0] == rest[1]


# Judging


class _Pair(Value):
    """Two claims about the same thing in the same respect."""

    old: Claim
    new: Claim
    cue: bool  #: the new statement names a change

    @property
    def groups(self) -> tuple[str | None, str | None]:
        """What the two are for, if they are tools."""
        return tool_group(self.old.value), tool_group(self.new.value)

    @property
    def firsts(self) -> tuple[str, str]:
        """The first words of the two values."""
        old, new = (claim.value.split(maxsplit=1)[0].lower() for claim in (self.old, self.new))
        return old, new

    @property
    def is_used(self) -> bool:
        """Whether it says what is used."""
        return "use" in (self.old.verb, self.new.verb) and self.old.place == ""

    @property
    def is_identity(self) -> bool:
        """Whether it says what something is."""
        return "be" in (self.old.verb, self.new.verb)

    @property
    def is_order(self) -> bool:
        """Whether it says what to do, or what somebody likes better."""
        return self.old.frame.ordered or self.old.verb == verb_stem("prefer")

    @property
    def same_head(self) -> bool:
        """Whether both values are of one sort: "class components", "function components"."""
        return _head(self.old) == _head(self.new) and len(self.old.value.split()) > 1


Rules: TypeAlias = Sequence[tuple[Callable[[_Pair], object], Union[int, "Rules"]]]


def _first(rules: Rules, pair: _Pair) -> int:
    """Return what the first rule that fits says."""
    for fits, outcome in rules:
        if fits(pair):
            return outcome if isinstance(outcome, int) else _first(outcome, pair)
    return _NOTHING


def _is_series(old: Claim, new: Claim) -> bool:
    """Whether what differs is the number of one of a series, wherever in the clause that stands."""
    before, after = old.frame.slots, new.frame.slots
    if before[:1] == after[:1] and before[:1] and before[0][0] == "":  # "slow on runner 2": runner 3 may be slow, too
        before, after, numbered = before[1:], after[1:], _TRAILING
    else:
        numbered = _NUMBERED
    return any(
        at == where and one != other and numbered.search(one) and numbered.sub("", one) == numbered.sub("", other)
        for at, one in before
        for where, other in after
    )


def _judge(old: Claim, new: Claim, *, cue: bool) -> int:
    """How far one claim replaces another one."""
    past = (old.frame.past and not old.changes) or (new.frame.past and not new.changes)
    if old.words == new.words or old.frame.negated != new.frame.negated or past or _is_series(old, new):
        return _NOTHING
    alike = old.sort[0] == new.sort[0] or {old.sort[0], new.sort[0]} == {"name", "text"}
    if cue and alike and _is_narrowed(old, new):
        return _REPLACED
    if not _same_subject(old, new):
        near = len(old.about & new.about) / max(1, len(old.about | new.about))
        asks = cue and near >= ALIKE and old.sort == new.sort and not new.frame.negated
        return _ASKED if asks and not (old.about < new.about or new.about < old.about) else _NOTHING
    pair = _Pair(old=old, new=new, cue=cue)
    return _first(_MEASURES if old.sort[0] in MEASURES else _NAMES, pair) if alike else _NOTHING


def _same_subject(old: Claim, new: Claim) -> bool:
    """Whether two claims are about the same thing in the same respect."""
    if not (old.about or new.about):
        return old.verb == new.verb and (_shares_edge(old, new) or same_exclusive(old.value, new.value))
    if new.changes and not new.nouns and not old.nouns:
        return new.frame.speaker == old.frame.speaker != "" and old.verb in _HOMES and old.place == "where"
    if new.changes:
        return new.nouns in (old.about, old.nouns) and bool(new.nouns)
    if old.changes:
        return old.nouns in (new.about, new.nouns) and bool(old.nouns)
    measured = old.sort == new.sort and old.sort[0] in MEASURES and (old.verb in LIGHT or new.verb in LIGHT)
    return old.about == new.about or (measured and old.nouns == new.nouns and bool(old.nouns))


def _is_narrowed(old: Claim, new: Claim) -> bool:
    """Whether the new one says less about the same: "rendered to PDF with X", "rendered with Y"."""
    if old.place != new.place or not old.place or old.verb != new.verb or old.frame.past or new.frame.past:
        return False
    subjects = topic_of(old.frame.subject), topic_of(new.frame.subject)
    return bool(subjects[0]) and subjects[0] == subjects[1] and new.about < old.about


# What decides: the first rule that fits.


def _is_bounded(pair: _Pair) -> bool:
    """Whether one is an end and the other is not: "until 3", "at 5"."""
    ends = {pair.old.place, pair.new.place}
    return len(ends) > 1 and bool(ends & {"until", "since", "above", "below", "every"}) and not _changes(pair)


def _changes(pair: _Pair) -> bool:
    return pair.old.changes or pair.new.changes


def _is_repeated(pair: _Pair) -> bool:
    """Whether there may be several such times: "a meeting on Monday", "we meet on Mondays"."""
    old = pair.old
    versions = old.sort == ("amount", "") and is_versioned(old.frame.value)
    several = old.verb in _MANY and not old.frame.passive and (old.sort[0] == "when" or versions)
    habit = old.frame.speaker in ("i", "we") and old.sort[0] == "when" and not old.nouns
    return several or (habit and bool(re.search(r"days\b", old.value)))


def _is_part(pair: _Pair) -> bool:
    """Whether one value is a part of the other: then it is made more precise, or less."""
    return pair.old.words < pair.new.words or pair.new.words < pair.old.words


def _places_fit(pair: _Pair) -> bool:
    return pair.old.place == pair.new.place or _changes(pair) or "" in (pair.old.place, pair.new.place)


def _has_purpose(pair: _Pair) -> bool:
    """Whether both say how something is reached: "to publish the docs, run ..."."""
    return pair.old.frame.condition.lower().startswith("to ") and pair.old.place == "" == pair.new.place


def _has_several_ways(pair: _Pair) -> bool:
    return pair.old.verb in _WAYS or {pair.old.value.lower(), pair.new.value.lower()} <= _PLATFORMS


def _is_person(claim: Claim) -> bool:
    """Whether a claim is about a name alone, as of a person, or about the speaker."""
    return is_named(claim.frame) or (not claim.frame.subject and bool(claim.frame.speaker))


def _head(claim: Claim) -> str:
    words = claim.value.split()
    return stem_word(words[-1]) if words else ""


def _shares_edge(old: Claim, new: Claim) -> bool:
    """Whether two values are of one sort by their words: "the font X" and "the font Y", "light theme", "dark theme"."""
    before, after = ([word for word in claim.value.split() if word.lower() not in DETERMINERS] for claim in (old, new))
    if min(len(before), len(after)) < 2:  # noqa: PLR2004 - the word that is shared, and the one that differs
        return False
    return before[0].lower() == after[0].lower() or stem_word(before[-1]) == stem_word(after[-1])


def _has_role(pair: _Pair) -> bool:
    """Whether something is used as something, or is it."""
    roles = {preposition for claim in (pair.old, pair.new) for preposition, _ in claim.frame.slots}
    return "as" in roles or pair.old.verb != pair.new.verb


def _one_role(claim: Claim) -> bool:
    return claim.verb == "be" or any(name == "as" and is_definite(said) for name, said in claim.frame.slots)


def _is_quality(claim: Claim, pair: _Pair) -> bool:
    """Whether a value is a quality, of which a thing has many: fast, stateless."""
    words = claim.value.split()
    if claim.sort[0] != "text" or pair.cue or any(stem_word(one) in ROLES for one in claim.frame.subject.split()):
        return False
    word = words[-1].strip(".").lower() if words else ""
    return len(words) == 1 and word not in _COLORS and bool(_ADJECTIVE.search(word))


def _is_relation(claim: Claim) -> bool:
    """Whether there may be several such: a friend, a customer."""
    return any(stem_word(word) in _RELATIONS for word in claim.frame.subject.split())


def _articles(pair: _Pair) -> bool:
    return bool({"a", "an"} & set(pair.firsts))


def _same_sort_of_place(pair: _Pair) -> bool:
    """Whether both are places with an article or both without, and nothing else is said of it."""
    described = any(preposition == "" for preposition, _ in pair.old.frame.slots)
    return not described and (pair.firsts[0] in DETERMINERS) == (pair.firsts[1] in DETERMINERS)


def _is_role(claim: Claim) -> bool:
    """Whether what a claim is about is one thing: with an article or several words, and not plural."""
    frame = claim.frame
    if claim.value == frame.subject:
        return True
    before = re.split(r"\b(?:of|in|for|from|to|at|on|with|we|i)\b", frame.subject, maxsplit=1)[0].split()
    head = (before or frame.subject.split())[-1].lower()
    plural = head.endswith("s") and not head.endswith(("ss", "us", "is")) and "'" not in head
    return not plural and (frame.definite or len(frame.subject.split()) > 1 or stem_word(head) in ROLES)


def _same_but_last(pair: _Pair) -> bool:
    """Whether only the last word differs: "answers short", "answers long"."""
    old, new = pair.old.value.split(), pair.new.value.split()
    return len(old) > 1 and old[:-1] == new[:-1]


#: Times and amounts: of one thing in one respect there is one.
_MEASURES: Rules = (
    (lambda p: p.old.sort != p.new.sort and not p.old.sort[0] == "when" == p.new.sort[0], _NOTHING),
    (_is_bounded, _NOTHING),
    (lambda p: _is_repeated(p) and not p.cue, _ASKED),
    (lambda _: True, _REPLACED),
)

#: What is used: one at a time where both are tools of one sort of which a project has one, or fill one role.
_USES: Rules = (
    (
        lambda p: _has_role(p) and (p.groups[0] == p.groups[1] or p.cue or _one_role(p.old) or _one_role(p.new)),
        _REPLACED,
    ),
    (_has_role, _ASKED),
    (lambda p: (p.groups[0] and p.groups[0] == p.groups[1]) or _shares_edge(p.old, p.new), _REPLACED),
    (lambda p: p.cue and p.old.about, _ASKED),
)

#: What something is: the name of the one that has a role is one; qualities are many.
_IDENTITIES: Rules = (
    (lambda p: p.old.place not in ("", "where", "how") or _is_quality(p.old, p) or _is_quality(p.new, p), _NOTHING),
    (lambda p: not p.old.frame.subject or p.old.frame.some or p.new.frame.some, _NOTHING),
    (lambda p: not p.cue and _is_relation(p.old) and p.old.place == "", _ASKED),
    (lambda p: _articles(p) and not p.cue and (_is_person(p.old) or not set(p.firsts) <= {"a", "an"}), _NOTHING),
    (_articles, ((lambda p: p.cue or p.same_head, _REPLACED), (lambda _: True, _ASKED))),
    (lambda p: p.old.place and not p.cue and not _same_sort_of_place(p), _NOTHING),
    (lambda p: p.old.place and _is_person(p.old) and not p.cue, _ASKED),
    (lambda p: p.old.place or p.same_head or p.cue or (_is_role(p.old) and _is_role(p.new)), _REPLACED),
    (lambda _: True, _ASKED),
)

#: What to do: one way to one end, one kind of one thing.
_ORDERS: Rules = (
    (lambda p: p.old.place == "how" or (p.old.place == "where" and p.old.verb in _ONE), _REPLACED),
    (lambda p: p.old.place == "" and p.same_head and p.old.verb in ("use", verb_stem("prefer")), _REPLACED),
    (lambda p: p.old.place == "" and p.same_head, _ASKED),
    (lambda p: p.old.verb == verb_stem("call") and p.old.value.lower().startswith("me "), _REPLACED),
    (lambda p: p.old.verb == verb_stem("keep") and _same_but_last(p), _REPLACED),
    (lambda p: p.cue and p.old.verb != verb_stem("keep"), _ASKED),
)

#: Names and words: one at a time only where the verb or the noun says so.
_NAMES: Rules = (
    (_is_part, ((lambda p: p.cue and p.old.place == p.new.place, _ASKED),)),
    (lambda p: not _places_fit(p) or p.old.frame.negated or p.new.frame.negated, _NOTHING),
    (_changes, _REPLACED),
    (_has_purpose, ((lambda p: p.old.frame.ordered, _REPLACED), (lambda _: True, _ASKED))),
    (lambda p: p.is_used, _USES),
    (lambda p: p.groups[0] and p.groups[1] and p.groups[0] != p.groups[1], _NOTHING),
    (lambda p: p.is_identity, _IDENTITIES),
    (lambda p: p.is_order, _ORDERS),
    (lambda p: p.old.verb in OWNING and p.old.place == "" and p.new.place in ("", "how", "where"), _REPLACED),
    (lambda p: _is_person(p.old) and not p.cue and p.old.verb not in _ONE, _NOTHING),
    (
        lambda p: not p.cue and _has_several_ways(p),
        ((lambda p: p.groups[0] and p.groups[0] == p.groups[1], _REPLACED), (lambda _: True, _ASKED)),
    ),
    (lambda p: p.old.verb in _NAMING and (p.old.place or p.old.frame.passive or p.old.verb in _ONE), _REPLACED),
    (lambda p: p.old.verb in _ONE and p.old.place, _REPLACED),
    (lambda p: p.old.verb in _MANY, ((lambda p: p.cue and p.same_head, _ASKED),)),
    (lambda p: p.old.frame.passive and p.old.place in ("where", "how"), _REPLACED),
    (lambda p: p.cue, _REPLACED),
    (lambda p: p.old.place, _ASKED),
)


def _looks_alike(before: frozenset[str], after: frozenset[str], new: str) -> int:
    """Whether a statement that names a change has so many words of an old one that a person should look at the two."""
    old_words, new_words = (words - LIGHT - GENERIC - PREPOSITION_STEMS for words in (before, after))
    shared = old_words & new_words
    named = bool(_CUE.search(new)) and len(shared) >= 2 and bool(old_words - new_words)  # noqa: PLR2004 - one is chance
    return _ASKED if named and len(shared) >= SHARED * len(old_words) else _NOTHING


# What is taken back in words


_GONE = (
    r"(?:is|was|are|were|has been|have been)\s+(?:now\s+)?(?:gone|removed|cancell?ed|switched off|retired|deprecated|shut down"
    r"|dropped|replaced|renamed|sold|out|dead|history|decommissioned|discontinued)"
)
_BACK = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:instead of|rather than|in place of|away from|off of|no more|not|no longer)\s+(?P<what>[^,;.!?]{2,60}?)(?:\s+(?:any ?more|any longer|after all))?(?=[,;.!?]|$|\s+(?:but|because|since|for|in)\b)",
        r"\b(?:replaced|swapped)\s+(?P<what>[^,;.!?]{2,60}?)\s+(?:with|by|for)\b",
        r"\b(?:switched|moved|migrated|went|changed|upgraded)\s+(?:\w+\s+)?from\s+(?P<what>[^,;.!?]{2,60}?)\s+(?:to|over)\b",
        r"\b(?:left|dropped|ditched|removed|retired|sold|abandoned|cancell?ed|stopped using|got rid of|gave up|quit)\s+(?P<what>[^,;.!?]{2,40}?)(?=[,;.!?]|$|\s+(?:and|for|in)\b)",
        rf"(?:^|[,;.]\s*)(?P<what>[^,;.!?]{{2,50}}?)\s+{_GONE}\b",
        r"(?:^|[,;.]\s*|\bsince\s+)(?P<what>[A-Z][\w-]*)\s+(?:has\s+)?(?:left|changed jobs|retired|quit|resigned|moved on)\b",
        r",\s*no\s+(?P<what>[^,;.!?]{2,40})(?=[,;.!?]|$)",
        r"\bchanged (?:my|our) minds? (?:about|on)\s+(?P<what>[^,;.!?]{2,40})",
        r"\b(?:don['\u2019]t|do not|doesn['\u2019]t|does not)\s+(?P<what>[^,;.!?]{2,60}?)\s+(?:any ?more|any longer)\b",
    )
)  # fmt: skip


def _taken_back(old: str, new: str, claims: Sequence[Claim]) -> int:
    """How far the new statement takes the old one back in words: "instead of X", "X is gone"."""
    before, found = stems_of(old), _NOTHING
    for gone in _withdrawn(new):
        what = frozenset(stems_of(gone)) - LIGHT - PREPOSITION_STEMS
        shared = what & before
        if not shared or len(shared) < len(what) * 0.5:
            continue
        topic = (stems_of(new) - what) & (before - what) - LIGHT - GENERIC
        valued = any(shared <= claim.words | topic_of(claim.value) and claim.words & what for claim in claims)
        whole = any(claim.words == what or topic_of(claim.value) == what for claim in claims)
        if (topic and valued) or whole or before - LIGHT <= what:
            return _REPLACED
        if topic and what <= before:
            found = _REPLACED if len(what) > 1 else max(found, _ASKED)
    return found


def _withdrawn(text: str) -> Iterator[str]:
    plain = re.sub(r"\b(is|are|was|were)n['\u2019]t\b", r"\1 not", text)
    for pattern in _BACK:
        for found in pattern.finditer(plain):
            words = [word for word in found["what"].split() if word.lower() not in MODALS]
            if words:
                yield " ".join(words)
