"""Write settings files: a new project's folder, and switches in files that people edit."""

from __future__ import annotations

import os

from commonplace.config import settings
from commonplace.config.editing import with_settings
from commonplace.config.paths import CONFIG, Place, identity
from commonplace.config.project import ASSISTANT, PROJECT
from commonplace.files import disk
from commonplace.text.cleaning import slug

README = """\
# This project's memory

One Markdown file per record. You can edit the files in any editor; `commonplace sync` reads your changes.

You can commit everything in this folder to share it with everyone who clones the project. Read it first: the records
are then as public as the code. To keep them private, add the folder to .gitignore. The search index, the usage counts
and your own (assistant) memory are in your data folder, never in here.
"""
_TITLES = {PROJECT: "The settings of this project's memory.", ASSISTANT: "The settings of your own memory."}
SCHEMAS = {PROJECT: settings.PROJECT, ASSISTANT: settings.USER}


def make_project(folder: str, place: Place | None) -> bool:
    """Write the missing files of a project's folder; return whether any was missing."""
    name = (identity(place) if place else None) or new_identity(os.path.dirname(folder))
    written = {
        CONFIG: settings.template(settings.PROJECT, {"project": name}, title=_TITLES[PROJECT]),
        "README.md": README,
    }
    os.makedirs(folder, mode=0o700, exist_ok=True)
    missing = [file for file in written if not os.path.exists(os.path.join(folder, file))]
    for file in missing:
        disk.replace(folder, file, written[file].encode())
    return bool(missing)


def new_identity(root: str) -> str:
    """An identity for a project that has none by Git."""
    return f"local/{slug(os.path.basename(root))}-{os.urandom(4).hex()}"


def switch_memory(path: str, scope: str, *, on: bool) -> None:
    """Change ``enabled`` in the settings file of a scope; everything else, comments too, stays."""
    text = with_settings(settings_text(path, scope), {"enabled": on}, file=path)
    disk.replace(os.path.dirname(path), os.path.basename(path), text.encode())


def settings_text(path: str, scope: str) -> str:
    """Return the text of the settings file of a scope; of a missing one, that of a new file."""
    try:
        return disk.read_text(path, limit=settings.FILE_BYTES)
    except FileNotFoundError:
        return settings.template(SCHEMAS[scope], {}, title=_TITLES[scope])


def switch_learning_on(folder: str) -> str:
    """Set ``memories.enabled`` in the settings of a project; return the path of the file."""
    path = os.path.join(folder, CONFIG)
    text = disk.read_text(path, limit=settings.FILE_BYTES)
    disk.replace(folder, CONFIG, with_settings(text, {"memories.enabled": True}, file=path).encode())
    return path
