"""Tell a repository how files of records are merged: in its own configuration, which Git reads and clones do not bring.

``.gitattributes`` names the driver.  Where it is not configured Git merges the files as any text.
"""

from __future__ import annotations

import os
from contextlib import suppress

from commonplace.git.repository import CONFIG_BYTES, read_config, repository_at

NAME = "commonplace"
#: Git runs it in a shell.  Where the command is not found, as outside of a virtual environment, the lines are merged.
COMMAND = "if command -v commonplace >/dev/null; then commonplace merge-file %O %A %B; else git merge-file %A %O %B; fi"
_SECTION = f'[merge "{NAME}"]\n\tname = files of records, merged key by key\n\tdriver = "{COMMAND}"\n'


def install_driver(root: str) -> bool:
    """Configure the driver in the repository at a folder; return whether that changed anything.

    A driver that is configured already stays as it is.  Written as Git writes: a locked copy, then renamed.
    """
    repository = repository_at(root)
    if repository is None or not repository.is_own:
        return False
    path = os.path.join(repository.common, "config")
    if any((section, name) == ("merge", NAME) for section, name, _, _ in read_config(path)):
        return False
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(CONFIG_BYTES)
        mode = os.stat(path).st_mode & 0o777
        descriptor = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except (OSError, UnicodeDecodeError):  # Git is writing it, or it cannot be written: the files merge all the same
        return False
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text if not text or text.endswith("\n") else f"{text}\n")
            file.write(_SECTION)
        os.replace(f"{path}.lock", path)
    except OSError:
        with suppress(OSError):
            os.unlink(f"{path}.lock")
        return False
    return True
