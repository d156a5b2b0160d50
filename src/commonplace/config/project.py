"""The records system's configuration: which project, whose assistant memory, and what may be done with both."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commonplace.config import settings
from commonplace.config.paths import CONFIG, Place, database, find, home
from commonplace.config.trust import FolderTrust, trust_of
from commonplace.model.binding import Binding
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput
from commonplace.model.records import CATEGORIES, Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

if TYPE_CHECKING:  # a recall learns nothing
    from commonplace.config.learning import Learning, Models

TEMPORARY = frozenset({"incidents"})  # the one category that may expire; the others are permanent
PROJECT, ASSISTANT = "project", "assistant"  # the names of the two scopes
_UNMADE = "has no .commonplace/ yet; run `commonplace init` to create it, or use `--scope assistant`"
_UNTRUSTED = "is not trusted, so nothing is written there; read its files, then run `commonplace trust`"


class Context(Value):
    """The data folder, the project, the scopes and the settings that apply where a command runs."""

    home: str  #: the data folder
    place: Place | None  #: the project around the working directory
    project: Scope | None  #: its scope, if it has an identity
    assistant: Scope
    project_settings: Mapping[str, Any]
    user_settings: Mapping[str, Any]
    database: str  #: the file of the store, or its address, in which a password may be
    trust: FolderTrust | None = None  #: what the user has said about the project's folder

    @property
    def folders(self) -> dict[Scope, str]:
        """Where the Markdown of each scope lies: the project's in its repository, the user's own in the data folder.

        A folder that the user does not trust has none: it is read (``foreign``), and never written to.
        """
        own = {self.assistant: os.path.join(self.home, ASSISTANT)} if self.is_enabled(ASSISTANT) else {}
        if self.project and self.place and self.place.folder and self.is_trusted and self.is_enabled(PROJECT):
            return own | {self.project: self.place.folder}
        return own

    @property
    def is_trusted(self) -> bool:
        """Whether the user trusts the project's folder."""
        return self.trust is not None and self.trust.is_trusted

    @property
    def foreign(self) -> dict[Scope, str]:
        """The folder that is read as data from outside, because the user does not trust it."""
        if self.project and self.place and self.place.folder and not self.is_trusted:
            return {self.project: self.place.folder}
        return {}

    @property
    def further(self) -> frozenset[Scope]:
        """The project, if this is not the first of its folders: then files that are missing here archive nothing."""
        shared = self.trust is not None and self.trust.is_trusted and not self.trust.is_first
        return frozenset({self.project}) if shared and self.project else frozenset()

    @property
    def prompts(self) -> str | None:
        """The folder whose ``prompts/`` replace ours: those that the user has agreed to."""
        return self.trust.copy if self.trust else None

    def is_enabled(self, name: str) -> bool:
        """Tell whether that memory is switched on."""
        return bool((self.project_settings if name == PROJECT else self.user_settings)["enabled"])

    @property
    def learning(self) -> Learning:
        """How the project learns from its sessions."""
        from commonplace.config.learning import learning  # noqa: PLC0415 - see above

        return learning(self.project_settings)

    @property
    def models(self) -> Models:
        """The language models that extract and consolidate."""
        from commonplace.config.learning import models  # noqa: PLC0415 - see above

        return models(self.project_settings)

    def scope(self, name: str) -> Scope:
        """The scope of that name, ``project`` or ``assistant``."""
        if name == ASSISTANT:
            return self._require_enabled(self.assistant, name)
        if name != PROJECT:
            raise InvalidInput(f"{name!r} is not a scope; use {PROJECT} or {ASSISTANT}")
        if self.project is None:
            raise InvalidInput("there is no project here; run `commonplace init` to create one")
        return self._require_enabled(self.project, name)

    def label(self, scope: Scope) -> str:
        """Return the name that users know a scope by."""
        return PROJECT if scope == self.project else ASSISTANT if scope == self.assistant else str(scope)

    @property
    def hints(self) -> list[str]:
        """Notes for a user outside any project, or in one that is not trusted as it is."""
        if self.project is None:
            return ["there is no project here, so only your own memory is used; run `commonplace init` to create one"]
        return self.trust_notes

    @property
    def trust_notes(self) -> list[str]:
        """What the user should know about the trust in this folder, in one sentence with the command to run."""
        if self.place and self.place.link:
            return [f"{self.place.link} is a symbolic link and is not followed; remove it, or make it a real folder"]
        if self.trust and (self.foreign or self.trust.former):
            why = "its notes are data from outside and its settings take no effect; read them, then run"
            if self.trust.former:
                known = self.trust.former.identity
                why = f"another repository lies there than the one that you trusted as {known}; look at it, then run"
            return [f"{self.trust.root} is not trusted: {why} `commonplace trust`"]
        if self.trust and self.trust.changed:
            changed = ", ".join(self.trust.changed)
            return [f"{changed} changed since you trusted this folder; `commonplace trust` shows how and applies it"]
        return []

    @property
    def default(self) -> str:
        """The scope that is written to by default: the project if there is one, else the user's own memory."""
        return PROJECT if self.place else ASSISTANT

    def settings_file(self, name: str) -> str:
        """The file in which that memory is switched on and off."""
        if name == ASSISTANT:
            return os.path.join(self.home, CONFIG)
        if self.place is None:
            raise InvalidInput("there is no project here; run `commonplace init` to create one")
        if self.place.folder is None:
            raise ConfigError(_UNMADE, file=self.place.root)
        if not self.is_trusted:
            raise Forbidden(f"{self.place.folder} {_UNTRUSTED}")
        return os.path.join(self.place.folder, CONFIG)

    def writable_scope(self, name: str) -> Scope:
        """The scope of that name.  Raises if nothing can be written to it."""
        scope = self.scope(name)
        if scope in self.folders or self.place is None:
            return scope
        if self.place.folder and not self.is_trusted:
            raise Forbidden(f"{self.place.folder} {_UNTRUSTED}, or use `--scope assistant`")
        raise ConfigError(_UNMADE, file=self.place.root)

    def _require_enabled(self, scope: Scope, name: str) -> Scope:
        if not self.is_enabled(name):
            raise Forbidden(f"the {name} memory is switched off; run `commonplace enable --scope {name}`")
        return scope

    def bind(self, channel: Channel) -> Binding:
        """What a caller that comes in by this channel may do here."""
        project = self.project if self.project and self.is_enabled(PROJECT) else None
        assistant = self.assistant if self.is_enabled(ASSISTANT) else None
        reads = tuple(scope for scope in (project, assistant) if scope)
        if not reads:
            raise Forbidden("both memories are switched off here; run `commonplace enable`")
        written = tuple(scope for scope in reads if scope in self.folders)
        return Binding(
            channel=channel,
            writes=dict.fromkeys(Kind, written[0]) if written else {},
            also_writes=frozenset(written),
            reads=reads,
            transcripts=frozenset({project} if project else ()),
            categories=CATEGORIES,
            temporary=TEMPORARY,
            content_bytes=self.project_settings["content_bytes"],
            personal=self._personal_data(),
        )

    def _personal_data(self) -> dict[Scope, str]:
        """What becomes of personal data in each scope."""
        own = {self.assistant: str(self.user_settings["personal_data"])}
        return own | ({self.project: str(self.project_settings["personal_data"])} if self.project else {})


def context(directory: str, env: Mapping[str, str]) -> Context:
    """Return the context of a directory: find its project, what the user said about it, and load both settings files.

    The project's settings are the ones that the user has agreed to; a folder that is not trusted has none.
    """
    data = home(env)
    place = find(directory)
    own = settings.load(os.path.join(data, CONFIG), settings.USER)
    trust = trust_of(place, data) if place else None
    file = os.path.join(place.folder, CONFIG) if place and place.folder else ""
    agreed = (trust.config if trust else None) or ""
    return Context(
        home=data,
        place=place,
        project=_scope("project", trust.identity, file=file) if trust else None,
        assistant=_scope("user", own["user"] or _login(env), file=os.path.join(data, CONFIG)),
        project_settings=settings.load(agreed, settings.PROJECT, named=file or agreed),
        user_settings=own,
        database=database(env, own["store"]),
        trust=trust,
    )


def _scope(kind: str, name: str, *, file: str) -> Scope:
    """Return a scope with a name from a settings file; errors name that file."""
    try:
        return Scope.of((kind, name))
    except InvalidInput as error:
        raise ConfigError(str(error), file=file, path=kind) from error


def _login(env: Mapping[str, str]) -> str:
    """The login name; ``default`` for a service without one."""
    return env.get("COMMONPLACE_USER") or env.get("USER") or env.get("LOGNAME") or env.get("USERNAME") or "default"
