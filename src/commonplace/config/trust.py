"""Which folders the user of this machine trusts, and with which settings.

A repository is a stranger: what lies in it counts only after its user has said yes.  The yes is kept in the data
folder, as the folder's real path, the identity that was agreed to, and a copy of its settings and prompts.  The copy is
what takes effect, so a later change in the folder waits for another yes.

Everything here runs on every prompt: it reads two or three small files and imports nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from commonplace.config.paths import CONFIG, Place, find, home
from commonplace.files import disk
from commonplace.git.repository import remote_addresses, was_cloned
from commonplace.model.errors import ConfigError
from commonplace.model.values import Value

REGISTRY = "trusted"  # the folder of the registry, in the data folder
INDEX = "folders"  # its list: the name of the copy, the identity and the real path of a folder on each line
AUTHORS = "authors"  # in a folder's copy: whose commits count as the user's word, one address on each line
SIGNED = "signed"  # likewise: a mark that they have to be signed
REPOSITORY = "repository"  # likewise: the addresses of its remotes then, and whether it was cloned, one on each line
CLONED = "cloned"
PROMPTS = "prompts"
SETTINGS_BYTES = 262_144
PROMPT_FILES = 16  # there are four; a folder with more is not one of prompts
CLAIMED = "folder:"  # how the identity of a folder that nobody trusts begins; no project may be called so
PATH_BYTES = 400  # of such an identity; a longer path is named by its digest


class TrustedFolder(Value):
    """A folder that the user has said yes to."""

    name: str  #: of its copy in the registry
    identity: str  #: of its project
    root: str  #: its real path


class FolderTrust(Value):
    """What the user of this machine has said about the folder of a project."""

    root: str  #: the real path of the folder that holds .commonplace/, else of the repository
    agreed: TrustedFolder | None = None  #: None: the folder is not trusted
    copy: str | None = None  #: where the settings and prompts lie that were agreed to
    changed: tuple[str, ...] = ()  #: settings and prompts that differ from the copy
    is_first: bool = False  #: it was the first one of its project: only its losses archive records
    former: TrustedFolder | None = None  #: a yes that no longer counts: another repository lies there now

    @property
    def is_trusted(self) -> bool:
        """Whether the user has said yes to the folder."""
        return self.agreed is not None

    @property
    def identity(self) -> str:
        """The identity of its project; of a folder that nobody trusts it is made of the path alone."""
        return self.agreed.identity if self.agreed else path_identity(self.root)

    @property
    def config(self) -> str | None:
        """The file of the settings that take effect."""
        return os.path.join(self.copy, CONFIG) if self.copy else None

    @property
    def authors(self) -> tuple[str, ...]:
        """Whose commits count as the user's word here, besides the user's own, as addresses in lower case."""
        text = _read(os.path.join(self.copy, AUTHORS)) if self.copy else None
        return tuple(line for line in (text or b"").decode("utf-8", "replace").split("\n") if line)

    @property
    def signed(self) -> bool:
        """Whether those commits have to be signed."""
        return self.copy is not None and os.path.exists(os.path.join(self.copy, SIGNED))


def root_of(place: Place) -> str:
    """The folder of a project that is trusted or not: the one that holds .commonplace/, else the repository."""
    return os.path.dirname(place.folder) if place.folder else place.root


def trust_of(place: Place, data: str) -> FolderTrust:
    """What the user has said about a project; ``data`` is the data folder."""
    root = os.path.realpath(root_of(place))
    known = list(trusted_folders(data))
    agreed = next((one for one in known if one.root == root), None)
    if agreed is None:
        return FolderTrust(root=root)
    copy = os.path.join(data, REGISTRY, agreed.name)
    if is_other_repository(place.git, copy):
        return FolderTrust(root=root, former=agreed)
    first = next((one for one in known if one.identity == agreed.identity and os.path.isdir(one.root)), agreed)
    return FolderTrust(
        root=root, agreed=agreed, copy=copy, changed=changed_files(place.folder, copy), is_first=first is agreed
    )


def trust_of_path(path: str, env: Mapping[str, str]) -> FolderTrust:
    """What the user has said about the folder in which a file lies: a project's, else any folder above the file.

    A repository inside a trusted folder is a folder of its own.
    """
    folder = os.path.dirname(os.path.realpath(path))
    place, data = find(folder), home(env)
    if place is not None:
        return trust_of(place, data)
    above = [one for one in trusted_folders(data) if f"{folder}/".startswith(f"{one.root.rstrip('/')}/")]
    nearest = max(above, key=lambda one: len(one.root), default=None)
    if nearest is None:
        return FolderTrust(root=folder)
    return FolderTrust(root=nearest.root, agreed=nearest, copy=os.path.join(data, REGISTRY, nearest.name))


def path_identity(root: str) -> str:
    """The identity of a project that is made of its path alone."""
    if root.isprintable() and len(root.encode()) <= PATH_BYTES:
        return f"{CLAIMED}{root}"
    from hashlib import sha256  # noqa: PLC0415 - hardly any path is that long

    return f"{CLAIMED}{sha256(os.fsencode(root)).hexdigest()}"


def trusted_folders(data: str) -> Iterator[TrustedFolder]:
    """The folders that the user trusts, in the order in which they were agreed to."""
    path = os.path.join(data, REGISTRY, INDEX)
    for number, line in enumerate((_read(path) or b"").decode("utf-8", "surrogateescape").splitlines(), start=1):
        parts = line.split("\t")
        if len(parts) != len(TrustedFolder.fields):
            raise ConfigError(f"line {number} cannot be read; remove it and trust that folder again", file=path)
        yield TrustedFolder(name=parts[0], identity=parts[1], root=parts[2])


# What was agreed to, and what lies there now


def repository_lines(git: str | None) -> list[str]:
    """What a repository is known by, from its configuration and its reflog, which no clone brings along."""
    if git is None:
        return []
    remotes = [address for address in remote_addresses(git) if address.isprintable()]
    return [*remotes, *([CLONED] if was_cloned(git) else [])]


def is_other_repository(git: str | None, copy: str) -> bool:
    """Whether another repository lies at the path of a folder than when its user said yes to it.

    One of the remotes of then has to be a remote still; so a fork may be added, and a clone be made anew.  A repository
    that had none may get one, unless it is a clone now.
    """
    text = _read(os.path.join(copy, REPOSITORY))
    if text is None:  # agreed to before this was noted
        return False
    then, now = set(text.decode("utf-8", "replace").split("\n")) - {""}, set(repository_lines(git))
    remotes = then - {CLONED}
    return remotes.isdisjoint(now) if remotes else CLONED in now - then


def changed_files(folder: str | None, copy: str) -> tuple[str, ...]:
    """The settings and prompts that differ between a project's folder and the copy."""
    now, then = read_settings(folder) if folder else {}, read_settings(copy)
    if now == then:
        return ()
    return tuple(sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name)))


def read_settings(folder: str) -> dict[str, bytes]:
    """The settings and prompts of a folder, by their paths; raises ``ConfigError`` for what is no plain small file."""
    found = {}
    for name in (CONFIG, *_prompt_names(folder)):
        data = _read(os.path.join(folder, name))
        if data is not None:
            found[name] = data
    return found


def _prompt_names(folder: str) -> list[str]:
    path = os.path.join(folder, PROMPTS)
    try:
        if os.path.islink(path):
            raise ConfigError("is a symbolic link; only a real folder is read. Remove the link", file=path)
        names = [name for name in os.listdir(path) if name.endswith(".md") and not name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    if len(names) > PROMPT_FILES:
        raise ConfigError(f"holds {len(names)} files; {PROMPT_FILES} are read at most", file=path)
    return [f"{PROMPTS}/{name}" for name in sorted(names)]


def _read(path: str) -> bytes | None:
    """A small plain file; None if there is none.  Its size is looked at before it is read."""
    try:
        with disk.open_file(path, limit=SETTINGS_BYTES, links=False) as file:
            return disk.read_rest(file, limit=SETTINGS_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = "it is a symbolic link" if os.path.islink(path) else disk.reason(error)
        raise ConfigError(f"cannot be read: {reason}", file=path) from error
