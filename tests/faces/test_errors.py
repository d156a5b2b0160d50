"""What goes wrong is one sentence on standard error and one exit code, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

from commonplace import __version__
from commonplace.cli import exits
from commonplace.cli.commands import all_commands
from commonplace.model import errors
from commonplace.records.commands.record import record
from stands import rows

COMMAND = str(Path(sys.executable).with_name("commonplace"))
BAD = [
    ([], 0),
    (["nonsense"], 2),
    (["--store", "", "status"], 2),
    (["--store", "mysql://db/memory", "status"], 2),
    (["migrate", "a.db", "sqlite:///b.db"], 2),
    (["recall"], 2),
    (["recall", "x", "--format", "xml"], 2),
    (["recall", "x", "--limit"], 2),
    (["recall", "x", "--limit", "many"], 2),
    (["recall", "x", "--limit", "0"], 2),
    (["recall", "x", "--limit", "-3"], 2),
    (["recall", "x", "--limit", "²"], 2),
    (["recall", "x", "--as-of", "yesteryear"], 2),
    (["recall", "x", "--as-of", "99999999999999d"], 2),
    (["recall", "x", "--as-of", "0001-01-01T00:00+14:00"], 2),
    (["recall", "x", "--category", "news"], 2),
    (["recall", "x", "--nonsense"], 2),
    (["recall", "x", "--explain=1"], 2),
    (["record"], 0),
    (["record", "nonsense"], 2),
    (["record", "add", "x"], 2),
    (["record", "add", "  ", "--category", "decisions"], 2),
    (["record", "add", "x" * 20_000, "--category", "decisions"], 2),
    (["record", "add", "x\udcff", "--category", "decisions"], 2),
    (["record", "add", "x", "--category", "incidents", "--expires", "soon"], 2),
    (["record", "add", "x", "--category", "incidents", "--occurred", "2026-13-01"], 2),
    (["record", "add", "x", "--category", "decisions", "--supersedes", "zzz"], 1),
    (["record", "add", "x", "--category", "decisions", "--key", "a\nb"], 2),
    (["record", "add", "x", "--category", "decisions", "--tag", "t" * 300], 2),
    (["record", "get", ""], 1),
    (["record", "get", "../../etc/passwd"], 1),
    (["record", "get", "%"], 1),
    (["record", "get", "\x1b[31m"], 1),
    (["record", "update", "zzz", "x"], 1),
    (["record", "update", "zzz", "x", "--expect", "one"], 2),
    (["record", "reclassify", "zzz", "decisions"], 1),
    (["record", "list", "--limit", "0"], 2),
    (["record", "list", "--state", "lost"], 2),
    (["record", "delete"], 2),
    (["sync", "--scope", "both"], 2),
    (["restore"], 2),
    (["restore", "missing.db", "--yes"], 2),
    (["import"], 2),
    (["import", "."], 2),
    (["export", "/dev/null/x"], 6),
    (["backup", "/dev/null/x"], 6),
    (["enable"], 2),
    (["clear"], 2),
]


@rows("arguments, code", BAD)
def test_a_mistake_is_one_sentence(cli, arguments, code):
    """Whatever is typed, there is an exit code and at most one line beginning with the command's name."""
    done = cli(*arguments)
    assert done.code == code
    assert "Traceback" not in done.out + done.err
    if code:
        assert done.out == ""
        assert done.err.startswith("commonplace: ")
        assert done.err.count("\n") == 1
        assert "\x1b" not in done.err


def test_every_error_has_an_exit_code():
    """The table covers the whole tree, and what is more special comes first."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind is not errors.CommonplaceError]
    for kind in kinds:
        assert any(issubclass(kind, known) for known in exits.EXITS), kind
    for number in {*exits.EXITS.values(), exits.OK, exits.INTERRUPTED}:
        assert f"\n{number:>4}  " in exits.__doc__


def test_a_broken_configuration_names_file_and_line(cli):
    """A setting that cannot be followed is exit code 5, in recall as everywhere."""
    config = cli.home / "config.yaml"
    for text, reason in (
        ("usr: ada\n", "usr"),
        ("enabled: maybe\n", "true or false"),
        ("a: [\n", "line 2"),
    ):
        config.write_text(text)
        for arguments in (["recall", "x"], ["record", "list"], ["status"], ["disable", "--scope", "project"]):
            done = cli(*arguments)
            assert (done.code, str(config) in done.err, reason in done.err) == (5, True, True)


def test_a_data_folder_that_cannot_be_used_is_told(cli):
    """A file where the data folder should be is told with its path."""
    (cli.folder / "blocked").write_text("")
    cli.env(COMMONPLACE_HOME=cli.folder / "blocked")
    for arguments in (["recall", "x"], ["record", "list"], ["doctor", "--fix"]):
        done = cli(*arguments)
        assert (done.code, done.err.count("\n")) == (5, 1)


def test_a_folder_that_is_gone_is_told(cli):
    """Standing in a folder that somebody deleted is no traceback."""
    lost = cli.at(cli.folder / "lost")
    lost.rmdir()
    done = cli("recall", "x")
    assert (done.code, done.err.count("\n")) == (6, 1)
    cli.at(cli.folder)


def test_a_reader_that_has_enough_is_no_error(cli):
    """`commonplace record list | head -1` is quiet."""
    for number in range(12):
        cli.add(f"Lesson {number} " + "on krakens " * 1200, "principles")
    for arguments in ("record list --json", "recall krakens --limit 40 --format json", "export"):
        done = subprocess.run(
            f"{COMMAND} {arguments} | head -c 1; exit ${{PIPESTATUS[0]}}",
            shell=True, executable="/bin/bash", capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


def test_an_answer_that_cannot_be_written_is_told_once(pnpm):
    """A full disk behind standard output is a failure; no standard output at all is nobody's."""
    for arguments in (["recall", "pnpm"], ["record", "get", pnpm["id"]]):
        command = " ".join([COMMAND, *arguments])
        full = subprocess.run(f"{command} > /dev/full", shell=True, capture_output=True, text=True, check=False)
        assert (full.returncode, full.stderr) == (6, "commonplace: No space left on device\n")
        closed = subprocess.run(f"{command} >&-", shell=True, capture_output=True, text=True, check=False)
        assert (closed.returncode, closed.stderr) == (0, "")


JSON = {
    "record add": ["x", "--category", "incidents"], "record update": ["ID", "y"],
    "record reclassify": ["ID", "decisions"],
    "record archive": ["ID"], "record restore": ["ID"], "record pin": ["ID"], "record unpin": ["ID"],
    "record hold": ["ID"], "record release": ["ID"], "record list": [], "record get": ["ID"], "record history": ["ID"],
    "record delete": ["ID", "--yes"], "init": [], "sync": [], "status": [], "doctor": [], "backup": ["copy.db"],
    "enable": ["--scope", "project"], "disable": ["--scope", "project"], "clear": ["--scope", "project", "--force"],
}  # fmt: skip


@pytest.mark.parametrize("command", JSON)
def test_every_command_can_answer_a_program(cli, pnpm, command):
    """With --json standard output is one JSON object, and nothing else."""
    arguments = [pnpm["id"] if argument == "ID" else argument for argument in JSON[command]]
    assert isinstance(cli.ok(*command.split(), *arguments, "--json").json, dict)


def test_a_shell_can_complete(outside):
    """The shell gets its completion script from the command itself."""
    outside.env(_COMMONPLACE_COMPLETE="bash_source")
    assert "complete" in outside.start().out


def test_an_interrupt_is_130_and_leaves_nothing_half_done(cli):
    """Ctrl-C while an editor is open ends the command and keeps nothing."""
    script = cli.folder / "editor"
    script.write_text("#!/bin/sh\ntouch started\nexec sleep 30\n")
    script.chmod(0o700)
    cli.env(EDITOR=script)
    process = subprocess.Popen(
        [COMMAND, "record", "add", "--category", "decisions"],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while not os.path.exists("started") and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, "Traceback" in err) == (130, False)
    assert cli.ok("record", "list").out == ""


def terminal(*arguments):
    """Start the command on a terminal."""
    return pexpect.spawn(
        COMMAND, [*arguments], encoding="utf-8", timeout=60, use_poll=True, env={**os.environ, "TERM": "dumb"}
    )


def interrupt(child):
    """Press Ctrl-C until it ends: Python does not hear one that comes just before it starts to wait for a line."""
    child.sendintr()
    while child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=2):
        child.sendintr()
    child.close()


def test_a_person_is_asked_before_something_is_erased(cli, pnpm):
    """No keeps it, with exit code 1; yes erases it."""
    for answer, code in (("n", 1), ("y", 0)):
        child = terminal("record", "delete", pnpm["id"][:10])
        child.expect("irreversibly\\?")
        child.sendline(answer)
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == code
    assert cli("record", "get", pnpm["id"]).code == 1


def test_clearing_on_a_terminal_asks_or_takes_yes(cli, pnpm):
    """Ctrl-C at the question is 130; --yes does not ask on a terminal."""
    child = terminal("clear", "--scope", "project")
    child.expect("the 1 item in the project memory irreversibly\\?")
    interrupt(child)
    assert child.exitstatus == 130
    child = terminal("clear", "--scope", "project", "--yes")
    child.expect("Erased 1 record")
    child.expect(pexpect.EOF)
    assert cli("record", "get", pnpm["id"]).code == 1


@pytest.mark.usefixtures("pnpm")
def test_long_work_is_shown_on_a_terminal_and_nowhere_else(cli):
    """Progress goes to a terminal's standard error only."""
    child = terminal("sync", "--scope", "project")
    child.expect("Syncing project: 0")
    child.expect("project: in sync")
    child.expect(pexpect.EOF)
    assert "Syncing" not in cli.ok("sync").err


def commands():
    """Every command there is, as it is typed."""
    return [[name] for name in all_commands()] + [["record", name] for name in record.commands]


@rows("command", commands())
def test_every_command_has_help_with_an_example(outside, command):
    """Help shows how the command is typed, each example on its own line."""
    out = outside.ok(*command, "--help").out
    assert out.startswith(f"Usage: commonplace {' '.join(command)}")
    assert "Example" in out
    assert any(line.strip().startswith("commonplace") or "| commonplace" in line or "&& commonplace" in line
               for line in out.partition("Example")[2].splitlines())  # fmt: skip


def test_help_names_every_command(outside):
    """The list of commands is there without loading any of them."""
    out = outside.ok("--help").out
    named = {name for line in out.splitlines() if line.startswith("  ") for name in line.split("  ")[1].split(", ")}
    assert {name for name, listed in all_commands().items() if listed.part} - named == set()
    assert outside.ok("-h").out == out


def test_the_version_is_told(outside):
    """--version says which Commonplace this is."""
    assert outside.start("--version") == (0, f"commonplace {__version__}\n", "")
