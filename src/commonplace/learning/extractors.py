"""Extract facts from a session: by rules, or by a model whose answer keeps to a strict contract.  Nothing is written.

A model sees redacted turns as JSON, one a line, and its answer is not trusted: on which turn a fact rests, when
it was stated and how far it can be trusted is decided here, from the words themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from commonplace.config.learning import Learning
from commonplace.engine.transcripts import Turn
from commonplace.learning import rules
from commonplace.learning.model_prompts import BadReply, fill_template, load_reply
from commonplace.learning.proposals import Proposal, RefusedRequest
from commonplace.learning.rules_text import brings_in_text, own_words
from commonplace.model.documents import DocumentKind
from commonplace.model.ports import Model, ModelAnswer
from commonplace.model.records import CATEGORIES, CEILING, Channel, Trust
from commonplace.model.values import Value
from commonplace.text.cleaning import estimate_tokens, one_line
from commonplace.text.words import terms

SYSTEM, INPUT = "stage_one_system.md", "stage_one_input.md"
MARK = "\n\n...[truncated]...\n\n"  # the document's own
HEAD_SHARE = 0.6  # of what remains of a text that is too long; the rest is its end
WINDOW_LEAST = 2048  # tokens: no model has fewer
ANSWER_SHARE, ANSWER_LEAST, ANSWER_MOST = 0.2, 1024, 4096  # of the window, in tokens
QUOTE_WORDS = 2  # fewer are in every session, and prove nothing
SHARED = 0.5  # of a fact's words that the user must have written, if the quote is to vouch for it
_MARKS = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
KEYS = frozenset({"rollout_summary", "rollout_slug", "raw_memory"})
LEFT_OUT = "left_out"  # of a checked reply: why records of it are not in it; no answer may have that key
RECORD_KEYS = frozenset({"content", "category", "scope", "quote", "turns", "subject"})


class Transcript(Value):
    """A session, as it is thought about."""

    name: str
    turns: tuple[Turn, ...]

    @property
    def last(self) -> datetime | None:
        """When its last turn was."""
        return max((turn.occurred_at for turn in self.turns if turn.occurred_at), default=None)


class Extraction(Value):
    """What was made of a session, before any gate."""

    summary: str = ""
    slug: str | None = None
    raw: str = ""  #: the raw memory, in Markdown
    proposals: tuple[Proposal, ...] = ()
    refused: tuple[RefusedRequest, ...] = ()  #: what the user asked to have remembered, and is not kept
    left_out: tuple[str, ...] = ()  #: why, for each record of an answer that was not as agreed
    mode: str
    model: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is no output, which is a success."""
        return not (self.summary.strip() or self.raw.strip() or self.proposals or self.refused)


# Rules


def by_rules(transcript: Transcript, *, most: int) -> Extraction:
    """What the rules find: every fact with its quote."""
    findings = rules.read_session(transcript.turns, most=most)
    raw, summary = texts_of(transcript.name, findings.proposals)
    return Extraction(
        mode="rules", proposals=findings.proposals, refused=findings.refused, raw=raw, summary=summary
    )  # fmt: skip


def texts_of(session: str, found: Sequence[Proposal]) -> tuple[str, str]:
    """The raw memory and the summary that some facts of a session come to."""
    lines = [f"- [{one.category}] {one_line(one.content)} ({_evidence(session, one)})" for one in found]
    return "\n".join(lines), "; ".join(one_line(one.content).rstrip(".") for one in found[:3])


def _evidence(session: str, proposal: Proposal) -> str:
    return ", ".join(f"{DocumentKind.SESSION}:{session}#{ref}" for ref in proposal.refs)


# A model


def by_model(transcript: Transcript, model: Model, learning: Learning, prompt: Callable[[str], str]) -> Extraction:
    """What a model makes of it; an answer that breaks the contract is asked for once more, with the reason.

    Raises ``ProviderError`` and ``BadReply``.
    """
    window = max(model.window or learning.fallback_token_limit, WINDOW_LEAST)
    most = int(min(max(window * ANSWER_SHARE, ANSWER_LEAST), ANSWER_MOST))
    system, asked = prompt(SYSTEM), session_prompt(transcript, learning, prompt, window=window)
    answers: list[ModelAnswer] = []
    for retry in (False, True):
        answers.append(model.ask(system, asked, max_tokens=most, effort="low"))
        try:
            reply = parse_reply(answers[-1].text)
            break
        except BadReply as error:
            if retry:
                raise
            asked = f"{asked}\n\nYour last answer could not be used: {error}. Answer with the JSON object alone."
    return to_extraction(reply, transcript, mode="model").replace(
        model=answers[-1].model, tokens_in=sum(answer.tokens_in for answer in answers),
        tokens_out=sum(answer.tokens_out for answer in answers),
    )  # fmt: skip


def session_prompt(
    transcript: Transcript, learning: Learning, prompt: Callable[[str], str], *, window: int | None = None
) -> str:
    """What a model is asked about a session: the template with as much of the session as fits."""
    room = int(max(window or learning.fallback_token_limit, WINDOW_LEAST) * learning.rollout_payload_percent)
    shown = truncate_middle(transcript_text(transcript), min(room, learning.phase1_input_token_limit))
    return fill_template(prompt(INPUT), {"session_id": transcript.name, "transcript": shown})


def transcript_text(transcript: Transcript) -> str:
    """The turns as JSON, one a line: no text can end its line, so none can pose as another turn."""
    return "\n".join(
        json.dumps(
            {"turn": turn.ref, "role": turn.speaker, "text": turn.text}
            | ({"time": turn.occurred_at.isoformat()} if turn.occurred_at else {}),
            ensure_ascii=False,
        )
        for turn in transcript.turns
    )


def truncate_middle(text: str, tokens: int) -> str:
    """The first 60 and the last 40 percent of what fits, around the mark."""
    size = estimate_tokens(text)
    if size <= tokens:
        return text
    size_left = max(int(len(text) * tokens / size) - len(MARK), 0)
    while size_left:
        head, tail = text[: int(size_left * HEAD_SHARE)], text[len(text) - (size_left - int(size_left * HEAD_SHARE)) :]
        shown = f"{head}{MARK}{tail}"
        if estimate_tokens(shown) <= tokens:
            return shown
        size_left = size_left * 9 // 10  # its ends are denser than its middle: one more round
    return MARK


# The contract


def parse_reply(text: str) -> Mapping[str, Any]:
    """The object that an answer is, or holds.  Raises ``BadReply`` with what is wrong."""
    return check_reply(load_reply(text))


def check_reply(reply: Any) -> Mapping[str, Any]:
    """Refuse a reply with other keys or values than agreed: exactly three keys, and perhaps ``records``.

    A record that is not as agreed is left out with its reason, and costs the others nothing; if none is, the reply is
    refused.
    """
    if not isinstance(reply, dict):
        raise BadReply(f"the answer is not an object but {type(reply).__name__}")
    if missing := KEYS - reply.keys():
        raise BadReply(f"the answer lacks {', '.join(sorted(missing))}")
    if extra := reply.keys() - KEYS - {"records"}:
        raise BadReply(f"the answer has unknown keys: {', '.join(sorted(map(repr, extra)))}")
    for key in ("rollout_summary", "raw_memory"):
        if not isinstance(reply[key], str):
            raise BadReply(f"{key} is not text")
    if not isinstance(reply["rollout_slug"], str | None):
        raise BadReply("rollout_slug is neither text nor null")
    records = reply.get("records", [])
    if not isinstance(records, list):
        raise BadReply("records is not a list")
    reasons = {number: _unfit(record) for number, record in enumerate(records, start=1)}
    unfit = [f"record {number} {reason}" for number, reason in reasons.items() if reason]
    if records and len(unfit) == len(records):
        raise BadReply(unfit[0])
    fit = [record for number, record in enumerate(records, start=1) if not reasons[number]]
    return {**reply, "records": fit, LEFT_OUT: unfit}


def _unfit(record: Any) -> str | None:
    """What is wrong with a record of an answer; the first thing."""
    if not isinstance(record, dict):
        return "is not an object"
    extra, turns = record.keys() - RECORD_KEYS, record.get("turns", [])
    texts = [record.get("quote"), record.get("subject")]
    wrong = {
        f"has unknown keys: {', '.join(sorted(map(repr, extra)))}": bool(extra),
        "has no content": not isinstance(record.get("content"), str),
        f"has the category {record.get('category')!r}; there are {', '.join(CATEGORIES)}": record.get("category")
        not in tuple(CATEGORIES),
        f"has the scope {record.get('scope')!r}; there are project and assistant": record.get("scope", "project")
        not in ("project", "assistant"),
        "has a quote or a subject that is not text": not all(isinstance(text, str | None) for text in texts),
        "has turns that are no list of turns": not isinstance(turns, list)
        or not all(isinstance(turn, str | int) for turn in turns),
    }
    return next((reason for reason, is_so in wrong.items() if is_so), None)


def to_extraction(reply: Mapping[str, Any], transcript: Transcript, *, mode: str) -> Extraction:
    """What a checked answer proposes, each fact with the evidence that the session itself gives."""
    proposals = [_proposal(record, transcript) for record in reply.get("records", [])]
    asked, refused = rules.read_requests(transcript.turns)
    return Extraction(
        mode=mode, summary=reply["rollout_summary"], slug=reply["rollout_slug"], raw=reply["raw_memory"],
        proposals=(*proposals, *(one for one in asked if not _is_among(one, proposals))), refused=tuple(refused),
        left_out=tuple(reply.get(LEFT_OUT, ())),
    )  # fmt: skip


def _is_among(asked: Proposal, proposals: Sequence[Proposal]) -> bool:
    """Whether a model has proposed what the user asked to have remembered: from the same turn, in half its words."""
    return any(
        set(asked.refs) & set(one.refs) and _covers(f"{one.content} {one.quote}", asked.content) for one in proposals
    )


def _proposal(record: Mapping[str, Any], transcript: Transcript) -> Proposal:
    quote = record.get("quote") or ""
    named = {str(turn) for turn in record.get("turns", [])}
    cited = [turn for turn in transcript.turns if turn.ref in named]
    source = find_quoted_turn(quote, cited) or find_quoted_turn(quote, transcript.turns)
    evidence = list(dict.fromkeys([*([source] if source else []), *cited]))
    outside = any(brings_in_text(turn) for turn in transcript.turns)
    vouched = source is not None and _is_own(quote, source) and _covers(quote, record["content"])
    return Proposal(
        content=record["content"], category=record["category"], scope=record.get("scope", "project"),
        quote=quote if source else "", refs=tuple(turn.ref for turn in evidence), subject=record.get("subject"),
        occurred_at=max((t.occurred_at for t in evidence if t.occurred_at), default=transcript.last),
        trust=CEILING[Channel.EXTRACTION] if vouched or not outside else Trust.EXTERNAL, by_user=vouched,
        founded=source is not None or bool(cited and not quote.strip()),
    )  # fmt: skip


def find_quoted_turn(quote: str, turns: Sequence[Turn]) -> Turn | None:
    """The turn with these words; one in which the user wrote them before others."""
    if len(quote.split()) < QUOTE_WORDS:
        return None
    speaking = [turn for turn in turns if _has_words(turn.text, quote)]
    return next((turn for turn in speaking if _is_own(quote, turn)), next(iter(speaking), None))


def _is_own(quote: str, turn: Turn) -> bool:
    """Whether the user wrote these words, and did not paste or quote them."""
    return turn.speaker == "user" and _has_words(own_words(turn.text), quote)


def _has_words(text: str, quote: str) -> bool:
    return _plain_words(quote) in _plain_words(text)


def _plain_words(text: str) -> str:
    """A text without what models change when they copy: blanks, capitals, the form of quotation marks."""
    return " ".join(text.translate(_MARKS).casefold().split())


def _covers(quote: str, content: str) -> bool:
    """Whether the fact has the words of the quote: else any sentence of the user would vouch for anything."""
    own, quoted = set(terms(content)), set(terms(quote))
    return bool(own) and len(own & quoted) >= SHARED * len(own)
