"""Write settings files: a new project's folder, and switches in files that people edit."""

from __future__ import annotations

import os
from typing import Any

from commonplace.config import settings
from commonplace.config.editing import with_value
from commonplace.config.paths import CONFIG, Place, identity
from commonplace.config.project import ASSISTANT, PROJECT
from commonplace.files import disk
from commonplace.model.errors import ConfigError
from commonplace.model.records import CATEGORIES
from commonplace.text.cleaning import slug

README = """\
# This project's memory

One Markdown file per record. You can edit the files in any editor; `commonplace sync` reads your changes.

You can commit everything in this folder to share it with everyone who clones the project. Read it first: the records
are then as public as the code. To keep them private, add the folder to .gitignore. The search index, the usage counts
and your own (assistant) memory are in your data folder, never in here.
"""
#: Each category by name: prompts and skills are not records.
GIT_ATTRIBUTES = "".join([f"{category}/*.md merge=commonplace\n" for category in CATEGORIES])
GIT_IGNORE = """\
# Written by Commonplace from the sessions of this machine; made anew at any time.
raw_memories.md
rollout_summaries/
.tmp-*
"""
_TITLES = {PROJECT: "The settings of this project's memory.", ASSISTANT: "The settings of your own memory."}
SCHEMAS = {PROJECT: settings.PROJECT, ASSISTANT: settings.USER}


def make_project(folder: str, place: Place | None) -> bool:
    """Write the missing files of a project's folder; return whether any was missing."""
    name = (identity(place) if place else None) or new_identity(os.path.dirname(folder))
    written = {
        CONFIG: settings.template(settings.PROJECT, {"project": name}, title=_TITLES[PROJECT]),
        "README.md": README,
        ".gitattributes": GIT_ATTRIBUTES,
        ".gitignore": GIT_IGNORE,
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
    text = settings_text(path, scope=scope)
    disk.replace(os.path.dirname(path), os.path.basename(path), settings.with_switch(text, "enabled", on).encode())


def set_setting(path: str, name: str, value: Any, *, scope: str = PROJECT) -> None:
    """Change one setting in the settings file of a scope; everything else, comments too, stays."""
    changed = with_value(settings_text(path, scope=scope), name, value, file=path)
    disk.replace(os.path.dirname(path), os.path.basename(path), changed.encode())


def settings_text(path: str, *, scope: str) -> str:
    """The text of the settings file of a scope; where there is none yet, a commented one with every default."""
    try:
        return disk.read_text(path, limit=settings.FILE_BYTES)
    except FileNotFoundError:
        return settings.template(SCHEMAS[scope], {}, title=_TITLES[scope])
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {disk.reason(error)}", file=path) from error
