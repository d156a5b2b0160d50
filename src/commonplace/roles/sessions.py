"""Stored conversations, to resume them: one document for each session, in its role's scope.

Messages are here as JSON has them: nothing of the framework that made them is loaded, so listing is quick.  Secrets are
redacted before anything is stored, and the role's prompt is left out: a resumed session gets the role's current one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeAlias

from commonplace.engine.admission import check_name
from commonplace.engine.memory import now_utc
from commonplace.model.changes import DeleteDocuments, PutDocument
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import StoreError
from commonplace.model.ports import Clock, Store
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import CEILING, Channel, Json, Source
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.redact.redaction import redact
from commonplace.text.cleaning import one_line

Message: TypeAlias = dict[str, Any]  #: as the framework writes it to JSON

ID_CHARS = 12
PREVIEW_CHARS = 80
UNTITLED = "Untitled"
MOST = 100_000  # sessions of one scope: all of them
ASKED_MESSAGES, ASKED_CHARS = 5, 500  # of the user's last messages, to recall by
SPOKEN = ("content", "args")  # fields with words; the other fields of a message hold names


class SavedSession(Value):
    """One session, as it was saved last."""

    id: str  #: twelve hexadecimal digits
    agent: str
    updated_at: datetime
    messages: int  #: how many there are
    preview: str  #: how the user began
    content: str  #: the messages, as JSON

    def read(self) -> list[Message]:
        """Return the messages.  Raises ``StoreError`` if they are no list of messages."""
        try:
            read = json.loads(self.content)
        except ValueError as error:
            raise StoreError(f"the session {self.id!r} cannot be read: {error}") from error
        if not isinstance(read, list) or not all(map(_is_message, read)):
            raise StoreError(f"the session {self.id!r} cannot be read: it is no list of messages")
        return read


def new_session() -> str:
    """A name for a session that starts."""
    return uuid.uuid4().hex[:ID_CHARS]


class Sessions:
    """The sessions of one agent; agents may share a scope and do not see each other's."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        agent: str,
        *,
        clock: Clock = now_utc,
        secret: Callable[[], bytes] = bytes,
        channel: Channel = Channel.CAPTURE,
    ) -> None:
        """``secret`` gives the key of redaction marks, ``channel`` says how conversations come in."""
        self.agent = agent
        self._store = store
        self._scope = scope
        self._clock = clock
        self._secret = secret
        self._channel = channel

    def save(self, id: str, messages: Sequence[Message]) -> None:
        """Save a session; replaces what was saved of it before.  Raises ``InvalidInput`` for a secret as its id."""
        check_name(id, "a session")
        kept = [self._redact(message) for message in without_prompts(messages)]
        content = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
        now = self._clock()
        described: dict[str, Json] = {"agent": self.agent, "messages": len(kept), "preview": preview(kept)}
        document = Document(
            scope=self._scope, kind=DocumentKind.SESSION, name=id, content=content, metadata=described,
            digest=sha256(f"{now.isoformat()}\n{content}".encode()).hexdigest(),  # saved again it is the newest again
            source=Source(channel=self._channel, ref=id), trust=CEILING[self._channel],
            created_at=now, updated_at=now,
        )  # fmt: skip
        self._store.apply([PutDocument(document=document)])

    def all(self) -> list[SavedSession]:
        """Every session of this agent, newest first."""
        return [_from_document(found) for found in self._documents() if found.metadata.get("agent") == self.agent]

    def newest(self) -> SavedSession | None:
        """The session that was saved last."""
        return next(iter(self.all()), None)

    def prune(self, keep: int) -> int:
        """Erase all but the newest sessions; returns how many."""
        return self._erase(self.all()[keep:])

    def clear(self) -> int:
        """Erase every session of this agent; returns how many."""
        return self._erase(self.all())

    def _erase(self, sessions: Sequence[SavedSession]) -> int:
        if not sessions:
            return 0
        names = frozenset(session.id for session in sessions)
        [outcome] = self._store.apply([DeleteDocuments(where=self._where(names))])
        return len(outcome.gone)

    def _documents(self) -> list[Document]:
        return self._store.documents(self._where(), limit=MOST)

    def _where(self, names: frozenset[str] | None = None) -> DocumentFilter:
        return DocumentFilter(scopes=frozenset({self._scope}), kinds=frozenset({DocumentKind.SESSION}), names=names)

    def _redact(self, value: Any, *, words: bool = False) -> Any:
        """Return a value with the secrets in its words redacted."""
        if isinstance(value, str):
            return redact(value, key=self._secret()).text if words else value
        if isinstance(value, list):
            return [self._redact(one, words=words) for one in value]
        if isinstance(value, dict):
            return {name: self._redact(one, words=words or name in SPOKEN) for name, one in value.items()}
        return value


def _from_document(document: Document) -> SavedSession:
    count, first = document.metadata.get("messages"), document.metadata.get("preview")
    return SavedSession(
        id=document.name, agent=str(document.metadata.get("agent", "")), updated_at=document.updated_at,
        messages=count if isinstance(count, int) else 0, preview=first if isinstance(first, str) else UNTITLED,
        content=document.content or "[]",
    )  # fmt: skip


# Messages, as JSON has them


def _is_message(value: Any) -> bool:
    parts = value.get("parts") if isinstance(value, dict) else None
    return isinstance(parts, list) and all(isinstance(part, dict) for part in parts)


def without_prompts(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without the role's prompts, and without those that are empty then."""
    kept = []
    for message in messages:
        cleaned = {name: value for name, value in message.items() if value is not None and name != "instructions"}
        cleaned["parts"] = [part for part in message.get("parts", []) if part.get("part_kind") != "system-prompt"]
        if cleaned["parts"]:
            kept.append(cleaned)
    return kept


def history_window(messages: Sequence[Message], most: int) -> list[Message]:
    """Return the last messages, at most ``most``, beginning with a message of the user.

    A history may not begin with an answer, nor with the results of tools whose calls are cut off: providers refuse it.
    If a single exchange is longer than that, its first and its last words are kept.
    """
    last = list(messages[-most:]) if most > 0 else []
    start = next((at for at, message in enumerate(last) if _is_user_turn(message)), None)
    if start is not None:
        return last[start:]
    first = next((message for message in reversed(messages) if _is_user_turn(message)), None)
    if first is None or not last or most == 1 or not _is_final_answer(last[-1]):
        return []
    return [first, last[-1]]


def _is_user_turn(message: Message) -> bool:
    """Whether it is the user's own: one that has results of tools as well needs the calls before it."""
    kinds = {part.get("part_kind") for part in message["parts"]}
    return message.get("kind") == "request" and "user-prompt" in kinds and not kinds & {"tool-return", "retry-prompt"}


def _is_user_prompt(part: Message) -> bool:
    return part.get("part_kind") == "user-prompt"


def _is_final_answer(message: Message) -> bool:
    """Whether it is an answer that waits for no tool."""
    calls = any("call" in str(part.get("part_kind")) for part in message["parts"])
    return message.get("kind") == "response" and not calls


def user_texts(messages: Sequence[Message]) -> list[str]:
    """Return the user's messages, oldest first."""
    parts = [part for message in messages if message.get("kind") == "request" for part in message["parts"]]
    return [_words(part.get("content")) for part in parts if _is_user_prompt(part)]


def _words(content: Any) -> str:
    """Return the text of a prompt, which may be in pieces between pictures."""
    if isinstance(content, str):
        return content
    pieces = content if isinstance(content, list) else []
    return " ".join(piece for piece in pieces if isinstance(piece, str))


def recent_words(messages: Sequence[Message]) -> str:
    """Return the last messages of the user, to recall by."""
    return "\n".join(user_texts(messages)[-ASKED_MESSAGES:])[-ASKED_CHARS:]


def preview(messages: Sequence[Message]) -> str:
    """Return the user's first message in one line."""
    first = next((text for text in map(one_line, user_texts(messages)) if text), UNTITLED)
    return first[:PREVIEW_CHARS]
