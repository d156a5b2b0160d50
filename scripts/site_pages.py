"""Pages of the site that lie elsewhere: README, CONTRIBUTING, SECURITY, CHANGELOG, and links from docs/ to them.

The files stay where people look for them in a repository; the site has them as pages of its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
TOP = {"index.md": "README.md", "LICENSE.md": "LICENSE"}
TOP |= {name: name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the files of the repository's top as pages."""
    for page, source in TOP.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        shown = _moved(text) if source.endswith(".md") else f"# Licence\n\n```text\n{text}```\n"
        files.append(File.generated(config, page, content=shown))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links out of docs/ to the pages made above."""
    depth = page.file.src_uri.count("/") + 1
    return LINK.sub(lambda link: _rewritten(link, "../" * depth, depth - 1), markdown)


def _moved(text: str) -> str:
    """The text of a file of the top, as if it lay in docs/."""
    return LINK.sub(lambda link: f"{link[1]}{_beside(link[2])}{link[3]}", text)


def _beside(target: str) -> str:
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return {"README.md": "index.md", "LICENSE": "LICENSE.md"}.get(target, target)


def _rewritten(link: re.Match[str], up: str, depth: int) -> str:
    target = link[2]
    if not target.startswith(up):
        return link[0]
    target = target.removeprefix(up)
    return f"{link[1]}{'../' * depth}{_beside(target)}{link[3]}" if target in TOP.values() else link[0]
