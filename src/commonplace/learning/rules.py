"""Extraction without a model: what a session states for good, each fact with its quote.

Pure: no model, no store, no clock, no settings.  It reads what the user asks to have remembered, what the user states
outright, what the user confirmed right after the assistant proposed it, and what went wrong and was mended.  It reads
no tool output, quoted or pasted text, code, logs, or what memory itself put into the session; it reads English only.
How a turn is cut is in ``rules_text``, what a sentence is worth in ``statements``; what becomes of a proposal is for
the gate to decide.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from commonplace.engine.transcripts import TOOL, Turn
from commonplace.learning.classifier import judge
from commonplace.learning.dates import with_dates
from commonplace.learning.earnest import is_unsafe, mentions_address, plays, retracts
from commonplace.learning.incidents import find_incidents
from commonplace.learning.pasted import GONE
from commonplace.learning.proposals import Proposal, RefusedRequest, SessionFindings
from commonplace.learning.requests import find_requests
from commonplace.learning.rules_patterns import has_cue
from commonplace.learning.rules_text import Clause, own_words, step_lists
from commonplace.learning.statements import Statement, find_statements, last_sentence
from commonplace.learning.worth import worthless_reason
from commonplace.model.records import CEILING, Channel, Trust
from commonplace.model.values import Value
from commonplace.redact.redaction import redact
from commonplace.text.tools import exclusive_groups

PROPOSALS_AT_MOST = 20  # a session does not state more durable facts; a list that long was pasted
_WORDS_AT_LEAST = 2
_HELD_AT_MOST = 200  # of which some may yet be taken back; a session that states more is no session
QUOTE_CHARS = 400  # of the turn that tells of a symptom


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
            if len(found) < _HELD_AT_MOST and not playing and not is_unsafe(turn.text):
                found += _from_user(turns, number, own, user_turns, at_work=at_work)
        elif turn.speaker == "assistant" and len(found) < _HELD_AT_MOST and not playing:
            found += _from_assistant(turns, number, user_turns)
        else:
            at_work = at_work or turn.speaker == TOOL
    told = [] if playing else list(_from_incidents(turns))
    refs = {ref for one in told for ref in one.proposal.refs}
    return [*(one for one in found if not _is_told(one, refs)), *told]


def _is_told(found: _Found, refs: Collection[str]) -> bool:
    """Whether a cause or a fix is told already, as a part of an incident."""
    return found.proposal.category == "incidents" and found.proposal.refs[0] in refs


# What the user asks to have remembered

_EMPTY = "it does not say what to remember"
_CONFIDENTIAL = "it holds a secret, and memory stores none"
_STEERS = "its message tries to steer whoever reads it"
_PLAYED = "it was said in a role play"
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
    category = judge(quote).category
    scope = "assistant" if category == "preferences" else "project"
    if everywhere:
        category, scope = "preferences", "assistant"
    proposal = Proposal(
        content=with_dates(_sentence(quote), turn.occurred_at), category=category, scope=scope, quote=quote,
        refs=(turn.ref,), subject=None, occurred_at=turn.occurred_at,
        trust=CEILING[Channel.EXTRACTION], asked=True,
    )  # fmt: skip
    return _Found(turn=number, user_turn=user_turn, proposal=proposal)


def _from_user(turns: Sequence[Turn], number: int, own: str, user_turn: int, *, at_work: bool) -> Iterator[_Found]:
    """What the user states outright."""
    requests = [(one.start, one.end) for one in find_requests(own)]
    lists = list(step_lists(own))
    for steps in lists:
        if not _is_within(steps, requests):
            stated = Statement(start=steps.start, end=steps.end, category="procedures", scope="project", durable=1.0)
            yield from _to_proposal(turns, number, stated, user_turn, trust=CEILING[Channel.EXTRACTION])
    before = turns[number - 1] if number and turns[number - 1].speaker == "assistant" else None
    heard = last_sentence(own_words(before.text, typed=False).replace(GONE, "")) if before else ""
    for stated in find_statements(own, before=heard, at_work=at_work):
        if not _is_within(stated, [*((steps.start, steps.end) for steps in lists), *requests]):
            yield from _to_proposal(turns, number, stated, user_turn, trust=CEILING[Channel.EXTRACTION])


def _is_within(clause: Clause | Statement, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a clause is read already as a part of something longer."""
    return any(start < clause.end and clause.start < end for start, end in spans)


_SUGGESTED = re.compile(
    r"^(?:(?:so|then|ok(?:ay)?)[,\s]+)?(?:i(?:'d| would)? (?:suggest|propose|recommend)|my (?:suggestion|proposal) is)"
    r"\s*:?\s*(?:that\s+)?",
    re.IGNORECASE,
)  # fmt: skip
_CONFIRMED = re.compile(
    r"""^\W*(?:(?:yes|yep|yeah|ok(?:ay)?|great|perfect|sounds\s+good|nice|good)\W+)*
        (?:agreed|exactly|correct|that'?s\s+(?:how\s+we|the\s+rule|right|correct|what\s+we)|let'?s\s+(?:do|go\s+with)\s+that
        |go\s+with\s+that|do\s+that|we(?:'ll)?\s+do\s+(?:that|it\s+(?:that|this)\s+way)|make\s+(?:that|it)\s+(?:the|our)\s+(?:rule|convention))\b
        (?!.*\b(?:but|except|however|check\s+with|let\s+me)\b)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)  # fmt: skip


def _from_assistant(turns: Sequence[Turn], number: int, user_turn: int) -> Iterator[_Found]:
    """What the assistant proposed for good, if the user confirmed it in the next turn."""
    confirming = _find_answer(turns, number, _CONFIRMED)
    after_tool = number > 0 and turns[number - 1].speaker == TOOL
    if confirming is None or after_tool or is_unsafe(turns[number].text):
        return
    own = own_words(turns[number].text, typed=False)
    for stated in find_statements(own, speaker="assistant"):
        words = turns[number].text[stated.start : stated.end]
        if stated.category == "preferences" or mentions_address(words):
            continue
        suggested = _SUGGESTED.match(words)
        part = stated.replace(start=stated.start + suggested.end()) if suggested else stated
        yield from _to_proposal(
            turns, number, part, user_turn, trust=CEILING[Channel.EXTRACTION], confirmed=confirming
        )  # fmt: skip


def _from_incidents(turns: Sequence[Turn]) -> Iterator[_Found]:
    """What went wrong and was mended, each as one fact of all who told of it."""
    for one in find_incidents(turns, _spoken):
        texts = [turns[at] for at in one.turns]
        if any(is_unsafe(turn.text) for turn in texts) or "[secret:" in one.content or redact(one.content).findings:
            continue
        told, cause = turns[one.confirmed], turns[one.causes[0][0]]
        refs = dict.fromkeys([cause.ref, *(turn.ref for turn in texts)])
        proposal = Proposal(
            content=one.content, category="incidents", scope="project", quote=cause.text.strip()[:QUOTE_CHARS],
            refs=tuple(refs), subject=None, occurred_at=told.occurred_at, trust=CEILING[Channel.EXTRACTION],
        )  # fmt: skip
        before = sum(turn.speaker == "user" for turn in turns[: one.confirmed + 1])
        yield _Found(turn=one.confirmed, user_turn=before, proposal=proposal)


def _spoken(turn: Turn) -> str:
    return own_words(turn.text, typed=turn.speaker == "user")


def _find_answer(turns: Sequence[Turn], number: int, how: re.Pattern[str]) -> str | None:
    """The reference of the next turn, if it is the user's and answers in that way."""
    if number + 1 >= len(turns):
        return None
    after = turns[number + 1]
    return after.ref if after.speaker == "user" and how.match(after.text[:300]) else None


def _to_proposal(
    turns: Sequence[Turn], number: int, stated: Statement, user_turn: int, *, trust: Trust,
    confirmed: str | None = None,
) -> Iterator[_Found]:  # fmt: skip
    turn = turns[number]
    quote = turn.text[stated.start : stated.end]
    if len(quote.split()) < (1 if stated.lead else _WORDS_AT_LEAST) or "[secret:" in quote or redact(quote).findings:
        return
    content = f"{stated.lead} {_sentence(quote)}" if stated.lead else _sentence(quote)
    refs = (turn.ref, confirmed) if confirmed else (turn.ref,)
    proposal = Proposal(
        content=with_dates(content, turn.occurred_at), category=stated.category, scope=stated.scope, quote=quote,
        refs=refs, subject=_subject(stated, quote), occurred_at=turn.occurred_at, trust=trust,
        by_user=turn.speaker == "user" or confirmed is not None,
    )  # fmt: skip
    yield _Found(turn=number, user_turn=user_turn, proposal=proposal)


def _subject(stated: Statement, quote: str) -> str | None:
    """What a decision is about, where it chooses a tool of which a project has one: it is found by that too."""
    groups = exclusive_groups(quote) if stated.category == "decisions" else frozenset()
    return next(iter(groups)) if len(groups) == 1 else None


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
    """Return each fact once, the first time it was stated."""
    seen: dict[str, Proposal] = {}
    for one in found:
        seen.setdefault(one.proposal.content.casefold(), one.proposal)
    return list(seen.values())
