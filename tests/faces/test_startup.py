"""A recall starts quickly: what it loads is counted, and its options are read without a library."""

from __future__ import annotations

import subprocess
import sys

import pytest

from commonplace.records import recall_command as recall
from commonplace.records.commands.recall import recall as by_click
from stands import rows

#: Each of these costs a tenth of a recall or more.
DENIED = {
    *("click", "yaml", "dataclasses", "inspect", "pathlib", "hashlib", "_hashlib", "hmac", "logging", "subprocess"),
    *("asyncio", "shutil", "tempfile", "importlib.metadata", "argparse", "random", "secrets", "unittest", "email"),
    *("socket", "ssl", "decimal", "gettext", "locale", "traceback", "msgspec", "pydantic", "platformdirs"),
}
#: Our own modules that only writing needs.
UNNEEDED = {
    *("commonplace.engine.admission", "commonplace.redact.redaction", "commonplace.redact.vendors"),
    *("commonplace.files.codec", "commonplace.files.plan", "commonplace.files.sync"),
    *("commonplace.engine.transfer", "commonplace.text.strict_yaml", "commonplace.stores.sqlite.upkeep"),
    *("commonplace.cli.commands", "commonplace.cli.session", "commonplace.records.commands.record"),
}
LIST = """
import sys
from commonplace.cli.main import run
code = run(sys.argv[1:])
print(*sorted(sys.modules))
sys.exit(code)
"""


def loaded(*arguments):
    """The modules that a fresh process has loaded after a command."""
    done = subprocess.run([sys.executable, "-c", LIST, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("form", ["snippets", "prompt", "json"])
@pytest.mark.usefixtures("pnpm")
def test_a_recall_loads_nothing_that_it_can_do_without(form):
    """No command-line library, no YAML, no hashes, no writing half of the engine."""
    assert loaded("recall", "which package manager: npm?", "--format", form, "--limit=3") & (DENIED | UNNEEDED) == set()


@pytest.mark.usefixtures("pnpm")
def test_a_recall_loads_few_modules():
    """A new import on the way of a recall has to be meant."""
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    extra = loaded("recall", "pnpm") - set(bare.stdout.split())
    assert len(extra) <= 114, sorted(extra)


@pytest.mark.usefixtures("outside")
def test_help_loads_no_command():
    """The list of commands is a table."""
    modules = loaded("--help")
    assert "click" in modules
    assert not {name for name in modules if name.startswith("commonplace.records.")}
    assert "commonplace.app" not in modules


CALLS = [
    ["which database"],
    ["which", "database"],
    ["x", "--format", "json"],
    ["--format=prompt", "x"],
    ["x", "--scope", "project", "--scope=assistant"],
    ["x", "--category", "decisions", "--tag", "a", "--tag", "b"],
    ["x", "--limit", "3", "--budget=500"],
    ["x", "--as-of", "2026-01-01", "--explain"],
    ["--", "--limit", "x"],
    ["-"],
    [""],
    ["x", "--tag", "-dash"],
    ["x", "--limit", "1", "--limit", "2"],
]


def clicked(arguments):
    """The same call as click reads it."""
    context = by_click.make_context("recall", list(arguments))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in context.params.items()}


@rows("arguments", CALLS)
def test_an_ordinary_call_is_read_as_click_reads_it(arguments):
    """The small parser and the library agree on every value."""
    assert recall.simple(arguments) == clicked(arguments)


@rows("arguments", [
    [], ["--help"], ["x", "-h"], ["x", "--limit", "many"], ["x", "--limit"], ["x", "--format", "xml"], ["x", "--nope"],
    ["x", "--explain=yes"], ["x", "--limit", "-1"], ["x", "--lim", "1"]])  # fmt: skip
def test_what_is_not_ordinary_goes_to_click(arguments):
    """Help, mistakes and abbreviations are left to the library, which says what is wrong."""
    assert recall.simple(arguments) is None


def test_every_option_is_declared_once(outside):
    """The library's options are made from the table, each with its help."""
    out = outside.ok("recall", "--help").out
    words = " ".join(out.split())
    for option in recall.OPTIONS:
        assert f"--{option.name}" in out
        assert option.help in words
