"""The documentation is run: every example is a test, from the first line of a page to its last."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stands import rows, scripts_of_the_user

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


class Reader:
    """Somebody who follows a page: a fresh user on a fresh machine, in a folder of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "work"
        self.folder.mkdir()
        scripts_of_the_user(home / "data")  # a reader types at a terminal, which is missing here

    def environment(self) -> dict[str, str]:
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        person = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "USER"), "ada")
        mail = dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "ada@example.com")
        places = {"HOME": str(self.home), "COMMONPLACE_HOME": str(self.home / "data"), "PATH": programs}
        screen = {"COMMONPLACE_FORCE_TTY": "100", "NO_COLOR": "1", "COMMONPLACE_PROGRESS": "never"}
        # a reader has a terminal, and a machine that is not busy
        return person | mail | places | screen | {"LANG": "C.UTF-8", "GIT_CONFIG_GLOBAL": os.devnull}

    def types(self, command: str) -> str:
        """Type a command; where it leaves the shell, the next one starts."""
        left = self.home / "left"
        program = f"{{ {command}\n}} 2>&1; pwd > '{left}'"
        done = subprocess.run(
            ["bash", "-c", program],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            timeout=120,
            check=False,
        )
        self.folder = Path(left.read_text(encoding="utf-8").strip())
        return done.stdout.decode()

    def runs(self, program: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=self.folder, env=self.environment(), capture_output=True, check=False
        )
        assert done.returncode == 0, f"{program}\n{done.stderr.decode()}"
        return done.stdout.decode()


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a console block, with the output it shows."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, shown = found[-1]
            found[-1] = (command, f"{shown}{line}\n")
    return found


def shows(expected: str, actual: str) -> bool:
    """Whether the output is what the page shows; `...` stands for anything."""
    parts = [re.escape(part) for part in expected.strip().split("...")]
    return re.fullmatch(".*?".join(parts), actual.strip(), re.DOTALL) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_can_be_followed_from_its_first_line_to_its_last(page, tmp_path):
    """Commands print what the page shows, programs print what their comments say."""
    reader = Reader(tmp_path)
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if "scripts/" in block:  # setting up is tried by CI itself, in a clean checkout
            continue
        if kind == "python":
            printed = [line.rstrip() for line in reader.runs(block).splitlines()]
            assert printed == re.findall(r"#> (.*)$", block, re.MULTILINE)
            continue
        for command, shown in commands(block):
            printed = reader.types(command)
            assert shows(shown, printed), f"$ {command}\n--- shown\n{shown}\n--- printed\n{printed}"


@rows("page", PAGES)
def test_a_link_leads_somewhere(page):
    """Every link to a file of the repository has that file at its end."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), f"{page}: {target}"


def test_ci_calls_what_the_readme_says():
    """The two commands of the README are the scripts that CI runs."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for script in ("scripts/demo", "scripts/test"):
        assert script in readme
        assert script in ci
        assert shutil.which(ROOT / script)


def test_the_readme_names_every_extra():
    """What can be installed beside the base is said where installing is."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"].keys() - {"dev"}
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| extra | for |")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`([a-z-]+)`", row.split(" | ")[0])}
    assert named == extras
