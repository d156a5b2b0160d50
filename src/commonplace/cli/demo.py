"""``commonplace demo``: the first minute, in a throw-away folder, by the commands themselves."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO

import click

from commonplace.cli.commands import Command
from commonplace.cli.terminal import print_text
from commonplace.config.paths import CONFIG

NEXT = """
That was in a temporary folder, which is deleted now.  Next steps:

  cd your-project && commonplace init        create the memory of a project
  commonplace connect claude-code            connect your agent (codex, gemini, cursor, ...: see --help)
  commonplace record add --help              add a record
  commonplace recall "..." --format prompt   quoted for an agent
  commonplace status                         show what is stored where"""


#: A finished session of the demo's project, as `commonplace index` reads it.
SESSION = (
    ("user", "The release of shop hangs. Why?"),
    ("assistant", "The proxy is still on port 8080; I restart it, as memory://{} says."),
    ("user", "From now on we always run the smoke test before a release."),
    ("assistant", "Done; `just release` runs it first."),
    ("user", "Remember: the staging database is called harbor-2."),
)


@click.command(cls=Command)
@click.option("--ui", is_flag=True, help="Then open the page on the demo's memory, until Ctrl-C.")
@click.option("--no-browser", is_flag=True, help="With --ui: print the link, and open no browser.")
def demo(*, ui: bool, no_browser: bool) -> None:
    """Show what Commonplace does, in a temporary folder, in a few seconds.

    Nothing of yours is read or changed.

    Examples:
      commonplace demo
      commonplace demo --ui
    """
    with _elsewhere():
        _keep()
        _ask()
        _edit()
        _replace()
        _brief()
        if ui:
            _learn()
            _title("Look at it, correct it, delete something: it is all thrown away at the end.")
            _run("ui", *(["--no-browser"] if no_browser else []))
    print_text(NEXT)


@contextmanager
def _elsewhere() -> Iterator[None]:
    """A temporary project and data folder, for as long as the demo runs."""
    before, home = os.getcwd(), os.environ.get("COMMONPLACE_HOME")
    with tempfile.TemporaryDirectory(prefix="commonplace-demo-") as folder:
        os.environ["COMMONPLACE_HOME"] = os.path.join(folder, "shop", "home")
        os.makedirs(os.environ["COMMONPLACE_HOME"], mode=0o700)
        with open(os.path.join(os.environ["COMMONPLACE_HOME"], CONFIG), "w", encoding="utf-8") as file:
            file.write("scripts_speak_as: user\n")  # its commands are the demo's own, with a terminal or without
        os.chdir(os.path.join(folder, "shop"))
        try:
            yield
        finally:
            os.chdir(before)
            del os.environ["COMMONPLACE_HOME"]
            if home is not None:
                os.environ["COMMONPLACE_HOME"] = home


def _keep() -> None:
    _title("Add records: one Markdown file each, in two scopes, secrets redacted.")
    _run("init")
    _run("record", "add", "Use pnpm, not npm, in this repository", "--category", "decisions", "--tag", "js",
         "--occurred", _ago(days=300))  # fmt: skip
    _run("record", "add", "Deploy with `make ship` from the main branch only", "--category", "procedures")
    _run("record", "add", "The login test hangs when port 8080 is taken; restart the proxy. password=hunter2-Zx81",
         "--category", "incidents", "--expires", "2w")  # fmt: skip
    _run("record", "add", "Prefer short answers, and snake_case names", "--category", "preferences",
         "--scope", "assistant")  # fmt: skip


def _ask() -> None:
    _title("Search in plain words. Both memories are searched; each hit has its score and its file.")
    _run("recall", "which package manager do we use?")
    _run("recall", "why is the login test hanging", "--explain")
    _run("recall", "how should names be written")


def _edit() -> None:
    path = os.path.relpath(_best("deploying")["reference"])
    _title("Edit a file by hand; the next search finds the edit.")
    print_text(f"$ sed -i 's/make ship/just release/' {shlex.quote(path)}")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("make ship", "just release"))
    _run("recall", "how do we release?")


def _replace() -> None:
    old = _best("pnpm")["id"][:10]
    _title("Replace a fact. The old one is kept, and the past can be searched.")
    _run("record", "add", "Use bun, not pnpm, in this repository", "--category", "decisions",
         "--occurred", _ago(days=30), "--supersedes", old)  # fmt: skip
    _run("recall", "package manager for this repository", "--limit", "1")
    _run("recall", "package manager for this repository", "--limit", "1", "--as-of", _ago(days=90))


def _brief() -> None:
    _title("What an agent is shown.")
    _run("recall", "release this repository from the main branch", "--format", "prompt")


def _learn() -> None:
    """Let a session be learned from, so that each view of the page has something to show."""
    _title("Learn from a finished session.")
    _run("config", "set", "memories.enabled", "true")
    _run("config", "set", "memories.minRolloutIdleHours", "0")
    cited = _best("login test hangs")["id"][:10]
    with redirect_stdout(StringIO()):
        _run("brief", "--task", "release the shop", "--session", "0b1c")
    now = datetime.now(UTC)
    with open("run.jsonl", "w", encoding="utf-8") as file:
        file.write(json.dumps({"session": "0b1c", "started": f"{now:%Y-%m-%dT%H:%M:%SZ}"}) + "\n")
        for place, (role, text) in enumerate(SESSION):
            at = now - timedelta(minutes=len(SESSION) - place)
            line = {"role": role, "content": text.format(cited), "time": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
            file.write(json.dumps(line) + "\n")
    _run("index", "run.jsonl")
    _run("learn")


def _title(text: str) -> None:
    print_text(f"\n== {text}\n")


def _run(*arguments: str) -> None:
    """Show a command as it would be typed, and what it prints."""
    from commonplace.cli.main import run  # noqa: PLC0415 - which loads this

    print_text("$ commonplace " + shlex.join(arguments))
    sys.stdout.flush()
    if code := run(arguments):
        raise click.exceptions.Exit(code)


def _best(question: str) -> dict[str, str]:
    """The best answer to a question, as a program reads it."""
    from commonplace.cli.main import run  # noqa: PLC0415 - which loads this

    with redirect_stdout(StringIO()) as answer:
        run(["recall", question, "--limit", "1", "--format", "json"])
    best: dict[str, str] = json.loads(answer.getvalue())["hits"][0]
    return best


def _ago(*, days: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"
