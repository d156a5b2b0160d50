"""The question whether a folder is trusted, which ``trust``, ``init`` and ``connect`` ask."""

from __future__ import annotations

import os

from commonplace.app import open_app
from commonplace.cli.person import require_person
from commonplace.cli.session import confirm
from commonplace.cli.terminal import print_text, short_path
from commonplace.config.paths import Place, find
from commonplace.config.trust import FolderTrust, read_settings, trust_of
from commonplace.config.trust_registry import Claim, chosen_settings, read_claim, settings_diff, trust_folder
from commonplace.config.writing import new_identity
from commonplace.files import disk
from commonplace.git.repository import remote_address
from commonplace.git.user import GitUser
from commonplace.model.errors import Conflict, InvalidInput


def find_project(path: str) -> Place:
    """The project around a folder; any other folder is one of its own."""
    if not os.path.isdir(path):
        raise InvalidInput(f"{path!r} is not a folder")
    return find(path) or Place(root=os.path.realpath(path), folder=None, git=None)


def agree(place: Place, data: str, *, identity: str | None = None, yes: bool = False) -> FolderTrust | None:
    """Show what a folder claims and ask for a yes; None if the answer is no."""
    require_person("trusts a folder")
    claim, known = read_claim(place, data), trust_of(place, data)
    meant = identity or (known.agreed.identity if known.agreed else None) or claim.identity
    doubtful = claim.is_doubtful and meant == claim.claimed and known.agreed is None
    shown = read_settings(place.folder) if place.folder else {}
    print_text("\n".join(_describe(place, claim, known, meant)))
    if not (yes and (identity or not doubtful)) and not confirm(_question(known), otherwise=_otherwise(doubtful)):
        return None
    if place.folder and read_settings(place.folder) != shown:
        raise Conflict(f"the settings in {known.root} changed while you were asked; run the command again")
    trusted = trust_folder(place, data, meant or new_identity(known.root))
    if known.agreed is None:
        with open_app(known.root) as app:
            app.adopt(known.identity)
    return trusted


def _question(known: FolderTrust) -> str:
    return "Apply these changes?" if known.is_trusted else "Trust this folder?"


def _otherwise(doubtful: bool) -> str:
    return "--identity NAME" if doubtful else "--yes"


def _describe(place: Place, claim: Claim, known: FolderTrust, meant: str | None) -> list[str]:
    """What a person should know before saying yes."""
    lines = [claim.root, f"  project: {meant or 'a new one'}"]
    if claim.is_doubtful and meant == claim.claimed:
        found = f"Git says {claim.found}" if claim.found else "Git does not say so"
        lines[-1] += f"  (claimed by config.yaml; {found})"
    if known.former:
        lines.append(f"  another repository than the one that you trusted here, of {known.former.identity}")
    lines += [f"  shares its memory with {root}" for root in claim.sharing(meant)]
    if known.is_trusted:
        return [*lines, *(f"  {line}" for line in settings_diff(place.folder, known))]
    if place.folder:
        lines.append(f"  notes: {sum(1 for _ in disk.list_files(place.folder))} in {short_path(place.folder)}")
        lines += [f"  settings: {line}" for line in chosen_settings(place.folder)]
    emails = sorted(GitUser(os.environ, place.root).emails) if place.git and remote_address(place.git) else []
    if emails:
        lines.append(
            f"  your word: notes committed as {' or '.join(emails)} in its default branch (--signed: if signed)"
        )
    return lines
