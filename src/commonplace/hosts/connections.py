"""Which coding agents are on this machine, and which of them are connected."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping

from commonplace.config.paths import home
from commonplace.hosts.registry import HOSTS, Host, SettingsPlace, get_host, user_home
from commonplace.hosts.settings import SettingsEditor
from commonplace.model.errors import ConfigError
from commonplace.records import AgentConnection

SCRIPT = "commonplace"
USER, PROJECT = "user", "project"


def list_connections(env: Mapping[str, str], *, project: str | None) -> Iterator[AgentConnection]:
    """Yield every agent that is known, connected for the user or in a project."""
    places = {USER: SettingsPlace(env=env, home=user_home(env), project=None)}
    if project is not None:
        places[PROJECT] = places[USER].replace(project=project)
    for name in HOSTS:
        yield _connection(name, get_host(name), places, env)


def _connection(name: str, host: Host, places: Mapping[str, SettingsPlace], env: Mapping[str, str]) -> AgentConnection:
    editor, script, connected = SettingsEditor(home(env)), our_command(), []
    trouble = None
    for level, place in places.items():
        try:
            connected += [level] if editor.is_connected(host.parts(script, place)) else []
        except ConfigError as error:  # settings that cannot be read: the other agents are listed all the same
            trouble = str(error)
    found = os.path.isdir(host.root(env)) or shutil.which(host.PROGRAM, path=env.get("PATH")) is not None
    return AgentConnection(name=name, title=host.TITLE, found=found, connected=tuple(connected), trouble=trouble)


def our_command() -> str:
    """Return the path of our own command, wherever it is installed: agents do not start with a person's path."""
    own = os.path.join(os.path.dirname(sys.executable), SCRIPT)
    found = own if os.access(own, os.X_OK) else shutil.which(SCRIPT)
    if not found:
        raise ConfigError("the command `commonplace` was not found; install it so that agents can run it", file=own)
    return os.path.abspath(found)
