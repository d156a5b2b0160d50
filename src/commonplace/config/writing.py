"""Write settings files: a new project's folder, and switches in files that people edit."""

from __future__ import annotations

import os

from commonplace.config import settings
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
_SCHEMAS = {PROJECT: settings.PROJECT, ASSISTANT: settings.USER}


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
    try:
        text = disk.read_text(path, limit=settings.FILE_BYTES)
    except FileNotFoundError:
        text = settings.template(_SCHEMAS[scope], {}, title=_TITLES[scope])
    disk.replace(os.path.dirname(path), os.path.basename(path), settings.with_switch(text, "enabled", on).encode())


def switch_learning_on(folder: str) -> str:
    """Set ``memories.enabled`` in the settings of a project; return the path of the file."""
    path = os.path.join(folder, CONFIG)
    text = disk.read_text(path, limit=settings.FILE_BYTES)
    disk.replace(folder, CONFIG, with_learning_on(text).encode())
    return path


def with_learning_on(text: str) -> str:
    """Return the settings with ``memories.enabled: true`` and all else unchanged."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.startswith("memories:")), None)
    if start is None:
        return text.rstrip("\n") + "\n\nmemories:\n  enabled: true\n"
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if line.strip() and not line.startswith((" ", "#")):
            break
        if line.strip().startswith("enabled:"):
            lines[number] = line.replace("enabled: false", "enabled: true", 1)
            return "\n".join(lines)
    return "\n".join([*lines[: start + 1], "  enabled: true", *lines[start + 1 :]])
