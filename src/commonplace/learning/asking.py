"""Ask the agent that is running to save what a session has settled: it has a model already, so no key is needed.

A session is asked about at most once, and once more after each compaction, and only if the user has said something new
that sounds durable.  What the agent then saves has to be quoted from the session, which is checked (``find_quote``).
"""

# ruff: noqa: E501 - one pattern a line: broken up they could not be read against each other

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from commonplace.app import App
from commonplace.engine.memory import Memory
from commonplace.engine.rendering import MESSAGE, keyed_digest
from commonplace.engine.tombstones import normal_form
from commonplace.engine.transcripts import TOOL, Turn
from commonplace.files import disk
from commonplace.learning import rules
from commonplace.learning.earnest import is_unsafe, jokes
from commonplace.learning.extract import load_transcript
from commonplace.learning.extractors import find_quoted_turn
from commonplace.learning.opening import open_workspace
from commonplace.learning.rules_text import own_words
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import DocumentFilter, Filter, Order
from commonplace.model.records import INSTRUCTIVE, Channel
from commonplace.model.values import Value

FOLDER = "asked"  # in the data folder: which sessions were asked about, and up to which turn
RULES_MOST = 20
SAVED_MOST = 100  # records that an agent saves after one message
_CUE = re.compile(
    r"""\b(?:always|never|from\ now\ on|going\ forward|in\ (?:the\ )?future|every\ time|whenever|by\ default|prefer\w*|convention
      |remember|don'?t\ forget|keep\ in\ mind|note\ that|for\ the\ record|decid\w+|agreed|settled|we(?:'ll|\ will)?\ (?:use|go\ with|keep|stick)
      |let'?s\ (?:use|go\ with|keep|stick)|go\ with|instead\ of|rather\ than|no\ longer|not\ any\ ?more|switch(?:ed|ing)?\ to|moved?\ to|migrat\w+
      |must(?:n'?t)?|have\ to|has\ to|should(?:n'?t)?|need\ to|required?|allowed|forbidden|avoid|only\ (?:on|in|for|when|with|use)|rule|polic(?:y|ies)
      |i\ (?:like|want|hate|love)|please\ (?:always|never|use|don'?t|keep)|my\ \w+\ is|we\ (?:use|have|deploy|run|test|release)|our\s\w+
      |root\ cause|turn(?:ed|s)\ out|because|the\ (?:fix|reason|cause|problem|trick)\ (?:is|was)|fixed\ (?:it\ )?by|caused\ by|that\ (?:fixed|works|did\ it)
      |owns?|responsible|lives?\ in|is\ called|steps?\ (?:are|is)|first\b.+\bthen|to\ (?:deploy|release|roll\ back))\b""",
    re.IGNORECASE | re.VERBOSE,
)  # fmt: skip
_WORDS_LEAST = 4  # of a turn with a cue: "yes, always" says nothing alone


def message_to_save(app: App, session: str) -> str | None:
    """What to ask the agent of a session, and note that it was asked; None if there is no reason to."""
    turns = _turns(app, session)
    asked = _asked(app.where.home, session)
    new = turns[asked.turns or 0 :]
    if (asked.turns is not None and not asked.compacted) or not sounds_durable(new):
        return None
    _note_asked(app.where.home, session, Asked(turns=len(turns), at=app.clock()))
    return MESSAGE % session


def note_compaction(home: str, session: str) -> None:
    """Note that the agent forgets what was said so far: it may be asked again about what comes after."""
    asked = _asked(home, session)
    if asked.turns is not None:
        _note_asked(home, session, asked.replace(compacted=True))


def sounds_durable(turns: Sequence[Turn]) -> bool:
    """Whether the user has said something that later sessions may need; the agent judges, so this errs on the yes."""
    if any(_cued(own_words(turn.text)) for turn in turns if turn.speaker == "user"):
        return True
    return bool(rules.read_session(tuple(turns), most=RULES_MOST).proposals)


def _cued(own: str) -> bool:
    statements = [one for one in re.split(r"(?<=[.!?])\s|\n", own) if one.strip() and not one.rstrip().endswith("?")]
    said = " ".join(statements)
    return len(said.split()) >= _WORDS_LEAST and bool(_CUE.search(said)) and not (jokes(own) or is_unsafe(own))


# The quote


def find_quote(app: App, session: str, quote: str, *, category: str | None) -> str:
    """The turn of a session that has these words, as ``session:ID#TURN``.

    Raises ``InvalidInput`` if the session is not indexed, has no such words, or only a tool has said what would become
    an instruction.
    """
    turn = find_quoted_turn(quote, [one for one in _turns(app, session) if one.speaker != TOOL])
    if turn is None and category not in INSTRUCTIVE:
        turn = find_quoted_turn(quote, _turns(app, session))
    if turn is None:
        raise InvalidInput(
            f"the quote is not in session {session}: copy the exact words of one message, at least two of them"
        )
    return f"{DocumentKind.SESSION}:{session}#{turn.ref}"


def _turns(app: App, session: str) -> tuple[Turn, ...]:
    work = open_workspace(app)
    where = DocumentFilter(
        scopes=frozenset({work.scope}), kinds=frozenset({DocumentKind.SESSION}), names=frozenset({session})
    )
    document: Document | None = next(iter(app.store.documents(where, limit=1)), None)
    if document is None:
        raise InvalidInput(f"there is no session {session!r} here; leave out session and quote, or index it first")
    return load_transcript(work, document).turns


# What was saved without a quote


def hold_unquoted(app: App, session: str, lines: Callable[[], Iterable[Mapping[str, Any]]]) -> int:
    """Hold what the agent has saved without a quote since it was asked; returns how many records wait for review.

    ``lines`` is its transcript in our form; it is read once after each message.
    """
    asked = _asked(app.where.home, session)
    if asked.turns is None or asked.at is None:
        return 0
    _note_asked(app.where.home, session, asked.replace(at=None))
    unquoted = {normal_form(content) for content in _saved_without_quote(lines(), asked.at)}
    memory = Memory(app.store, app.where.bind(Channel.AGENT), clock=app.clock, embedder=app.embedder, secret=app.secret)
    where = Filter(
        scopes=frozenset(memory.binding.reads), at=app.clock(), since=asked.at, sources=frozenset({Channel.AGENT.value})
    )
    found = app.store.find(where, order=Order.ID, limit=SAVED_MOST) if unquoted else ()
    bare = [one for one in found if normal_form(one.content) in unquoted and not one.metadata.get("quote")]
    for record in bare:
        memory.hold(record.id)
    return len(bare)


def _saved_without_quote(lines: Iterable[Mapping[str, Any]], since: datetime) -> Iterator[str]:
    """What calls of ``remember`` after a moment wanted to save without saying where it was said."""
    for line in lines:
        time = line.get("time")
        if not isinstance(time, str) or datetime.fromisoformat(time) < since:
            continue
        for part in line.get("content") or ():
            arguments = _arguments(part) if part.get("type") == "tool_call" else {}
            if arguments and str(part.get("name")).endswith("remember") and not arguments.get("quote"):
                yield str(arguments.get("content") or "")


def _arguments(part: Mapping[str, Any]) -> Mapping[str, Any]:
    given = part.get("arguments")
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# What was asked


class Asked(Value):
    """What is noted of the messages to the agent of a session."""

    turns: int | None = None  #: up to how many turns it was asked about; None: never
    compacted: bool = False  #: the session was compacted since
    at: datetime | None = None  #: when it was asked, until what it saved has been looked at


def _asked(home: str, session: str) -> Asked:
    try:
        noted = json.loads(disk.read_text(_path(home, session), limit=1000))
        at = datetime.fromisoformat(noted["at"]) if noted["at"] else None
        return Asked(turns=int(noted["turns"]), compacted=bool(noted["compacted"]), at=at)
    except FileNotFoundError:
        return Asked()
    except (OSError, ValueError, KeyError, TypeError):  # half a file: it was asked, and is not asked again
        return Asked(turns=0)


def _note_asked(home: str, session: str, asked: Asked) -> None:
    path = _path(home, session)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    at = asked.at.isoformat() if asked.at else None
    data = json.dumps({"turns": asked.turns, "compacted": asked.compacted, "at": at})
    disk.replace(os.path.dirname(path), os.path.basename(path), data.encode())


def _path(home: str, session: str) -> str:
    return os.path.join(home, FOLDER, f"{keyed_digest(session, b'')}.json")
