"""Extraction by rules: a conservative reader of sessions that proposes durable facts, each with its quote.

Pure: no model, no store, no clock, no settings.  It reads what the user stated outright, what the user confirmed right
after the assistant proposed it, and fixes that the assistant states after a check passed or to which the
user says "great".  It never reads tool output,
quoted or pasted text, code, logs, or what memory itself put into the session; it reads English only; and where it is
not sure it proposes nothing.  How a turn is cut is in ``rules_text``, what a clause can say in ``rules_patterns``; what
becomes of a proposal is for the gate to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from commonplace.engine.transcripts import TOOL, Turn
from commonplace.learning.pasted import GONE
from commonplace.learning.rules_patterns import Reading, has_cue, read
from commonplace.learning.rules_text import Clause, clauses, own_words, step_lists
from commonplace.model.records import CEILING, Channel, Trust
from commonplace.model.values import Value
from commonplace.redact.redaction import redact

PROPOSALS_AT_MOST = 20  # a session does not state more durable facts; a list that long was pasted
_WORDS_AT_LEAST = 2
_HELD_AT_MOST = 200  # of which some may yet be taken back; a session that states more is no session
_CHECK_CHARS = 2000  # a test run tells its result at the end
_TOOL_TURNS_BACK = 3  # how far before a stated fix the passing check may stand


class Proposal(Value):
    """A durable fact that a reader found, before the gate."""

    content: str  #: the fact as one sentence, in the speaker's words
    category: str  #: decisions | procedures | principles | incidents | preferences
    scope: str  #: project | assistant
    quote: str  #: the exact words it rests on: a substring of a turn's text
    refs: tuple[str, ...]  #: the turn of the quote first, then the one that confirmed it
    subject: str | None  #: a slug of what it is about, if clear: a later fact about the same can replace it
    occurred_at: datetime | None
    trust: Trust  #: at most what extraction can give
    by_user: bool = True  #: it rests on the user's own words


class _Found(Value):
    """A proposal and where in the session it was made."""

    turn: int  #: number of the turn
    user_turn: int  #: how many user turns came before, which is how far a retraction reaches
    proposal: Proposal


def extract(turns: Sequence[Turn], *, most: int = PROPOSALS_AT_MOST) -> list[Proposal]:
    """The durable facts that a session states, in the order in which they were stated; the first ``most`` of them."""
    found: list[_Found] = []
    at_work = playing = False
    user_turns = 0
    for number, turn in enumerate(turns):
        if turn.speaker == "user":
            own = own_words(turn.text)
            shown = own.replace(GONE, "")
            user_turns += 1
            playing = _plays(shown, playing)
            at_work = at_work or has_cue(shown)
            found = _drop_retracted(found, shown, user_turns)
            if len(found) < _HELD_AT_MOST and not playing and not _is_unsafe(turn.text) and not _jokes(shown):
                found += _from_user(turns, number, own, user_turns, at_work=at_work)
        elif turn.speaker == "assistant" and len(found) < _HELD_AT_MOST and not playing:
            found += _from_assistant(turns, number, user_turns)
        else:
            at_work = at_work or turn.speaker == TOOL
    return _distinct(found)[:most]


def _from_user(turns: Sequence[Turn], number: int, own: str, user_turn: int, *, at_work: bool) -> Iterator[_Found]:
    """What the user states outright."""
    lists = list(step_lists(own))
    for clause in lists:
        steps = Reading(category="procedures", scope="project", subject=None, start=0, end=len(clause.plain))
        yield from _to_proposal(turns, number, clause, steps, user_turn, trust=CEILING[Channel.EXTRACTION])
    for clause in clauses(own):
        if any(steps.start <= clause.start < steps.end for steps in lists):
            continue
        if reading := read(clause.plain, asked=clause.asked, at_work=at_work):
            yield from _to_proposal(turns, number, clause, reading, user_turn, trust=CEILING[Channel.EXTRACTION])


_SUGGESTED = re.compile(
    r"^(?:i(?:'d| would)? (?:suggest|propose|recommend)|my (?:suggestion|proposal) is)\s*:?\s*(?:that\s+)?",
    re.IGNORECASE,
)
_SETTLES = re.compile(r"we\s+(?!could|might|should|would|can|may)\w+\s+\S+\s+\S", re.IGNORECASE)
_CONFIRMED = re.compile(
    r"""^\W*(?:(?:yes|yep|yeah|ok(?:ay)?|great|perfect|sounds\s+good|nice|good)\W+)*
        (?:agreed|exactly|correct|that'?s\s+(?:how\s+we|the\s+rule|right|correct|what\s+we)|let'?s\s+(?:do|go\s+with)\s+that
        |go\s+with\s+that|do\s+that|we(?:'ll)?\s+do\s+(?:that|it\s+(?:that|this)\s+way)|make\s+(?:that|it)\s+(?:the|our)\s+(?:rule|convention))\b
        (?!.*\b(?:but|except|however|check\s+with|let\s+me)\b)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)  # fmt: skip
_FAILED = re.compile(r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bFAIL(?:ED|URE)?\b")
_PRAISED = re.compile(
    r"\W*(?:great|perfect|excellent|fantastic|awesome|nice|good (?:catch|work|job|find)|well done|thanks|thank you"
    r"|thx|ty|works|it works|that (?:works|fixed)|confirmed|exactly)\b(?!.*\b(?:but|still|however|not)\b)",
    re.IGNORECASE | re.DOTALL,
)
_PASSED = re.compile(
    r"\b(?:[1-9]\d* passed|all tests pass\w*|BUILD SUCCESS\w*|tests? passed"
    r"|PASS(?:ED)?\b(?!WORD)|0 (?:failed|failures|errors)|exit(?:ed)?(?: code)? 0)",
    re.IGNORECASE,
)


def _from_assistant(turns: Sequence[Turn], number: int, user_turn: int) -> Iterator[_Found]:
    """A fix that a check has proved, or a proposal that the user confirmed in the next turn."""
    confirming = _find_answer(turns, number, _CONFIRMED)
    after_tool = number > 0 and turns[number - 1].speaker == TOOL
    proved = _is_proved(turns, number)
    if not (proved or (confirming is not None and not after_tool)) or _is_unsafe(turns[number].text):
        return
    for clause in clauses(own_words(turns[number].text, typed=False)):
        suggested = _SUGGESTED.match(clause.plain)
        at = suggested.end() if suggested else 0
        part = clause.replace(start=clause.start + at, plain=clause.plain[at:])
        reading = read(part.plain, asked=part.asked, at_work=True)
        if reading is None and suggested and _SETTLES.match(part.plain) and has_cue(part.plain, at_work=True):
            reading = Reading(category="decisions", scope="project", subject=None, start=0, end=len(part.plain))
        if reading is None or reading.category == "preferences" or _mentions_address(part.plain):
            continue
        if reading.category == "incidents" and proved:
            # It rests on what a tool printed, so it is trusted no more than that.
            yield from _to_proposal(turns, number, part, reading, user_turn, trust=Trust.EXTERNAL)
        elif confirming is not None and not after_tool:
            yield from _to_proposal(
                turns, number, part, reading, user_turn, trust=CEILING[Channel.EXTRACTION], confirmed=confirming
            )


def _is_proved(turns: Sequence[Turn], number: int) -> bool:
    """Tell whether a check passed around a turn of the assistant, or the user was content with it right after."""
    around = turns[max(0, number - _TOOL_TURNS_BACK) : number + 2]
    checks = [turn.text[-_CHECK_CHARS:] for turn in around if turn.speaker == TOOL]
    return (
        any(_PASSED.search(shown) and not _FAILED.search(shown) for shown in checks)
        or _find_answer(turns, number, _PRAISED) is not None
    )


def _find_answer(turns: Sequence[Turn], number: int, how: re.Pattern[str]) -> str | None:
    """The reference of the next turn, if it is the user's and answers in that way."""
    if number + 1 >= len(turns):
        return None
    after = turns[number + 1]
    return after.ref if after.speaker == "user" and how.match(after.text[:300]) else None


def _to_proposal(
    turns: Sequence[Turn], number: int, clause: Clause, reading: Reading, user_turn: int, *, trust: Trust,
    confirmed: str | None = None,
) -> Iterator[_Found]:  # fmt: skip
    turn = turns[number]
    quote = turn.text[clause.start + reading.start : clause.start + reading.end]
    if len(quote.split()) < _WORDS_AT_LEAST or "[secret:" in quote or redact(quote).findings:
        return
    proposal = Proposal(
        content=_sentence(quote), category=reading.category, scope=reading.scope, quote=quote,
        refs=(turn.ref, confirmed) if confirmed else (turn.ref,), subject=reading.subject,
        occurred_at=turn.occurred_at, trust=trust, by_user=turn.speaker == "user" or confirmed is not None,
    )  # fmt: skip
    yield _Found(turn=number, user_turn=user_turn, proposal=proposal)


def _sentence(quote: str) -> str:
    """The quote as a sentence: a capital before, unless a name stands there, and a full stop after."""
    first = quote.split(maxsplit=1)[0]
    capital = quote[0].upper() + quote[1:] if re.fullmatch(r"[a-z][a-z']*", first) else quote
    return capital if capital[-1] in ".!?" else capital + "."


_PLAYS = re.compile(
    r"\b(?:pretend|role-?play\w*|rehears\w+|imagine (?:you|that you|we)|let's play|write (?:me )?an?"
    r" (?:\w+ )?(?:story|poem|song|novel|haiku|screenplay|dialogue|joke))\b",
    re.IGNORECASE,
)
_PLAYS_NO_MORE = re.compile(
    r"\b(?:end of (?:the )?\w+|back to (?:work|reality|the code)|seriously|stop (?:the )?(?:role|game|play)\w*)\b",
    re.IGNORECASE,
)
_JOKES = re.compile(
    r"(?:(?<!\w)/s\b|\b(?:lol|lmao|rofl|haha\w*|hehe\w*|jk|just kidding|i'm joking|yeah right"
    r"|what could go wrong|why not)\b|(?<!\w)[:;]-?[DP](?!\w)|[\U0001f602\U0001f923\U0001f61c\U0001f643\U0001f609])",
    re.IGNORECASE,
)
_UNSAFE = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){0,3}(?:previous|prior|earlier|above|all|system)\s+(?:\w+\s+)?"
    r"(?:instructions?|prompts?|rules|messages?)|\b(?:for|to|attention)\s+(?:all\s+)?(?:ai|llm)\s+(?:agents?|assistants?|models?)\b"
    r"|\bsystem\s+prompt\b|<\|?(?:system|im_start)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://|\b[\w.]+@[\w.]+\.\w+|\bcurl\b|\|\s*(?:ba)?sh\b", re.IGNORECASE)
_RETRACTS = re.compile(
    r"""(?:^|[.!?\n,]\s{0,3}|\b(?:ok(?:ay)?|oh|wait|no|hmm?|sorry|haha|lol|ah|actually)[,\s]+)
        (?:forget\s+(?:what|that|it|about)|scratch\s+that|never\s*mind(?!\s+the)|ignore\s+(?:that|what\s+i)|disregard\s+(?:that|what)
        |i\s+take\s+(?:that|it)\s+back|on\s+second\s+thoughts?|(?:sorry,?\s+)?my\s+(?:mistake|bad)|i\s+was\s+wrong
        |you'?re\s+right|(?:please\s+)?(?:do\s+not|don'?t)\s*[.!]?$|just\s+kidding|was\s+(?:joking|kidding)|undo\s+that
        |actually\s+no\b|changed\s+my\s+mind|let'?s\s+not\b)""",
    re.IGNORECASE | re.VERBOSE,
)  # fmt: skip
_NAMES = re.compile(r"[A-Za-z][\w.+#-]{2,}")
_AGAINST = (
    r"(?:no(?:t|\s+longer|\s+more)?|instead\s+of|drop(?:ped)?|remove|without|away\s+from|moved\s+off|don'?t\s+use"
    r"|get\s+rid\s+of|rather\s+than)\s+(?:the\s+)?"
)
_FOUND_WANTING = r"\s+(?:is|was)\s+(?:too|not|gone|dead|a\s+mistake)\b"


def _plays(own: str, playing: bool) -> bool:
    """Return whether the session is a role play after this turn; statements in one do not count."""
    if playing and _PLAYS_NO_MORE.search(own):
        return False
    return playing or bool(_PLAYS.search(own))


def _jokes(own: str) -> bool:
    return bool(_JOKES.search(own))


def _is_unsafe(text: str) -> bool:
    """Tell whether a turn carries words that try to steer a reader: then nothing of it is believed."""
    return bool(_UNSAFE.search(text))


def _mentions_address(plain: str) -> bool:
    return bool(_ADDRESS.search(plain))


def _drop_retracted(found: list[_Found], own: str, user_turn: int) -> list[_Found]:
    """What stands after this user turn: "scratch that" takes back the turn before it."""
    if _RETRACTS.search(own):
        found = [one for one in found if one.user_turn < user_turn - 1]
    return [one for one in found if not _is_refused(one.proposal, own)]


def _is_refused(proposal: Proposal, own: str) -> bool:
    """Tell whether a later turn turns against the thing that was chosen: "use uPlot instead of recharts"."""
    if proposal.category != "decisions":
        return False
    chosen = re.search(r"\b(?:use|using|with|to|on)\s+(\w[\w.+#-]{2,})", proposal.quote, re.IGNORECASE)
    name = re.escape(chosen[1]) if chosen else "$."  # which nothing is
    return bool(re.search(rf"\b{_AGAINST}{name}\b|\b{name}{_FOUND_WANTING}", own, re.IGNORECASE))


def _distinct(found: list[_Found]) -> list[Proposal]:
    """Return each fact once, the first time it was stated; of decisions about one subject the last."""
    seen: dict[str, Proposal] = {}
    latest: dict[tuple[str, str, str | None], int] = {
        (one.proposal.scope, one.proposal.category, one.proposal.subject): one.turn
        for one in found
        if one.proposal.subject and one.proposal.category == "decisions"
    }
    for one in found:
        proposal = one.proposal
        last = latest.get((proposal.scope, proposal.category, proposal.subject), one.turn)
        if one.turn >= last:
            seen.setdefault(proposal.content.casefold(), proposal)
    return list(seen.values())
