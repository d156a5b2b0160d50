"""What a host's hooks do: show a session what is known, index its transcript, and queue it for extraction.

A hook gets the payload of the host and two callbacks: ``answer`` takes the answer so far, which a better one may
follow, ``note`` takes a trouble.  The answer comes before the upkeep, so that a hook that is cut off has answered.  The
caller enforces the time limit; what is interrupted is resumed the next time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.app import App, open_app
from commonplace.engine.memory import Memory
from commonplace.engine.rendering import STANDING, fence, hit_line, remove_fenced
from commonplace.hosts.registry import (
    ANSWER,
    COMPACT,
    END,
    PROMPT,
    START,
    STOP,
    Host,
    get_host,
    guess_host,
    without_hook_context,
)
from commonplace.learning import ITEM_CHARS, limit_external
from commonplace.model.errors import CommonplaceError, InvalidInput
from commonplace.model.queries import Hit
from commonplace.model.values import Value
from commonplace.text.cleaning import estimate_tokens
from commonplace.text.question import Profile
from commonplace.text.words import says_something

if TYPE_CHECKING:
    from commonplace.learning import Injection

#: Seconds within which a hook always ends; hosts wait longer (wires.LIMITS), but for Codex at the end.
SECONDS = {START: 4.0, PROMPT: 2.0, ANSWER: 2.0, COMPACT: 8.0, STOP: 8.0, END: 8.0}
CODEX_END_SECONDS = 2.5  # it gives three
LEARN_SECONDS = 1.5  # of a start, for sessions that wait to be learned from; the rest is left for the next
RESERVED_SECONDS = 1.5  # of a start, for the brief after that
SPARE_SECONDS = 1.0  # what has to be left at an end for learning to begin

CONTEXT_CHARS = 9_500  # hosts cut at 10,000 and show a piece of the rest
CONTEXT_TOKENS = 2_375  # and Codex at about 2,500 tokens
PROMPT_TOKENS = 1_000  # every prompt pays for it, and nearly all of use is in the first few
PROMPT_HITS = 8
#: How far the best note has to bear on a prompt for anything to be shown, and each of the others.
PROMPT_BEARS, NOTE_BEARS = 0.33, 0.2
PROMPT_CHARS = 4_000  # of a prompt; the planner takes the first meaningful words of it
DEEPER = 3  # times as many are asked for as are shown: some are set aside
SHRINK = 0.85
SESSION_CHARS = 64  # of a session's name in the audit log
SCHEME = "memory://"

#: Variables in which hosts name the project, if their payload does not.
FOLDERS = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")


class HookCall(Value):
    """One call of a hook."""

    event: str
    name: str  #: the event as the host calls it
    host_name: str
    host: Host
    payload: Mapping[str, Any]  #: its input
    session: str | None
    folder: str  #: where the session is
    env: Mapping[str, str]
    until: float  #: of ``time.monotonic``

    @property
    def left(self) -> float:
        """Seconds until it has to be over."""
        return self.until - time.monotonic()


def parse_call(
    event: str, host: str | None, data: bytes, env: Mapping[str, str], *, seconds: float | None = None
) -> HookCall:
    """Parse the payload of a host; raises ``InvalidInput``.  ``seconds`` overrides the time limit of the event."""
    payload = _object(data)
    name = host or guess_host(payload)
    limit = seconds or (CODEX_END_SECONDS if (name, event) == ("codex", END) else SECONDS[event])
    found = get_host(name)
    theirs = {ours: called for called, ours in found.EVENTS.items()}
    session = next(
        (payload[key] for key in ("session_id", "conversation_id") if isinstance(payload.get(key), str)), None
    )
    return HookCall(
        event=event, name=theirs.get(event, event), host_name=name, host=found, payload=payload,
        session=session or None, folder=_folder(payload, env), env=env, until=time.monotonic() + limit,
    )  # fmt: skip


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        payload = json.loads(data) if data.strip() else {}
    except (ValueError, RecursionError):
        raise InvalidInput("the input of the hook is not JSON") from None
    if not isinstance(payload, dict):
        raise InvalidInput("the input of the hook is not a JSON object")
    return payload


def _folder(payload: Mapping[str, Any], env: Mapping[str, str]) -> str:
    roots = payload.get("workspace_roots")
    named = [payload.get("cwd"), *(roots if isinstance(roots, list) else []), *(env.get(name) for name in FOLDERS)]
    return next((one for one in named if isinstance(one, str) and os.path.isdir(one)), None) or os.getcwd()


def handle(call: HookCall, *, answer: Callable[[str], None], note: Callable[[str], None]) -> None:
    """Do what an event asks for."""
    if call.payload.get("agent_id"):
        return  # a subagent: the session that started it is the one that remembers
    with open_app(call.folder, env=call.env) as app:
        app.actor = _actor(call, app.actor)
        if call.event == START:
            _start(call, app, answer, note)
        elif call.event == PROMPT:
            _prompt(call, app, answer)
        elif call.event == ANSWER:
            _write_message(call, app, "assistant", call.payload.get("text"))
        else:
            _capture(call, app, answer, note)


def _actor(call: HookCall, channel: str) -> str:
    """Who writes, for the audit log; of the session, whose name a host chooses, only letters, digits and hyphens."""
    session = "".join(
        letter for letter in call.session or "" if letter.isascii() and (letter.isalnum() or letter == "-")
    )
    return f"{channel}, hook of {call.host_name}" + (f", session {session[:SESSION_CHARS]}" if session else "")


def _format_answer(call: HookCall, text: str) -> str:
    return json.dumps(call.host.answer(call.event, call.name, text)) if text else ""


def fits(text: str) -> bool:
    """Whether a host shows it whole; they count as JavaScript does."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 <= CONTEXT_CHARS


# At the start


def _start(call: HookCall, app: App, answer: Callable[[str], None], note: Callable[[str], None]) -> None:
    from commonplace.learning import save_brief_receipt  # noqa: PLC0415 - a prompt saves none

    injection = _brief(call, app)
    if waiting := _waiting(call, app):
        # A writer that holds the store may delay learning.
        answer(_format_answer(call, _with_notices(app, injection.text)))
        _learn(waiting, app, note, until=min(time.monotonic() + LEARN_SECONDS, call.until - RESERVED_SECONDS))
        injection = _brief(call, app)
    answer(_format_answer(call, _with_notices(app, injection.text)))
    for sentence in save_brief_receipt(app, injection, session=call.session)[1]:
        note(sentence)
    _learn_in_background(app, note, active=call.session)


def _with_notices(app: App, text: str) -> str:
    """The text, after lines on what the user should know: an untrusted folder, what was learned, and what was not."""
    from commonplace.learning import learned_notice, refused_notice  # noqa: PLC0415 - a prompt has none

    notices = [one for one in (learned_notice(app), refused_notice(app)) if one]
    return "\n".join([*_trust_notice(app), *notices, text]).rstrip()


def _trust_notice(app: App) -> list[str]:
    """One line for a folder that is not trusted as it is.  No name from the folder is in that line."""
    where = app.where
    if not where.trust_notes:
        return []
    what = "The settings of this folder changed" if where.is_trusted else "This folder is not trusted"
    line = f"{what}; its notes and settings count as far as its user agrees. The user can run `commonplace trust`."
    return [line]


def _brief(call: HookCall, app: App) -> Injection:
    """The brief, as much of it as a host shows."""
    from commonplace.learning import session_brief  # noqa: PLC0415 - a prompt has none

    budget = CONTEXT_TOKENS
    injection = session_brief(app, "", budget=budget, session=call.session)
    while not fits(injection.text):
        budget = int(budget * SHRINK)
        injection = session_brief(app, "", budget=budget, session=call.session)
    return injection


def _learns(app: App, mode: str = "rules") -> bool:
    """Whether this project learns in that way; a hook itself can without a model: to ask one takes too long for it."""
    where = app.where
    made = where.project is not None and where.project in where.folders
    return made and where.learning.enabled and where.learning.mode == mode


def _learn_in_background(
    app: App, note: Callable[[str], None], *, active: str | None = None, ended: Sequence[str] = ()
) -> None:
    """Where a model learns, start a process that asks it about the sessions that wait; it outlives this one."""
    if not _learns(app, "model"):
        return
    from commonplace.learning import start_learning  # noqa: PLC0415 - a prompt starts none

    try:
        start_learning(app, active=active, ended=ended)
    except OSError as error:
        note(f"learning in the background did not start: {error}")


def _waiting(call: HookCall, app: App) -> list[str]:
    """The sessions that wait to be learned from, but this one."""
    if app.where.project is None or not _learns(app):
        return []
    from commonplace.learning import EXTRACT_JOB  # noqa: PLC0415 - see above

    states = [state for state in app.store.jobs([app.where.project], now=app.clock()) if state.job.kind == EXTRACT_JOB]
    waiting = [state.job.key for state in states if state.done is None or state.done < state.job.watermark]
    return [name for name in waiting if name != call.session]


def _learn(names: Sequence[str], app: App, note: Callable[[str], None], *, until: float) -> None:
    """Extract from sessions until the time for that is used up; the others wait."""
    from commonplace.learning import extract_sessions, open_learning_workspace  # noqa: PLC0415 - see above

    work = open_learning_workspace(app)
    for name in names:
        if time.monotonic() > until:
            return
        try:
            failed = extract_sessions(work, only=[name]).failed
        except CommonplaceError as error:  # the session is gone, the store is busy: a brief is given all the same
            note(f"session {name} was not extracted: {error}")
            continue
        for left in failed:
            note(f"session {left.session} was not extracted: {left.reason}")


# At each prompt


def _prompt(call: HookCall, app: App, answer: Callable[[str], None]) -> None:
    prompt = str(call.payload.get("prompt") or "").encode("utf-8", "replace").decode()  # half a character is none
    text = remove_fenced(without_hook_context(prompt))
    if not call.host.KEEPS_LOGS:
        _write_message(call, app, "user", text)
    query = text.strip()[:PROMPT_CHARS]
    if not says_something(query):
        return  # "yes, do it" asks memory nothing
    if _is_remote(app):  # a remote embedder may not answer: the hits by words are ready by then
        by_words = Memory(app.store, app.binding, clock=app.clock, secret=app.secret)
        answer(_format_answer(call, _recall(call, app, by_words, query)[0]))
    block, shown = _recall(call, app, app.memory, query)
    answer(_format_answer(call, block))
    if shown and call.session:
        from commonplace.hosts.hook_files import note_shown  # noqa: PLC0415 - only where something was shown

        tokens = estimate_tokens(block)
        note_shown(app.where.home, call.session, shown, tokens=tokens, query=query, secret=app.secret())


def _is_remote(app: App) -> bool:
    """Whether the embedder is a service: those are called by their provider and their name."""
    return ":" in str(app.where.user_settings["embedder"])


def _recall(call: HookCall, app: App, memory: Memory, query: str) -> tuple[str, list[Hit]]:
    """What a memory knows about a prompt, but this session's own words.

    Not by ``App.recall``: edited files are synced at starts and stops, so a prompt waits for no writer.
    """
    found = memory.recall(query, limit=PROMPT_HITS * DEEPER, profile=Profile.WORKING, count=False)
    others = [hit for hit in found.hits if hit.chunk is None or hit.chunk.document != call.session]
    if max((hit.bears for hit in others), default=0.0) < PROMPT_BEARS:
        return "", []
    hits, _ = limit_external([hit for hit in others if hit.bears >= NOTE_BEARS], limit=PROMPT_HITS)
    return _block(hits, app.secret())


def _block(hits: list[Hit], secret: bytes) -> tuple[str, list[Hit]]:
    """The notes that fit, quoted and sealed, and which they are; nothing if none does."""
    shown: list[Hit] = []
    lines: list[str] = []
    left = PROMPT_TOKENS - estimate_tokens(STANDING)
    for hit in hits:
        line = hit_line(hit, {hit.id: f"{SCHEME}{hit.record.short}"} if hit.record else {}, most=ITEM_CHARS)
        cost = estimate_tokens(f"{line}\n")
        if cost <= left:
            shown.append(hit)
            lines.append(line)
            left -= cost
    block = fence([STANDING, *lines], secret)
    return (block, shown) if lines and fits(block) else ("", [])


def _write_message(call: HookCall, app: App, role: str, text: object) -> None:
    """Save a message of a host that keeps no transcript that could be read."""
    if not call.session or not isinstance(text, str) or not text.strip():
        return
    from commonplace.hosts.hook_files import write_message  # noqa: PLC0415 - most hosts keep their own

    write_message(app.where.home, call.session, role, text, cwd=call.folder, secret=app.secret)


# At compaction, stop and end


def _capture(call: HookCall, app: App, answer: Callable[[str], None], note: Callable[[str], None]) -> None:
    """Index what is new in the transcript and queue it; at an end also learn from it, as far as time allows."""
    from commonplace.hosts.capture import capture, learn  # noqa: PLC0415 - a prompt captures nothing
    from commonplace.hosts.hook_files import save_shown_receipt  # noqa: PLC0415 - see above

    session = capture(app, call.host, call.payload, call.env, note=note)
    if call.session:
        save_shown_receipt(app, call.session)
    if call.event == END and session and _learns(app) and call.left > SPARE_SECONDS:
        learn(app, session, note=note)
    app.folders.refresh()
    if call.event == END and session:
        _learn_in_background(app, note, ended=[session])
    if session and app.where.learning.enabled and app.where.learning.ask_agent:
        _ask_to_save(call, app, session, answer)


def _ask_to_save(call: HookCall, app: App, session: str, answer: Callable[[str], None]) -> None:
    """At the end of a turn, ask the agent to save what was settled; never in answer to its answer."""
    from commonplace.learning import (  # noqa: PLC0415 - only where it is switched on
        hold_unquoted,
        message_to_save,
        note_compaction,
    )

    if call.event != COMPACT and (found := call.host.transcript(call.payload, call.env)):
        hold_unquoted(app, session, lambda: call.host.lines(found))
    if call.event == COMPACT:
        note_compaction(app.where.home, session)
    elif call.event == STOP and call.host.ask("x") and not call.payload.get("stop_hook_active"):
        text = message_to_save(app, session)
        answer(json.dumps(call.host.ask(text)) if text else "")
