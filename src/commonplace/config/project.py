"""The records system's configuration: which project, whose assistant memory, and what may be done with both."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commonplace.config import settings
from commonplace.config.paths import CONFIG, Place, database, find, home, identity
from commonplace.model.binding import Binding
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput
from commonplace.model.records import CATEGORIES, Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

if TYPE_CHECKING:  # a recall learns nothing
    from commonplace.config.learning import Learning, Models

TEMPORARY = frozenset({"incidents"})  # the one category that may expire; the other four are permanent
PROJECT, ASSISTANT = "project", "assistant"  # the names of the two scopes
_UNMADE = "has no .commonplace/ yet; run `commonplace init` to create it, or use `--scope assistant`"


class Context(Value):
    """The data folder, the project, the scopes and the settings that apply where a command runs."""

    home: str  #: the data folder
    place: Place | None  #: the project around the working directory
    project: Scope | None  #: its scope, if it has an identity
    assistant: Scope
    project_settings: Mapping[str, Any]
    user_settings: Mapping[str, Any]
    database: str  #: the file of the store, or its address, in which a password may be

    @property
    def folders(self) -> dict[Scope, str]:
        """Where the Markdown of each scope lies: the project's in its repository, the user's own in the data folder."""
        own = {self.assistant: os.path.join(self.home, ASSISTANT)} if self.is_enabled(ASSISTANT) else {}
        if self.project and self.place and self.place.folder and self.is_enabled(PROJECT):
            return own | {self.project: self.place.folder}
        return own

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
        """Notes for a user outside any project."""
        if self.project is not None:
            return []
        return ["there is no project here, so only your own memory is used; run `commonplace init` to create a project"]

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
        return os.path.join(self.place.folder, CONFIG)

    def writable_scope(self, name: str) -> Scope:
        """The scope of that name.  Raises if nothing can be written to it."""
        scope = self.scope(name)
        if scope not in self.folders and self.place:
            raise ConfigError(_UNMADE, file=self.place.root)
        return scope

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
    """Return the context of a directory: find its project and load both settings files."""
    data = home(env)
    place = find(directory)
    own = settings.load(os.path.join(data, CONFIG), settings.USER)
    file = os.path.join(place.folder, CONFIG) if place and place.folder else ""
    project = settings.load(file, settings.PROJECT)
    name = project["project"] or (identity(place) if place else None)
    return Context(
        home=data,
        place=place,
        project=_scope("project", name, file=file or str(place and place.git)) if name else None,
        assistant=_scope("user", own["user"] or _login(env), file=os.path.join(data, CONFIG)),
        project_settings=project,
        user_settings=own,
        database=database(env, own["store"]),
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
