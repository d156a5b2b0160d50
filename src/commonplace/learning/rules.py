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

from commonplace.engine.transcripts import TOOL, Turn
from commonplace.learning.earnest import is_unsafe, jokes, mentions_address, plays, retracts
from commonplace.learning.pasted import GONE
from commonplace.learning.proposals import Proposal, RefusedRequest, SessionFindings
from commonplace.learning.requests import find_requests
from commonplace.learning.rules_patterns import Reading, has_cue, read
from commonplace.learning.rules_text import Clause, clauses, own_words, step_lists
from commonplace.learning.worth import worthless_reason
from commonplace.model.records import CEILING, Channel, Trust
from commonplace.model.values import Value
from commonplace.redact.redaction import redact

PROPOSALS_AT_MOST = 20  # a session does not state more durable facts; a list that long was pasted
_WORDS_AT_LEAST = 2
_HELD_AT_MOST = 200  # of which some may yet be taken back; a session that states more is no session
_CHECK_CHARS = 2000  # a test run tells its result at the end
_TOOL_TURNS_BACK = 3  # how far before a stated fix the passing check may stand


class _Found(Value):
    """A proposal and where in the session it was made."""

    turn: int  #: number of the turn
    user_turn: int  #: how many user turns came before, which is how far a retraction reaches
    proposal: Proposal


def extract(turns: Sequence[Turn], *, most: int = PROPOSALS_AT_MOST) -> list[Proposal]:
    """The durable facts that a session states, in the order in which they were stated; the first ``most`` of them."""
    return list(read_session(turns, most=most).proposals)


def read_session(turns: Sequence[Turn], *, most: int = PROPOSALS_AT_MOST) -> SessionFindings:
    """The same, with the user's requests to remember that are refused; those that are kept count against no limit."""
    asked, refused = _find_requests(turns)
    stated = _distinct([*asked, *_read_statements(turns)])
    over = {id(one) for one in [one for one in stated if not one.asked][most:]}
    kept = tuple(one for one in stated if id(one) not in over)
    return SessionFindings(proposals=kept, refused=tuple(refused))


def _read_statements(turns: Sequence[Turn]) -> list[_Found]:
    """What a session states without having been asked to be remembered."""
    found: list[_Found] = []
    at_work = playing = False
    user_turns = 0
    for number, turn in enumerate(turns):
        if turn.speaker == "user":
            own = own_words(turn.text)
            shown = own.replace(GONE, "")
            user_turns += 1
            playing = plays(shown, playing)
            at_work = at_work or has_cue(shown)
            found = _drop_retracted(found, shown, user_turns)
            if len(found) < _HELD_AT_MOST and not playing and not is_unsafe(turn.text) and not jokes(shown):
                found += _from_user(turns, number, own, user_turns, at_work=at_work)
        elif turn.speaker == "assistant" and len(found) < _HELD_AT_MOST and not playing:
            found += _from_assistant(turns, number, user_turns)
        else:
            at_work = at_work or turn.speaker == TOOL
    return found


# What the user asks to have remembered

_EMPTY = "it does not say what to remember"
_CONFIDENTIAL = "it holds a secret, and memory stores none"
_STEERS = "its message tries to steer whoever reads it"
_PLAYED = "it was said in a role play"
_RULED = re.compile(r"\b(?:never|always|must|only|no|not|nothing|nobody|don'?t)\b", re.IGNORECASE)
_QUOTE_CHARS = 120  # of a request that is refused


def read_requests(turns: Sequence[Turn]) -> tuple[list[Proposal], list[RefusedRequest]]:
    """What the user asks to have remembered: each is kept, or refused with a reason."""
    found, refused = _find_requests(turns)
    return [one.proposal for one in found], refused


def _find_requests(turns: Sequence[Turn]) -> tuple[list[_Found], list[RefusedRequest]]:
    found: list[_Found] = []
    refused: list[RefusedRequest] = []
    playing = False
    user_turns = 0
    for number, turn in enumerate(turns):
        if turn.speaker != "user":
            continue
        own = own_words(turn.text)
        user_turns += 1
        playing = plays(own.replace(GONE, ""), playing)
        found = _drop_retracted(found, own.replace(GONE, ""), user_turns)
        for request in find_requests(own):
            quote = turn.text[request.start : request.end]
            if reason := _refusal(turn.text, quote, playing=playing):
                words = " ".join(turn.text[request.asked_at :].split())[:_QUOTE_CHARS]
                refused.append(RefusedRequest(quote=words, ref=turn.ref, reason=reason))
            else:
                found.append(_asked(turns, number, quote, user_turns, everywhere=request.everywhere))
    return found, refused


def _refusal(text: str, quote: str, *, playing: bool) -> str | None:
    """Why a request is not kept; None if it is."""
    if is_unsafe(text):
        return _STEERS
    if playing:
        return _PLAYED
    if "[secret:" in quote or redact(quote).findings:
        return _CONFIDENTIAL
    return _EMPTY if worthless_reason(quote) else None


def _asked(turns: Sequence[Turn], number: int, quote: str, user_turn: int, *, everywhere: bool) -> _Found:
    turn = turns[number]
    reading = read(quote, asked=False, at_work=True)
    ruled = "principles" if _RULED.search(quote) else "facts"
    category, scope = (reading.category, reading.scope) if reading else (ruled, "project")
    if everywhere:
        category, scope = "preferences", "assistant"
    proposal = Proposal(
        content=_sentence(quote), category=category, scope=scope, quote=quote, refs=(turn.ref,),
        subject=reading.subject if reading else None, occurred_at=turn.occurred_at,
        trust=CEILING[Channel.EXTRACTION], asked=True,
    )  # fmt: skip
    return _Found(turn=number, user_turn=user_turn, proposal=proposal)


def _from_user(turns: Sequence[Turn], number: int, own: str, user_turn: int, *, at_work: bool) -> Iterator[_Found]:
    """What the user states outright."""
    requests = [(one.start, one.end) for one in find_requests(own)]
    lists = list(step_lists(own))
    for clause in lists:
        if _is_within(clause, requests):
            continue
        steps = Reading(category="procedures", scope="project", subject=None, start=0, end=len(clause.plain))
        yield from _to_proposal(turns, number, clause, steps, user_turn, trust=CEILING[Channel.EXTRACTION])
    for clause in clauses(own):
        if _is_within(clause, [*((steps.start, steps.end) for steps in lists), *requests]):
            continue
        if reading := read(clause.plain, asked=clause.asked, at_work=at_work):
            yield from _to_proposal(turns, number, clause, reading, user_turn, trust=CEILING[Channel.EXTRACTION])


def _is_within(clause: Clause, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a clause is read already as a part of something longer."""
    return any(start < clause.end and clause.start < end for start, end in spans)


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
    if not (proved or (confirming is not None and not after_tool)) or is_unsafe(turns[number].text):
        return
    for clause in clauses(own_words(turns[number].text, typed=False)):
        suggested = _SUGGESTED.match(clause.plain)
        at = suggested.end() if suggested else 0
        part = clause.replace(start=clause.start + at, plain=clause.plain[at:])
        reading = read(part.plain, asked=part.asked, at_work=True)
        if reading is None and suggested and _SETTLES.match(part.plain) and has_cue(part.plain, at_work=True):
            reading = Reading(category="decisions", scope="project", subject=None, start=0, end=len(part.plain))
        if reading is None or reading.category == "preferences" or mentions_address(part.plain):
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


_AGAINST = (
    r"(?:no(?:t|\s+longer|\s+more)?|instead\s+of|drop(?:ped)?|remove|without|away\s+from|moved\s+off|don'?t\s+use"
    r"|get\s+rid\s+of|rather\s+than)\s+(?:the\s+)?"
)
_FOUND_WANTING = r"\s+(?:is|was)\s+(?:too|not|gone|dead|a\s+mistake)\b"


def _drop_retracted(found: list[_Found], own: str, user_turn: int) -> list[_Found]:
    """What stands after this user turn: "scratch that" takes back the turn before it."""
    if retracts(own):
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
