"""Write the registry of trusted folders: agree to a folder as it is now, take that back, show what has changed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from difflib import unified_diff

from commonplace.config import settings
from commonplace.config.paths import CONFIG, Place, identity
from commonplace.config.trust import (
    AUTHORS,
    CLAIMED,
    INDEX,
    REGISTRY,
    REPOSITORY,
    SIGNED,
    FolderTrust,
    TrustedFolder,
    read_settings,
    repository_lines,
    root_of,
    trust_of,
    trusted_folders,
)
from commonplace.config.writing import new_identity
from commonplace.files import disk
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput
from commonplace.model.values import Value


class Claim(Value):
    """What a folder is, and what it says it is, before its user says yes or no."""

    root: str  #: its real path
    claimed: str | None  #: the identity that its config.yaml claims
    found: str | None  #: the identity by Git: the remote, else the first commit
    known: tuple[TrustedFolder, ...] = ()  #: the folders that are trusted already

    @property
    def identity(self) -> str | None:
        """The identity that a yes would agree to; None: it has none yet."""
        return self.claimed or self.found

    @property
    def others(self) -> list[str]:
        """Other folders that share the memory of its identity."""
        return self.sharing(self.identity)

    def sharing(self, identity: str | None) -> list[str]:
        """Other folders that share the memory of an identity."""
        return [one.root for one in self.known if one.identity == identity and one.root != self.root]

    @property
    def is_doubtful(self) -> bool:
        """Whether it claims to be another project than Git says: that needs a yes of its own."""
        return self.claimed is not None and self.claimed != self.found


def read_claim(place: Place, data: str) -> Claim:
    """What a folder says it is; raises ``ConfigError`` for a link or for settings that cannot be read."""
    if place.link:
        raise ConfigError("is a symbolic link; remove it, or make it a real folder", file=place.link)
    root = os.path.realpath(root_of(place))
    claimed = _claimed(place.folder) if place.folder else None
    return Claim(root=root, claimed=claimed, found=identity(place), known=tuple(trusted_folders(data)))


def _claimed(folder: str) -> str | None:
    read_settings(folder)  # refuses links, and files that are too large
    path = os.path.join(folder, CONFIG)
    claimed: str | None = settings.load(path, settings.PROJECT)["project"]
    return check_identity(claimed, path) if claimed else None


def check_identity(name: str, file: str) -> str:
    """Return an identity; refuse one that only a folder that nobody trusts may have."""
    if name.startswith(CLAIMED) or "\t" in name or not name.isprintable():
        raise ConfigError(f"{name!r} cannot name a project", file=file, path="project")
    return name


def trust_folder(place: Place, data: str, identity: str) -> FolderTrust:
    """Agree to a folder with the settings and prompts that it has now; the authors that were agreed to stay."""
    root = os.path.realpath(root_of(place))
    if "\n" in root or "\t" in root or not identity.strip():
        raise InvalidInput(f"{root!r} cannot be trusted: its path holds a tab or a line break; rename the folder")
    check_identity(identity, root)
    before = trust_of(place, data)
    with _registry(data) as registry:
        name = os.urandom(8).hex()
        copy = os.path.join(registry, name)
        _write_copy(copy, read_settings(place.folder) if place.folder else {}, before)
        disk.replace(copy, REPOSITORY, "".join(f"{line}\n" for line in repository_lines(place.git)).encode())
        agreed = TrustedFolder(name=name, identity=identity, root=root)
        known = list(trusted_folders(data))
        at = next((number for number, one in enumerate(known) if one.root == root), len(known))
        _write_index(registry, [*known[:at], agreed, *known[at + 1 :]])
        if gone := before.agreed or before.former:
            shutil.rmtree(os.path.join(registry, gone.name), ignore_errors=True)
    return trust_of(place, data)


def trust_new_project(place: Place, data: str, *, shared: bool = False) -> FolderTrust:
    """Agree to a .commonplace/ that our own command has just made for the user.

    Raises ``Forbidden`` if other folders have the memory of its identity, unless ``shared`` says that the user knows.
    """
    claim = read_claim(place, data)
    if claim.others and not shared:
        raise Forbidden(
            f"{claim.identity} is the project of {claim.others[0]} too; run `commonplace trust` to share it"
        )
    return trust_folder(place, data, claim.identity or new_identity(claim.root))


def keep_trust(place: Place, data: str) -> None:
    """Agree to the settings as they are now, because our own command has just written them for the user."""
    trust = trust_of(place, data)
    if trust.agreed:
        trust_folder(place, data, trust.agreed.identity)


def require_unchanged(place: Place, data: str) -> None:
    """Raise ``Forbidden`` if settings of the folder wait for a yes: a change of ours would agree to them unseen."""
    trust = trust_of(place, data)
    if not trust.is_trusted:
        raise Forbidden(f"{trust.root} is not trusted; run `commonplace trust`")
    if trust.changed:
        raise Forbidden(f"{', '.join(trust.changed)} in {trust.root} changed; run `commonplace trust` first")


def revoke_trust(path: str, data: str) -> TrustedFolder:
    """Take the yes to a folder back; raises ``InvalidInput`` if there is none."""
    root = os.path.realpath(path)
    with _registry(data) as registry:
        known = list(trusted_folders(data))
        gone = next((one for one in known if one.root == root), None)
        if gone is None:
            raise InvalidInput(f"{root!r} is not a trusted folder; `commonplace trust --list` shows them")
        _write_index(registry, [one for one in known if one is not gone])
        shutil.rmtree(os.path.join(registry, gone.name), ignore_errors=True)
    return gone


def set_authors(trust: FolderTrust, authors: Sequence[str], *, signed: bool) -> None:
    """Set whose commits count as the user's word in a trusted folder, and whether they have to be signed."""
    if trust.copy is None:
        raise InvalidInput(f"{trust.root!r} is not a trusted folder; run `commonplace trust` there first")
    wrong = next((one for one in authors if "@" not in one or not one.isprintable() or " " in one), None)
    if wrong is not None:
        raise InvalidInput(f"{wrong!r} is not an e-mail address, as Git shows it for an author")
    lines = dict.fromkeys(one.lower() for one in authors)
    disk.replace(trust.copy, AUTHORS, "".join(f"{line}\n" for line in lines).encode())
    if signed:
        disk.replace(trust.copy, SIGNED, b"")
    else:
        disk.remove(trust.copy, SIGNED)


def chosen_settings(folder: str) -> Iterator[str]:
    """The settings of a folder that are not the defaults, as ``key: value``, and its prompts."""
    found = settings.load(os.path.join(folder, CONFIG), settings.PROJECT)
    for setting in settings.PROJECT:
        value = found[setting.name]
        if isinstance(setting, settings.SettingGroup):
            inner = {one.name: one.default for one in setting.settings}
            yield from (f"{setting.name}.{name}: {value[name]}" for name in inner if value[name] != inner[name])
        elif value != setting.default and setting.name != "project":
            yield f"{setting.name}: {value}"
    yield from (f"{name}: replaces ours" for name in read_settings(folder) if name != CONFIG)


def settings_diff(folder: str | None, trust: FolderTrust) -> Iterator[str]:
    """What differs between the settings and prompts that were agreed to and those in the folder, line by line."""
    now = read_settings(folder) if folder else {}
    then = read_settings(trust.copy) if trust.copy else {}
    for name in sorted(now.keys() | then.keys()):
        old, new = (texts.get(name, b"").decode("utf-8", "replace").splitlines() for texts in (then, now))
        yield from unified_diff(old, new, f"agreed/{name}", f"now/{name}", lineterm="")


@contextlib.contextmanager
def _registry(data: str) -> Iterator[str]:
    registry = os.path.join(data, REGISTRY)
    for folder in (data, registry):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    with disk.folder_lock(registry):
        yield registry


def _write_copy(copy: str, files: dict[str, bytes], before: FolderTrust) -> None:
    os.makedirs(copy, mode=0o700)
    for name, data in files.items():
        disk.replace(copy, name, data)
    if before.authors:
        disk.replace(copy, AUTHORS, "".join(f"{line}\n" for line in before.authors).encode())
    if before.signed:
        disk.replace(copy, SIGNED, b"")


def _write_index(registry: str, folders: Sequence[TrustedFolder]) -> None:
    lines = "".join(f"{one.name}\t{one.identity}\t{one.root}\n" for one in folders)
    disk.replace(registry, INDEX, lines.encode("utf-8", "surrogateescape"))
