"""What only the operator of this machine may decide, and where that may be written.

Addresses, key variables, places of stores and code to run come from the user's own settings, the command line and the
environment.  A file that names them, a role, a flow, a pipeline or a workflow, counts as the user's word only if it
lies in the data folder or in a folder that the user trusts: anything else came from somebody else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from commonplace.config import settings
from commonplace.config.paths import CONFIG, home
from commonplace.config.trust import trust_of_path
from commonplace.model.errors import ConfigError

#: Which variables' keys may go to which hosts, besides those of their own providers: (variable, host).
KeyHosts: TypeAlias = frozenset[tuple[str, str]]

SETTING = "key_hosts"


def require_operator(file: str, uses: Iterable[tuple[str, str]], env: Mapping[str, str]) -> None:
    """Refuse a file of somebody else that decides what only the operator may; each use has its path and what it does.

    What is no file on disk was made by a program, which speaks for its user.
    """
    found = list(uses)
    if not found or is_operators(file, env):
        return
    path, what = found[0]
    folder = trust_of_path(file, env).root
    reason = f"{what}, and {folder} is not trusted: read the file, then run `commonplace trust {folder}`"
    raise ConfigError(reason, file=file, path=path)


def is_operators(file: str, env: Mapping[str, str]) -> bool:
    """Tell whether what a file says is the user's word."""
    if not os.path.exists(file):
        return True
    return is_inside(file, home(env)) or trust_of_path(file, env).is_trusted


def is_inside(path: str, folder: str) -> bool:
    """Tell whether a path lies in a folder, links followed."""
    real, around = os.path.realpath(path), os.path.realpath(folder)
    return real == around or real.startswith(around.rstrip(os.sep) + os.sep)


def key_hosts_for(file: str, env: Mapping[str, str]) -> KeyHosts | None:
    """Return which keys a file may send to other hosts than their providers' own; None: any, as it is the user's own.

    A trusted folder is not enough: its files change with every pull.
    """
    own = not os.path.exists(file) or is_inside(file, home(env))
    return None if own else load_key_hosts(env)


def load_key_hosts(env: Mapping[str, str]) -> KeyHosts:
    """Return the pairs of the user's own settings."""
    file = os.path.join(home(env), CONFIG)
    return key_hosts_of(settings.load(file, settings.USER), file=file)


def key_hosts_of(user_settings: Mapping[str, Any], *, file: str) -> KeyHosts:
    """Return the pairs of ``key_hosts``: ``OPENAI_API_KEY@llm.example.org, OTHER_KEY@127.0.0.1:8080``."""
    pairs = set()
    for pair in (user_settings[SETTING] or "").replace(",", " ").split():
        variable, at, host = pair.partition("@")
        if not (variable and at and host) or "/" in host:
            raise ConfigError(f"should be VARIABLE@HOST, not {pair!r}", file=file, path=SETTING)
        pairs.add((variable, host.lower()))
    return frozenset(pairs)
