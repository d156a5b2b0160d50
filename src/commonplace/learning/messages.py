"""Learn from the messages of a chat: what ``Memory.learn`` does.

The same rules or model, and the same gate, as for the sessions of a coding agent; there is no job and no document,
because the program has the messages already.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from commonplace.engine.arguments import to_moment
from commonplace.engine.memory import Memory
from commonplace.engine.results import LearnResult
from commonplace.engine.transcripts import Message, Turn
from commonplace.learning.extract_gate import Decision, decide
from commonplace.learning.extractors import Transcript, by_model, by_rules
from commonplace.learning.model_prompts import prompt_files
from commonplace.learning.workspace import Workspace
from commonplace.model.changes import Change
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Model
from commonplace.model.records import Kind
from commonplace.text.suggest import suggestion

ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "tool": "tool"}
SILENT = frozenset({"system", "developer"})  # what a program says, and nobody in the conversation
DIGITS = 16  # of the digest that names a conversation


def learn_from_messages(memory: Memory, messages: str | Iterable[Message], *, model: str | Model | None) -> LearnResult:
    """Store what a conversation states for good; see ``Memory.learn``."""
    turns = _to_turns(messages)
    place = _workspace(memory)
    transcript = Transcript(name=f"chat-{_digest(turns)}", turns=turns)
    if model is None:
        thought = by_rules(transcript, most=place.learning.max_records_per_session)
    else:
        thought = by_model(transcript, _to_model(model), place.learning, place.prompt)

    def plan() -> tuple[Sequence[Change], Decision]:
        decision = decide(place, transcript.name, thought.proposals)
        return decision.changes, decision

    written, passed = memory.writer.retry(plan, busy="this memory is changed by others all the time")
    stored = [memory.store.get(record.id) for record in passed.records]
    return LearnResult(
        records=tuple(record for record in stored if record), known=passed.again, replaced=passed.replaced,
        left_out=(*passed.left_out, *(one.reason for one in thought.refused)), redactions=passed.redactions,
        notes=written.notes,
    )  # fmt: skip


def _workspace(memory: Memory) -> Workspace:
    binding = memory.binding
    scope = binding.writes[Kind.SEMANTIC] if Kind.SEMANTIC in binding.writes else binding.reads[0]
    own = [one for one in binding.reads if one.kind == "user" and binding.may_write(one)]
    return Workspace(
        store=memory.store, scope=scope, personal=own[0] if own else None,
        bind=lambda channel: binding.replace(channel=channel), clock=memory.clock, secret=memory.secret,
        embedder=memory.embedder, model=_to_model, prompt=prompt_files(None),
    )  # fmt: skip


def _to_model(model: str | Model) -> Model:
    if not isinstance(model, str):
        return model
    from commonplace.providers.models import model_of  # noqa: PLC0415 - only what is used is loaded

    return model_of(model, env=os.environ)


def _to_turns(messages: str | Iterable[Message]) -> tuple[Turn, ...]:
    """Return messages as turns of a session; what a program told the model is none."""
    if isinstance(messages, str):
        return (Turn(ref="1", text=messages, speaker="user"),)
    if isinstance(messages, Mapping | bytes) or not isinstance(messages, Iterable):
        raise InvalidInput("messages takes a text or a list of {'role': ..., 'content': ...}")
    turns = [_to_turn(message, str(number)) for number, message in enumerate(messages, start=1)]
    return tuple(turn for turn in turns if turn is not None)


def _to_turn(message: Any, ref: str) -> Turn | None:
    if isinstance(message, Turn):
        return message
    if isinstance(message, tuple) and len(message) == len(("role", "content")):
        message = {"role": message[0], "content": message[1]}
    if not isinstance(message, Mapping) or "role" not in message or "content" not in message:
        raise InvalidInput(f"message {ref} needs a role and a content, such as {{'role': 'user', 'content': 'Hello'}}")
    role = str(message["role"]).lower()
    if role in SILENT:
        return None
    if role not in ROLES:
        known = (*ROLES, *sorted(SILENT))
        raise InvalidInput(
            f"message {ref}: {role!r} is no role; use one of {', '.join(known)}{suggestion(role, known)}"
        )
    at = to_moment(message.get("at"), f"message {ref}: at")
    return Turn(ref=ref, text=_content(message["content"], ref), speaker=ROLES[role], occurred_at=at)


def _content(content: Any, ref: str) -> str:
    """Return the text of a message, which may come in parts: those that are no text are passed over."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Sequence) and all(isinstance(part, Mapping) for part in content):
        return "\n".join(str(part["text"]) for part in content if isinstance(part.get("text"), str))
    raise InvalidInput(f"message {ref}: content must be text, or a list of parts, not {type(content).__name__}")


def _digest(turns: Sequence[Turn]) -> str:
    said = "\x1f".join(f"{turn.speaker}\x1e{turn.text}" for turn in turns)
    return sha256(said.encode(errors="surrogatepass")).hexdigest()[:DIGITS]
