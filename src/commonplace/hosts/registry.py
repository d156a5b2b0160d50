"""Which hosts there are, and what each can do.  The module of a host is loaded when it is named.

An event has one name here; hosts have their own names for it.  Nothing here imports more than a prompt can afford.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value

START, PROMPT, ANSWER, COMPACT, STOP, END = "session-start", "prompt", "answer", "compact", "stop", "session-end"
EVENTS = (START, PROMPT, ANSWER, COMPACT, STOP, END)

#: Every host by the name that people type, with the module that knows it.
HOSTS = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "cursor": "cursor",
    "opencode": "opencode",
    "vscode": "vscode",
    "pi": "pi",
}

_THEIRS = {
    "userpromptsubmit": PROMPT,
    "beforeagent": PROMPT,
    "beforesubmitprompt": PROMPT,
    "precompact": COMPACT,
    "precompress": COMPACT,
    "afteragent": STOP,
    "afteragentresponse": ANSWER,
}
_EVENT_NAMES = {event.replace("-", ""): event for event in EVENTS} | _THEIRS


class HostTranscript(Value):
    """One transcript that a host keeps."""

    path: str  #: the file that it is in
    session: str | None = None  #: which of several in one file; None: the file is one session
    cwd: str | None = None  #: where it ran, if that is known before it is read
    stamp: Mapping[str, Any] = {}  #: what changes with it, where the size and time of the file do not


class SettingsPlace(Value):
    """Where a host's settings are looked for."""

    env: Mapping[str, str]
    home: str  #: of the person
    project: str | None = None  #: the folder whose settings are meant; None: the person's own


class SettingsPart(Value):
    """One thing of ours in a file of a host."""

    file: str
    kind: str  #: json, toml or text; a text is ours as a whole
    path: tuple[str, ...] = ()  #: the keys that lead to it
    value: Any = None  #: the value at that path; of a text all of it
    listed: bool = False  #: it is one of a list at that path
    new_file_fields: Mapping[str, Any] = {}  #: what a new file needs in addition


class Host:
    """A coding agent: its hooks, its transcripts, its settings.  What it does not have is empty."""

    NAME: str  #: what people type
    TITLE: str  #: what people call it
    PROGRAM: str  #: what is typed to start it
    FOLDER: str  #: of its settings and data, in the home of the user
    EVENTS: Mapping[str, str] = {}  #: ours by theirs; empty: it has no hooks
    KEEPS_LOGS = False  #: whether its transcripts can be read from disk
    NOTES: Sequence[str] = ()  #: shown when it is connected

    def answer(self, event: str, name: str, text: str) -> Mapping[str, Any]:
        """The answer to an event that it calls ``name``, so that its model is shown the text; empty: none."""
        del event, name, text
        return {}

    def ask(self, text: str) -> Mapping[str, Any]:
        """The answer to the end of a turn that makes its agent go on with this message; empty: it has none."""
        del text
        return {}

    def history(self, env: Mapping[str, str]) -> Iterator[HostTranscript]:
        """Every transcript that it keeps."""
        del env
        return iter(())

    def transcript(self, payload: Mapping[str, Any], env: Mapping[str, str]) -> HostTranscript | None:
        """The transcript that a hook's payload is about: by its path, else by its session."""
        path, session = payload.get("transcript_path"), payload.get("session_id")
        name = session if isinstance(session, str) else None
        if isinstance(path, str) and os.path.isfile(path):
            return HostTranscript(path=path, session=name)
        found = (one for one in self.history(env) if name and self.is_of(one, name))
        return next((one.replace(session=name) for one in found), None)

    def is_of(self, found: HostTranscript, session: str) -> bool:
        """Whether a transcript of the history is that of a session."""
        return found.session == session

    def lines(self, found: HostTranscript) -> Iterator[Mapping[str, Any]]:
        """A transcript in our form (docs/reference/sessions.md), line by line; raises ``OSError``."""
        del found
        return iter(())

    def parts(self, script: str, place: SettingsPlace) -> Sequence[SettingsPart]:
        """What ``connect`` adds to its settings; empty: it cannot be connected."""
        del script, place
        return ()

    def root(self, env: Mapping[str, str]) -> str:
        """The folder of its settings and data, which exists where it is in use."""
        return os.path.join(user_home(env), self.FOLDER)

    def settings_folder(self, place: SettingsPlace) -> str:
        """The folder of the user's settings, or of those in a project."""
        return self.root(place.env) if place.project is None else os.path.join(place.project, self.FOLDER)


def get_host(name: str) -> Host:
    """The host of a name."""
    if name not in HOSTS:
        from commonplace.text.suggest import suggestion  # noqa: PLC0415 - no prompt needs it

        raise InvalidInput(
            f"{name!r} is not a host that is known; there are {', '.join(HOSTS)}{suggestion(name, HOSTS)}"
        )
    host: Host = import_module(f"commonplace.hosts.{HOSTS[name]}").HOST
    return host


def host_name(host: Host) -> str | None:
    """The name of a host, as the command has it."""
    module = type(host).__module__.rpartition(".")[2]
    return next((name for name, held in HOSTS.items() if held == module), None)


def get_event(text: str) -> str:
    """An event by our name or a host's."""
    event = _EVENT_NAMES.get(text.replace("-", "").replace("_", "").lower())
    if event is None:
        raise InvalidInput(f"{text!r} is not an event that is known; there are {', '.join(EVENTS)}")
    return event


def guess_host(payload: Mapping[str, Any]) -> str:
    """The host of a payload, by fields that only it sends."""
    path = str(payload.get("transcript_path") or "")
    if "conversation_id" in payload or "cursor_version" in payload:
        return "cursor"
    if "/rollout-" in path or "/.codex/" in path:
        return "codex"
    return "gemini" if "/.gemini/" in path else "claude-code"


def user_home(env: Mapping[str, str]) -> str:
    """The person's home."""
    return env.get("HOME") or os.path.expanduser("~")


def without_hook_context(prompt: str) -> str:
    """A prompt without what hooks have put into it, as Gemini does."""
    if "<hook_context>" not in prompt:
        return prompt
    import re  # noqa: PLC0415 - nearly no prompt has it

    return re.sub(r"<hook_context>.*?(?:</hook_context>|\Z)", "", prompt, flags=re.DOTALL)
