"""How this copy was installed, and so the command that adds an extra to it.

The distribution is not called as the package is: the plain name belongs to somebody else on the package index.
"""

from __future__ import annotations

import json
import os
import sys

#: The name on the package index.  Every hint and every page of the docs uses this one.
DISTRIBUTION = "commonplace-memory"


def hint(need: str, extra: str) -> str:
    """Return a sentence that says what needs an extra and how to install it here."""
    return f"{need}: {install_command(extra)}"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the installation that runs."""
    spec = _quoted(_specification(extra))
    if _has("uv-receipt.toml"):
        return f"uv tool install --force {spec}"
    if _has("pipx_metadata.json"):
        return f"pipx install --force {spec}"
    editable = "-e " if _origin().get("dir_info", {}).get("editable") else ""
    return f"{'uv pip' if _made_by_uv() else 'pip'} install {editable}{spec}"


def _specification(extra: str) -> str:
    """The package with its extra: from the folder or file that it was installed from, else from the index."""
    url = str(_origin().get("url", ""))
    if url.startswith("file://"):
        path = _path(url)
        if os.path.isdir(path):
            return f"{path}[{extra}]"
        if os.path.isfile(path):
            return f"{DISTRIBUTION}[{extra}] @ {url}"
    if vcs := _origin().get("vcs_info", {}).get("vcs"):
        return f"{DISTRIBUTION}[{extra}] @ {vcs}+{url}"
    return f"{DISTRIBUTION}[{extra}]"


def _origin() -> dict[str, dict[str, str | bool]]:
    """What the installer noted about where the package came from (PEP 610); empty: from an index."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - costs more than a recall may

    try:
        return dict(json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}"))
    except (PackageNotFoundError, ValueError):  # a bare checkout on the path, or a note that is none
        return {}


def _has(name: str) -> bool:
    return os.path.isfile(os.path.join(sys.prefix, name))


def _made_by_uv() -> bool:
    """Whether the environment is one of uv's, which has no pip."""
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as file:
            made = any(line.partition("=")[0].strip() == "uv" for line in file)
    except OSError:
        return False
    return made and not _has_pip()


def _has_pip() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - only a hint needs it

    return find_spec("pip") is not None


def _path(url: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 - only a hint needs it
    from urllib.request import url2pathname  # noqa: PLC0415 - likewise

    return url2pathname(urlsplit(url).path)


def _quoted(word: str) -> str:
    return f"'{word}'" if "'" not in word else f'"{word}"'
