"""Where things are: the user's data folder, the project around a directory, and the project's identity.

A project is its repository, not its path: clones, worktrees and renames share memory.  Nothing here imports more than
``os``: it runs on every prompt.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from commonplace.git.repository import remote_address, repository_at
from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value

FOLDER = ".commonplace"
CONFIG = "config.yaml"
DATABASE = "commonplace.db"  # in the data folder, unless another store is named
STORE = "COMMONPLACE_STORE"  # names another one: a file, or the address of a PostgreSQL database
ADDRESSES = ("postgresql://", "postgres://")


class Place(Value):
    """A project, as it was found from a directory."""

    root: str  #: the repository's top folder, or the one that holds .commonplace/
    folder: str | None  #: its .commonplace/, if it has one
    git: str | None  #: the data of the repository, shared by its worktrees; None: none, or one that is not its own
    link: str | None = None  #: a .commonplace that is a symbolic link, and is not followed


def home(env: Mapping[str, str], *, platform: str = sys.platform) -> str:
    """The folder of the database and of the user's own records."""
    user = env.get("USERPROFILE" if platform == "win32" else "HOME") or os.path.expanduser("~")
    if given := env.get("COMMONPLACE_HOME"):
        return os.path.abspath(user + given[1:] if given == "~" or given.startswith("~/") else given)
    if platform == "darwin":
        base = os.path.join(user, "Library", "Application Support")
    elif platform == "win32":
        base = env.get("LOCALAPPDATA") or os.path.join(user, "AppData", "Local")
    else:
        configured = env.get("XDG_DATA_HOME", "")  # the specification has relative ones ignored
        base = configured if os.path.isabs(configured) else os.path.join(user, ".local", "share")
    return os.path.join(base, "commonplace")


#: How an address of a database begins that lacks a slash; and the words of libpq's own way to name one.
ALMOST = ("postgres:", "postgresql:")
LIBPQ = ("host=", "dbname=", "password=", "service=")


def is_address(store: str) -> bool:
    """Whether a store is named by its address, not by its path; refuses the address of what is no store."""
    if "://" in store and not store.startswith(ADDRESSES):  # or a folder called `mysql:` would be made
        raise InvalidInput(f"{store.partition('://')[0]}:// is no store; name a file, or a postgresql:// address")
    if store.startswith(ADDRESSES):
        return True
    if store.startswith(ALMOST) or any(word.startswith(LIBPQ) for word in store.split()):  # its password may be in it
        raise InvalidInput("a database is named by its address, which looks like postgresql://host/name")
    return False


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    import ipaddress  # noqa: PLC0415 - only servers need it

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def database(env: Mapping[str, str], configured: str | None) -> str:
    """The store: what the environment names, else what the settings say, else a file in the data folder.

    A relative path of the settings is one in the data folder; one of the environment starts where the command runs.
    """
    if given := env.get(STORE):
        return given if is_address(given) else os.path.abspath(os.path.expanduser(given))
    if configured and is_address(configured):
        return configured
    return os.path.normpath(os.path.join(home(env), os.path.expanduser(configured or DATABASE)))


def require_store(named: str) -> None:
    """Raise an error if a store that somebody named is a file that does not exist."""
    if not is_address(named) and not os.path.exists(os.path.expanduser(named)):
        raise InvalidInput(f"there is no store {named!r}; check --store or {STORE}, or `commonplace add` makes it")


def find(directory: str) -> Place | None:
    """The project around a directory: its repository, else the nearest folder with a .commonplace/."""
    nearest: str | None = None
    link: str | None = None
    current = os.path.realpath(directory)
    while True:
        folder = os.path.join(current, FOLDER)
        if nearest is None and os.path.isdir(folder):
            if os.path.islink(folder):  # a repository can carry one that leads anywhere
                link = link or folder
            else:
                nearest = folder
        repository = repository_at(current)
        if repository is not None:
            own = nearest if nearest and os.path.dirname(nearest).startswith(current) else None
            return Place(root=current, folder=own, git=repository.common if repository.is_own else None, link=link)
        parent = os.path.dirname(current)
        if parent == current:
            outer = nearest or link
            return Place(root=os.path.dirname(outer), folder=nearest, git=None, link=link) if outer else None
        current = parent


def identity(place: Place) -> str | None:
    """What a project is called when no configuration says so: its remote, else its first commit."""
    if place.git is None:
        return None
    return remote_address(place.git) or _first_commit(place.root)


def _first_commit(root: str) -> str | None:
    """The oldest commit, read from the repository's files: Git is not run for a folder that nobody has trusted yet."""
    from commonplace.git.objects import first_commit  # noqa: PLC0415 - only without a remote and a configuration

    repository = repository_at(root)
    found = first_commit(repository) if repository else None
    return f"commit:{found}" if found else None
