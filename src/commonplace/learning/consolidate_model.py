"""Consolidation by a model or a host's agent: work in parts, so that all of it is seen, and answers put together.

A part shows so much that its answer fits into what a model may say.  What is remembered now is shown as well, and only
the facts that were shown can be lost by an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from commonplace.config.learning import Learning
from commonplace.engine.rendering import fence
from commonplace.learning.consolidate_checks import Dropped, Reply, parse_proposal, with_title
from commonplace.learning.consolidate_receipts import record_ids
from commonplace.learning.consolidate_rules import TITLE, Line, heading, line_text
from commonplace.learning.hand_edits import Edits, merge_edits
from commonplace.learning.model_prompts import fill_template
from commonplace.model.documents import Document
from commonplace.model.errors import CommonplaceError, InvalidInput, ProviderError
from commonplace.model.ports import Model, ModelAnswer, ProgressCallback
from commonplace.model.values import Value
from commonplace.text.blocks import Block, OwnedBlock, blocks, escape_tags, join_blocks
from commonplace.text.cleaning import chunks, estimate_tokens, plain_line

PROMPT = "consolidation.md"
OUTPUT_TOKENS = 8192  # of one answer
INPUT_TOKENS = 20_000  # of one part
LEAST_WINDOW = 2048
REPEATED = 0.6  # of an answer: the share for MEMORY.md, which has to hold what was shown of it
SESSIONS, SUMMARIES = "sessions", "summaries"
RETRY = "Your last answer could not be used: {}. Answer with the JSON object alone, whole, and no longer than needed."
_BREAK = re.compile(r"^---\s*$", re.MULTILINE)
_END = "\0"


class Part(Value):
    """What one question shows."""

    memory: tuple[Block, ...] = ()  #: facts that the answer has to repeat
    sessions: tuple[tuple[str, str], ...] = ()  #: raw memories by session
    summaries: tuple[tuple[str, str], ...] = ()
    repeated: int = 0  #: tokens of the first
    tokens: int = 0  #: of all


class Question(Value):
    """One question, ready to be put."""

    system: str
    prompt: str
    most: int  #: tokens of the answer


class ModelProposal(Value):
    """What came of asking."""

    reply: Reply
    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    failed: tuple[str, ...] = ()  #: why, for each part that came to nothing


def split_into_parts(
    facts: Sequence[Block], new: Sequence[Line], extractions: Sequence[Document], *, room: int, answer: int
) -> list[Part]:
    """Cut all there is into parts, related facts side by side; nothing is left out, however much there is."""
    done: list[Part] = []
    part = Part()
    repeat = max(64, int(answer * REPEATED))
    for what in _items(facts, new, extractions, most=max(64, room)):
        cost = estimate_tokens(what.text if isinstance(what, Block) else what[2])
        repeats = cost if isinstance(what, Block) or what[0] == SESSIONS else 0
        if part.tokens and (part.tokens + cost > room or part.repeated + repeats > repeat):
            done.append(part)
            part = Part()
        part = _with(part, what).replace(tokens=part.tokens + cost, repeated=part.repeated + repeats)
    return [*done, part] if part.tokens or not done else done


def _with(part: Part, what: Block | tuple[str, str, str]) -> Part:
    if isinstance(what, Block):
        return part.replace(memory=(*part.memory, what))
    field, session, text = what
    return part.replace(**{field: (*getattr(part, field), (session, text))})


def _items(
    facts: Sequence[Block], new: Sequence[Line], extractions: Sequence[Document], *, most: int
) -> Iterator[Block | tuple[str, str, str]]:
    fresh = [Block(path=(TITLE, f"## {heading(line.records[0].category)}"), text=line_text(line)) for line in new]
    order = list(dict.fromkeys(block.path for block in (*facts, *fresh)))
    yield from sorted((*facts, *fresh), key=lambda block: order.index(block.path))
    for one in extractions:
        summary_text = one.metadata.get("summary")
        raw = "" if record_ids(one) else one.content or ""  # its records are shown already
        for field, text in ((SESSIONS, raw), (SUMMARIES, str(summary_text or ""))):
            for piece in chunks(text.strip(), most=most * 2):  # two characters a token: also where letters are dense
                yield field, one.name, piece


def build_question(
    part: Part, *, number: int, of: int, template: str, summary: str, skills: Sequence[str], learning: Learning,
    most: int, secret: bytes,
) -> Question:  # fmt: skip
    """Put a part into the words of the prompt file: above its line of dashes for the system, below it the question."""
    values = {
        "part": str(number),
        "parts": str(of),
        "summary_tokens": str(learning.summary_injection_token_limit),
        "memory_md": _data(_show_facts(part.memory), secret),
        "memory_summary": _data(summary, secret),
        "skills": ", ".join(skills) or "none",
        "raw_memories": _data(_by_session(part.sessions), secret),
        "rollout_summaries": _data(_by_session(part.summaries), secret),
    }
    head, *rest = _BREAK.split(template, maxsplit=1)
    system, body = (head, rest[0]) if rest else ("", head)
    return Question(system=fill_template(system, values).strip(), prompt=fill_template(body, values).strip(), most=most)


def _data(text: str, secret: bytes) -> str:
    return fence([text], secret) or "(nothing)"


def _show_facts(facts: Sequence[Block]) -> str:
    owned = tuple(OwnedBlock(path=fact.path, after=_END, text=fact.text) for fact in facts)
    return merge_edits("", Edits(owned=owned))


def _by_session(texts: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(f"## {plain_line(name)}\n\n{escape_tags(text)}" for name, text in texts)


def token_limits(model: Model, template: str, summary: str, learning: Learning) -> tuple[int, int]:
    """How many tokens a part may show, and how many an answer may have."""
    window = max(LEAST_WINDOW, model.window or learning.fallback_token_limit)
    answer = min(OUTPUT_TOKENS, max(512, window // 4))
    around = estimate_tokens(template) + estimate_tokens(summary)
    return max(256, min(INPUT_TOKENS, int(window * learning.rollout_payload_percent) - around)), answer


def ask_model(
    model: Model, questions: Callable[[str], list[Question]], parts: int, *, summary: str, progress: ProgressCallback
) -> ModelProposal:
    """Ask part after part, each with the summary that the one before has left.

    A part that fails twice is left out, and what the others say is used; raises only if there is no answer at all.
    """
    replies: list[Reply] = []
    answers: list[ModelAnswer] = []
    failed: list[CommonplaceError] = []
    for number in range(parts):
        progress(number, parts)
        question = questions(replies[-1].summary if replies else summary)[number]
        try:
            replies.append(_ask_part(model, question, answers))
        except (InvalidInput, ProviderError) as error:
            failed.append(error)
            if isinstance(error, ProviderError):
                break  # the service is down; the other parts would only wait for it
    progress(parts, parts)
    if not replies:
        raise failed[0]
    return ModelProposal(
        reply=merge_replies(replies), model=answers[-1].model, tokens_in=sum(one.tokens_in for one in answers),
        tokens_out=sum(one.tokens_out for one in answers), failed=tuple(str(error) for error in failed),
    )  # fmt: skip


def _ask_part(model: Model, question: Question, answers: list[ModelAnswer]) -> Reply:
    """Ask for one part, and once more with the reason if the answer cannot be used; what it cost is in ``answers``."""
    prompt = question.prompt
    for retry in (False, True):
        answers.append(model.ask(question.system, prompt, max_tokens=question.most, effort="medium"))
        try:
            return parse_proposal(answers[-1].text)
        except InvalidInput as error:
            if retry:
                raise
            prompt = f"{question.prompt}\n\n{RETRY.format(error)}"
    raise AssertionError  # the second try returns or raises


def merge_replies(replies: Sequence[Reply]) -> Reply:
    """One proposal of several: sections of one name become one, the last summary holds."""
    first, *others = replies
    if not others:
        return first
    memory = with_title(first.memory)
    seen = {block.text for block in blocks(memory)}
    added: list[OwnedBlock] = []
    for reply in others:
        for block in blocks(with_title(reply.memory)):
            if not block.level and block.text not in seen:
                seen.add(block.text)
                added.append(OwnedBlock(path=block.path[:2], after=_END, text=block.text))
    skills = {path: text for reply in replies for path, text in reply.skills.items()}
    dropped: list[Dropped] = [one for reply in replies for one in reply.dropped]
    return Reply(
        memory=_add_blocks(memory, added), summary=replies[-1].summary, skills=skills, dropped=tuple(dropped),
        superseded=tuple(pair for reply in replies for pair in reply.superseded),
    )  # fmt: skip


def _add_blocks(text: str, added: Sequence[OwnedBlock]) -> str:
    """Not woven as a person's blocks are: what names the same record twice is kept twice."""
    merged: dict[tuple[str, ...], list[Block]] = {}
    for block in blocks(text):
        if not block.level:
            merged.setdefault(block.path, []).append(block)
    for one in added:
        merged.setdefault(one.path, []).append(Block(path=one.path, text=one.text))
    shown: list[Block] = []
    written: set[tuple[str, ...]] = set()
    for path, inside in merged.items():
        for depth, line in enumerate(path):
            if path[: depth + 1] not in written:
                written.add(path[: depth + 1])
                shown.append(Block(path=path[:depth], text=line))
        shown += inside
    return join_blocks(shown)
