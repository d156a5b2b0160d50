"""Turn what a store saw into one ranked list.  Pure: no store, no clock, no model.

A hit's score is *evidence*, times what else speaks for it or against it.  Evidence adds up: the question's words in the
text and in the turns before it, how many of them there are, nearness in meaning, the session around it, who speaks and
when.  Boosts are shares of the evidence, so that they decide between near equals and lift nothing that has none.
Scores are fused, not ranks: rank fusion measured worse than full text alone.

The weights were fitted on the first five conversations of LoCoMo and on every second question of the LongMemEval pool,
and rounded; ``docs/how-it-works.md`` has the figures on the others.  A hit's parts add up to its score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf, log
from operator import itemgetter

from commonplace.model.queries import Candidate, Hit, Survey
from commonplace.model.records import Trust
from commonplace.text.cleaning import estimate_tokens
from commonplace.text.periods import periods
from commonplace.text.question import MACHINES, ParsedQuestion, Profile, is_standing_instruction, phrase_words

# Evidence.  With the first five alone the best that there can be is 1; without vectors the other three share it.
WORDS = 0.15  # the question's words, each where it is worth most: in the text, or a little less in its neighbours
REACH = 0.30  # the share of the question's words that are there or in the two turns before, each by its rarity
MEANING = 0.13  # cosine to the question, between the farthest and the nearest that was seen
CONTEXT = 0.28  # the same of a turn and the one before it, taken together
SESSION = 0.14  # the best three turns of its session, by their words
WHO = 0.10  # spoken by whom the question names, or a record that names them too
WHEN = 0.20  # from the time that the question means
DAY = 0.30  # more, if that is a day
MENTIONED = 0.07  # or its text mentions that time
PHRASE = 0.40  # has a number beside its word ("note 77"), as the question has it
INSTRUCTS = 0.08  # a person's standing instruction, where its topic fits: "always ...", "from now on ..."
EVERY = 1.00  # in a working context: it has every word itself; no boost lifts a record with half of them above one

# Boosts, as shares of the evidence.
LONG = 0.45  # a text of sixty words or more; "Thanks!" is rarely an answer
ASKS = -0.30  # a short question is not one either
DATES = 0.30  # words such as "yesterday", if the question wants to know a time
ASSISTANT = -0.45  # text of an assistant or a tool; users mostly ask for their own statements
RECENT = 0.30  # the newest of the sessions that were seen; half of it after ten newer ones
KEPT = 0.25  # a record ranks above a session turn
PINNED = 0.05
USED = 0.03  # recalled ten times or more
UNTRUSTED = -0.10  # text from outside

#: What a score of one stands for: a record, the newest, nearest, with all words; a date or a pin can be above it.
BEST = {Profile.RECALL: 1 + LONG, Profile.WORKING: (1 + EVERY) * (1 + RECENT + KEPT)}

# How far a hit bears on a question, whatever else was found: what decides whether to say anything at all.
BY_WORDS = 0.28  # one word that no other text has; each word counts by its rarity
BY_MEANING = 0.41  # a cosine of one
BY_A_WORD = 0.05  # each of the first two words that are not common
UNKNOWN_NEAR = 0.3  # the cosine that a text without a vector counts as having, if it has such a word
MANY_TEXTS = 100  # a word is as rare as among so many, though there are few: in a young store nothing is rare

MEANT = 0.2  # of the way from chance to one, from which on a cosine makes a text bear on a question without its words
CHANCE = 0.06  # the cosine of texts that have nothing in common, with the built-in embedder
SPAN = 0.2  # differences between closer cosines count less: of two records one is always nearer
BEFORE = (0.7, 0.4)  # what a word is worth in the turn before, and in the one before that
AFTER = 0.5  # and in the turn after
SHORT_WORDS = 60  # only turns that are both no longer lend each other context: a page stands for itself
ASKS_WORDS = 30
HALF_LIFE_SESSIONS = 10
MUCH_USED = 10  # recalls
_TIMES = frozenset(
    ("yesterday", "today", "tonight", "tomorrow", "last", "next", "ago", "week", "weeks", "month", "months", "year",
     "years", "weekend", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
)  # fmt: skip

_SMALL = frozenset(
    ("", "a", "an", "the", "is", "are", "was", "were", "and", "of", "to", "that", "too", "also", "please")
)

Parts = list[tuple[str, float]]


class _Candidate:
    """A candidate with its own score and that of its neighbours.  Hundreds are made for each question."""

    __slots__ = (
        "before", "candidate", "chunk", "cosine", "document", "each", "own", "reach", "record", "scope", "size",
        "telling", "text", "words",
    )  # fmt: skip

    def __init__(
        self, candidate: Candidate, document: int, scope: str, weights: Sequence[float], telling: Sequence[int]
    ) -> None:
        self.candidate = candidate
        self.cosine = candidate.similarity  #: how near it is to the question in meaning
        self.scope = scope  #: of a chunk: two scopes may have sessions of one name
        self.record, self.chunk = candidate.record, candidate.chunk
        self.document = document  #: a number for its session; a record has one of its own
        self.text = candidate.record.content if candidate.record else candidate.chunk.text if candidate.chunk else ""
        self.size = len(self.text.split())  #: in words
        #: what each word of the question is worth in it
        words = candidate.words
        self.each: Sequence[float] = words
        if weights:
            self.each = [worth * weight for worth, weight in zip(words, weights, strict=True)]
        self.own = sum(self.each)  #: its own words
        #: how many of them are not common
        self.telling = len([1 for at in telling if words[at]]) if self.own else 0
        self.words = 0.0  #: with its neighbours'
        self.reach = 0.0
        self.before: list[_Candidate] = []  #: the turns before it that lend it context, the nearest first

    @property
    def moment(self) -> datetime | None:
        """The time of the turn or the record."""
        if self.record:
            return self.record.occurred_at or self.record.created_at
        return self.chunk.occurred_at if self.chunk else None


class _Comparison:
    """What all candidates are compared with: the best of each measure."""

    def __init__(
        self,
        seen: Sequence[_Candidate],
        asked: ParsedQuestion,
        *,
        texts: int,
        rarities: Sequence[float],
        weights: Sequence[float],
        chance: float,
    ) -> None:
        self.chance = chance
        known = max(texts, len(seen)) + 1
        many = max(known, MANY_TEXTS + 1)
        self.rarest = log(2 * many)  #: how rare a word is that no text has
        #: by how much rarer each word would be among many texts
        self.rarer = [1 + log(many / known) / rarity if rarity else 1.0 for rarity in rarities]
        self.asks_telling = any(weight >= 1 for weight in weights)  #: the question has words that are not common
        self.most = max(one.words for one in seen) or 1.0
        self.sessions = _sessions(seen)
        self.ages = _ages(seen) if asked.profile is Profile.WORKING else {}
        cosines = [one.cosine for one in seen if one.cosine is not None]
        self.low, self.high = (min(cosines), max(cosines)) if cosines else (0.0, 0.0)

    def between(self, cosine: float) -> float:
        """A cosine as 0..1 between the farthest and the nearest, unless they are close; a single one as it is."""
        if self.high == self.low:
            return max(0.0, cosine)
        return min(1.0, max(0.0, 1 - (self.high - cosine) / max(SPAN, self.high - self.low)))


def rank(
    survey: Survey,
    asked: ParsedQuestion,
    *,
    limit: int,
    weights: Sequence[float] = (),
    few: Mapping[str, float] | None = None,
    chance: float = CHANCE,
) -> list[Hit]:
    """The best hits, best first, ties by id: the same survey always gives the same hits.

    ``weights`` are what the words of the question count, beside their rarity; below one they are common words.  In a
    question about the past they count like others, since the turns around a match and its length say more.  ``few``
    are the only records that match, by id, and how near each is: see ``young``.  ``chance`` is the cosine of texts
    that have nothing in common, with the embedder of the store.
    """
    weights = weights or [1.0] * len(survey.rarities)
    as_work = asked.profile is Profile.WORKING or few is not None
    seen = _candidates(survey, weights if as_work else (), weights, few)
    if not seen:
        return []
    view = _Comparison(seen, asked, texts=survey.texts, rarities=survey.rarities, weights=weights, chance=chance)
    scored = []
    for one in seen:
        if one.cosine is None if few is not None else not _bears(one, asked, view):
            continue
        base = sum([part for _, part in _evidence(one, asked, view)])
        share = sum([share for _, share in _boosts(one, asked, view)])
        scored.append((-round(base * (1 + share), 12), one.candidate.id, one.scope, one))
    scored.sort(key=itemgetter(0, 1, 2))
    return [_hit(one, asked, view) for *_, one in scored[:limit]]


def _hit(one: _Candidate, asked: ParsedQuestion, view: _Comparison) -> Hit:
    """Return the hit with its score, at most 1; what a date or a pin adds above that is a negative part."""
    evidence = _evidence(one, asked, view)
    base = sum([part for _, part in evidence])
    best = BEST[asked.profile]
    boosts = [(name, base * share) for name, share in _boosts(one, asked, view)]
    shown = [(name, part / best) for name, part in (*evidence, *boosts) if part]
    over = sum([part for _, part in shown]) - 1
    if over > 0:
        shown.append(("above one", -over))
    return Hit(
        score=max(0.0, sum([part for _, part in shown])),
        record=one.record,  # type: ignore[arg-type]  # as `Hit` says
        chunk=one.chunk,
        similarity=one.candidate.similarity,
        parts=tuple(shown),
        bears=_bearing(one, view),
    )


# What each is worth


def _candidates(
    survey: Survey, weights: Sequence[float], common: Sequence[float], few: Mapping[str, float] | None
) -> list[_Candidate]:
    documents: dict[object, int] = {}
    places: dict[tuple[int, int], _Candidate] = {}
    paths: dict[int, str] = {}  # by identity: to write a scope out takes longer than all the rest here
    seen = []
    telling = [at for at, weight in enumerate(common) if weight >= 1]
    for candidate in survey.candidates:
        chunk = candidate.chunk
        if chunk and id(chunk.scope) not in paths:
            paths[id(chunk.scope)] = str(chunk.scope)
        scope = paths[id(chunk.scope)] if chunk else ""
        key = (scope, chunk.kind, chunk.document) if chunk else candidate.id
        one = _Candidate(candidate, documents.setdefault(key, len(documents)), scope, weights, telling)
        one.cosine = candidate.similarity if few is None else few.get(candidate.id)
        seen.append(one)
        if chunk:
            places[one.document, chunk.seq] = one
    even = weights or [1.0] * len(survey.rarities)
    rarities = [rarity * weight for rarity, weight in zip(survey.rarities, even, strict=True)]
    whole = sum(rarities) or 1.0
    for one in seen:
        _add_context(one, places, rarities, whole)
    return seen


def _add_context(
    one: _Candidate, places: Mapping[tuple[int, int], _Candidate], rarities: Sequence[float], whole: float
) -> None:
    """Add the words of its neighbours to a turn, if it and they are short."""
    words: Sequence[float] = one.each
    one.before = _neighbours(one, places, (-1, -2))
    before = [(share, other) for share, other in zip(BEFORE, one.before, strict=False) if other.own]
    after = [(AFTER, other) for other in _neighbours(one, places, (1,)) if other.own]
    if not (one.own or before or after):
        return
    worth = words
    for share, other in (*before, *after):
        lent = [share * theirs for theirs in other.each]
        worth = [max(mine, theirs) for mine, theirs in zip(worth, lent, strict=True)]
    one.words = sum(worth)
    there = map(max, words, *[other.each for _, other in before]) if before else words
    one.reach = sum([rarity for rarity, worth in zip(rarities, there, strict=True) if worth]) / whole


def _neighbours(
    one: _Candidate, places: Mapping[tuple[int, int], _Candidate], steps: Sequence[int]
) -> list[_Candidate]:
    """Return the turns next to a short one, up to the first that is missing or long."""
    found: list[_Candidate] = []
    if one.chunk is None or one.size > SHORT_WORDS:
        return found
    for step in steps:
        other = places.get((one.document, one.chunk.seq + step))
        if other is None or other.size > SHORT_WORDS:
            break
        found.append(other)
    return found


def _sessions(seen: Sequence[_Candidate]) -> dict[int, float]:
    """What each session's best three turns are worth by their words, as a share of the best session's."""
    worths: dict[int, list[float]] = {}
    for one in seen:
        worths.setdefault(one.document, []).append(one.own)
    means = {document: sum(sorted(own, reverse=True)[:3]) / min(3, len(own)) for document, own in worths.items()}
    most = max(means.values()) or 1.0
    return {document: mean / most for document, mean in means.items()}


# Evidence and boosts


def _bears(one: _Candidate, asked: ParsedQuestion, view: _Comparison) -> bool:
    """Tell whether a candidate matches at all: something is always nearest, and there may be no answer."""
    if one.telling or _nearness(one, view) >= MEANT or (one.own and not view.asks_telling):
        return True
    if asked.profile is Profile.WORKING:  # current work does not need the turns around a match
        return False
    return bool(one.words or view.sessions[one.document] or (asked.periods and _times(one, asked)))


def _nearness(one: _Candidate, view: _Comparison) -> float:
    """How near a candidate is to the question, from chance (0) to the same (1)."""
    cosine = max(one.candidate.similarity or 0.0, (one.candidate.together or 0.0) if one.before else 0.0)
    return max(0.0, (cosine - view.chance) / (1 - view.chance)) if view.chance < 1 else 0.0


def _bearing(one: _Candidate, view: _Comparison) -> float:
    """Return how far a candidate bears on a question; the same whatever else was found."""
    unknown = one.candidate.similarity is None and bool(one.telling)
    near = UNKNOWN_NEAR if unknown else CHANCE + (1 - CHANCE) * _nearness(one, view)
    words = sum([worth * rarer for worth, rarer in zip(one.each, view.rarer, strict=True)]) / view.rarest
    return BY_WORDS * words + BY_MEANING * near + BY_A_WORD * min(2, one.telling)


def _evidence(one: _Candidate, asked: ParsedQuestion, view: _Comparison) -> Parts:
    words, session = one.words / view.most, view.sessions[one.document]
    parts = [("words", WORDS * words), ("reach", REACH * one.reach), ("session", SESSION * session)]
    cosine = one.cosine
    if cosine is None:
        parts = [(name, part / (WORDS + REACH + SESSION)) for name, part in parts]
    else:
        together = one.candidate.together if one.before else None
        near = view.between(cosine)
        parts += [
            ("meaning", MEANING * near),
            ("context", CONTEXT * (near if together is None else view.between(together))),
        ]
    if asked.profile is Profile.WORKING and one.candidate.words and all(one.candidate.words):
        parts.append(("every word", EVERY))
    if (one.telling or _nearness(one, view) >= MEANT) and _instructs(one):
        parts.append(("instruction", INSTRUCTS))
    if asked.phrases and (share := _phrases(one.text, asked.phrases)):
        parts.append(("phrase", PHRASE * share))
    if len(asked.names) == 1 and _is_of(one, *asked.names):
        parts.append(("who", WHO))
    return [*parts, *_times(one, asked)] if asked.periods else parts


def _instructs(one: _Candidate) -> bool:
    """Whether a person says how things are to be done from now on."""
    by_person = one.chunk is None or one.chunk.speaker.lower() not in MACHINES
    return by_person and is_standing_instruction(one.text)


def _phrases(text: str, phrases: Sequence[str]) -> float:
    """The share of some phrases that a text has, word for word."""
    words = f" {' '.join(phrase_words(text))} "
    return sum(f" {phrase} " in words for phrase in phrases) / len(phrases)


def _is_of(one: _Candidate, name: str) -> bool:
    """Tell whether a turn is by this speaker, or a record names them."""
    if one.chunk:
        return one.chunk.speaker.lower() == name
    words = {word.strip(".,;:?!\"'()").removesuffix("'s") for word in one.text.lower().split()}
    return not words.isdisjoint(name.split())


def _times(one: _Candidate, asked: ParsedQuestion) -> Parts:
    """What speaks for it if the question means a time: it is from then, on that day, or tells of then."""
    moment = one.moment
    if moment is None:
        return []
    parts = []
    if any(period.holds(moment) for period in asked.periods):
        parts.append(("when", WHEN))
    if any(period.near(moment) for period in asked.periods):
        parts.append(("day", DAY))
    if any(period.meets(mentioned) for mentioned in periods(one.text, moment) for period in asked.periods):
        parts.append(("mentioned", MENTIONED))
    return parts


def _boosts(one: _Candidate, asked: ParsedQuestion, view: _Comparison) -> Parts:
    record, chunk = one.record, one.chunk
    trust = record.trust if record else chunk.trust if chunk else Trust.EXTERNAL
    boosts: Parts = [("from outside", UNTRUSTED)] if trust is Trust.EXTERNAL else []
    if record and record.pinned:
        boosts.append(("pinned", PINNED))
    if record and record.usage.recalls >= MUCH_USED:  # a step: each recall would else change the next one's prompt
        boosts.append(("used", USED))
    if asked.profile is Profile.WORKING:
        kept = [("record", KEPT)] if record else []
        return [*boosts, *kept, ("recent", RECENT * 0.5 ** (view.ages[one.document] / HALF_LIFE_SESSIONS))]
    return [*boosts, *_priors(one, asked)]


def _priors(one: _Candidate, asked: ParsedQuestion) -> Parts:
    """Return the boosts for typical answers to questions about the past.  A record counts as long at any length."""
    if one.chunk is None:
        return [("length", LONG)]
    priors = [("length", LONG * min(1.0, log(1 + one.size) / log(SHORT_WORDS)))]
    if one.size < ASKS_WORDS and one.text.rstrip().endswith("?"):
        priors.append(("asks", ASKS))
    if asked.when and _tells_time(one.text):
        priors.append(("dates", DATES))
    is_machine = one.chunk.speaker.lower() in MACHINES
    if (
        is_machine and not asked.of_assistant and not all(one.candidate.words)
    ):  # a turn with every word counts, also an assistant's
        priors.append(("assistant", ASSISTANT))
    return priors


def _tells_time(text: str) -> bool:
    words = text.lower().split()
    if not _TIMES.isdisjoint(words):
        return True
    others = [word.strip(".,;:?!\"'()") for word in words if not word.isalpha()]  # which are few
    return any(word in _TIMES or (len(word) == 4 and word.isdecimal()) for word in others)  # noqa: PLR2004 - a year


def _ages(seen: Sequence[_Candidate]) -> dict[int, int]:
    """How many of the sessions and records that were seen are newer."""
    newest: dict[int, float] = {}
    for one in seen:
        moment = one.moment
        when = moment.timestamp() if moment else -inf
        newest[one.document] = max(newest.get(one.document, -inf), when)
    places = {when: place for place, when in enumerate(sorted(set(newest.values()), reverse=True))}
    return {document: places[when] for document, when in newest.items()}


# What is shown


def distinct(hits: Sequence[Hit]) -> list[Hit]:
    """The hits without those that say the same as one above them but for small words, which then names them."""
    kept: dict[tuple[str, ...], Hit] = {}
    for hit in hits:
        words = [word.strip(".,;:?!\"'()*`") for word in hit.text.lower().split()]
        words_that_count = tuple(
            word for word in words if word not in _SMALL
        )  # a number, a "not" or an "only" more is another thing
        better = kept.get(words_that_count)
        kept[words_that_count] = better.replace(alike=(*better.alike, hit.id)) if better else hit
    return list(kept.values())


def within(hits: Sequence[Hit], budget: int | None) -> list[Hit]:
    """The hits that fit a budget of tokens, in order; one that does not fit makes room for a shorter one."""
    if budget is None:
        return list(hits)
    kept, left = [], budget
    for hit in hits:
        cost = estimate_tokens(hit.text)
        if cost <= left:
            kept.append(hit)
            left -= cost
    return kept
