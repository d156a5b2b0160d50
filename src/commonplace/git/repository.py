"""A repository as its files describe it: where its data is, whether that data is its own, and its remote.

Nothing is run, and nothing here imports more than ``os``: it runs on every prompt.  A ``.git`` that leads elsewhere
names a repository only if that repository names this folder as well; or any folder could take another one's identity.
"""

from __future__ import annotations

import os

from commonplace.model.values import Value

CONFIG_BYTES = 1_048_576  # a larger configuration is not read: no person and no Git wrote it
LINE_BYTES = 4_096  # of a file that holds one path

Settings = list[tuple[str, str, str, str]]  # section, subsection, key, value, in their order


class Repository(Value):
    """A working tree of a repository."""

    root: str  #: the folder that has the .git
    own: str  #: the data of this working tree: HEAD, index, reflog
    common: str  #: the data that all working trees share: configuration, objects, references
    is_own: bool  #: whether the data is inside the folder, or names it as one of its working trees


def repository_at(folder: str) -> Repository | None:
    """Return the repository whose top folder this is; None if it is not one."""
    path = os.path.join(folder, ".git")
    if os.path.isdir(path):
        if not os.path.exists(os.path.join(path, "HEAD")):
            return None
        return Repository(root=folder, own=path, common=_common(path), is_own=_is_plain(path))
    line = _first_line(path)
    if not line.startswith("gitdir:"):
        return None
    own = os.path.normpath(os.path.join(folder, line.removeprefix("gitdir:").strip()))
    common = _common(own)
    return Repository(root=folder, own=own, common=common, is_own=_points_back(own, common, folder))


def remote_address(common: str) -> str | None:
    """Return the address of ``origin``, else of the first remote, in one form for all clones of it."""
    return next(iter(remote_addresses(common)), None)


def remote_addresses(common: str) -> list[str]:
    """Return the addresses of all remotes, ``origin`` first, each in one form for all clones of it."""
    remotes: dict[str, str] = {}
    for section, name, key, value in read_config(os.path.join(common, "config")):
        if section == "remote" and key == "url" and value:
            remotes.setdefault(name, value)
    return [canonical(remotes[name]) for name in sorted(remotes, key="origin".__ne__)]


def was_cloned(common: str) -> bool:
    """Whether this machine's reflog says that the repository was made by ``git clone``."""
    return "\tclone: " in _first_line(os.path.join(common, "logs", "HEAD"))


def canonical(address: str) -> str:
    """Return one form for a remote: ``git@host:team/app.git`` and ``https://host/team/app`` are one project."""
    rest = address.partition("://")[2] or address
    if rest.startswith("/"):  # a folder: `git clone ../app.git` writes down ``/home/ada/work/../app.git``
        return os.path.normpath(rest).removesuffix(".git") or address
    if "://" not in address and ":" in rest and not rest.startswith(("/", ".")):
        host, _, path = rest.partition(":")
        rest = f"{host}/{path}"
    host, slash, path = rest.partition("/")
    host = host.rpartition("@")[2].partition(":")[0].lower()
    path = path.lstrip("/") if host else path
    return f"{host}{slash}{path}".rstrip("/").removesuffix(".git") or address


def read_config(path: str) -> Settings:
    """Return the settings of a file in Git's format, without what it includes; none if it cannot be read."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > CONFIG_BYTES:  # a pipe would be waited for
            return []
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().replace("\\\n", "").split("\n")
    except OSError:
        return []
    found: Settings = []
    section = subsection = ""
    for line in map(str.strip, lines):
        head, _, rest = line[1:].partition("]") if line.startswith("[") else ("", "", line)
        if head:
            section, _, quoted = head.partition(" ")
            subsection = quoted.strip().strip('"').replace('\\"', '"').replace("\\\\", "\\")
        setting = rest.strip()
        if setting and setting[0] not in "#;":
            key, sign, value = setting.partition("=")
            found.append((section.lower(), subsection, key.strip().lower(), _unquoted(value) if sign else "true"))
    return found


def _unquoted(text: str) -> str:
    """A value without quotes and without the comment behind it."""
    kept: list[str] = []
    is_quoted, letters = False, iter(text.strip())
    for letter in letters:
        if letter == '"':
            is_quoted = not is_quoted
        elif letter == "\\":
            after = next(letters, "")
            kept.append({"n": "\n", "t": "\t"}.get(after, after))
        elif letter in "#;" and not is_quoted:
            break
        else:
            kept.append(letter)
    return "".join(kept).strip()


def _is_plain(path: str) -> bool:
    """Whether a .git folder is the repository itself: no link, and no file in it that leads to another one."""
    links = (path, os.path.join(path, "config"), os.path.join(path, "HEAD"))
    return not any(map(os.path.islink, links)) and not os.path.lexists(os.path.join(path, "commondir"))


def _common(own: str) -> str:
    """The data that a working tree shares with others."""
    named = _first_line(os.path.join(own, "commondir"))
    return os.path.normpath(os.path.join(own, named)) if named else own


def _points_back(own: str, common: str, folder: str) -> bool:
    """Whether a repository outside of a folder names it: as a worktree, or as a submodule."""
    if common != own:
        named = _first_line(os.path.join(own, "gitdir"))
        is_inside = _is_same(os.path.dirname(own), os.path.join(common, "worktrees"))
        return is_inside and bool(named) and _is_same(os.path.join(own, named), os.path.join(folder, ".git"))
    files = [os.path.join(own, name) for name in ("config", "config.worktree")]
    trees = [
        value
        for file in files
        for section, _, key, value in read_config(file)
        if (section, key) == ("core", "worktree")
    ]
    return bool(trees) and _is_same(os.path.join(own, trees[-1]), folder)


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _first_line(path: str) -> str:
    """The first line of a small file; nothing if it cannot be read."""
    try:
        if not os.path.isfile(path):  # a pipe would be waited for
            return ""
        with open(path, encoding="utf-8") as file:
            return file.readline(LINE_BYTES).strip()
    except (OSError, UnicodeDecodeError):
        return ""
