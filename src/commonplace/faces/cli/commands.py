"""All commands by name, each loaded when it is used: ``--help`` loads none of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from commonplace.config.places import STORE
from commonplace.domain.errors import InvalidInput
from commonplace.faces.cli.terminal import NAME, say
from commonplace.version import VERSION

COMPLETION = "_COMMONPLACE_COMPLETE"  # what click calls it


class Entry(NamedTuple):
    """Where a command is, and what it does."""

    module: str
    help: str
    attribute: str = ""  #: its own name, unless that is a word of Python's


COMMANDS = {
    "recall": Entry("asking", "Ask memory a question in plain words."),
    "record": Entry("records", "Add, change, list and erase records."),
    "brief": Entry("brief", "Write what a session should be shown before it starts."),
    "used": Entry("used", "Say what a session was shown, and what of it was used."),
    "read": Entry("read", "Read what a memory:// address leads to, whole."),
    "index": Entry("index", "Make session transcripts and tickets searchable."),
    "extract": Entry("extract", "Make records of what was learned in sessions."),
    "init": Entry("places", "Make this repository or folder a project with a memory."),
    "sync": Entry("places", "Bring the Markdown files and the records together."),
    "status": Entry("upkeep", "Say what is stored where, and whether it is well."),
    "doctor": Entry("upkeep", "Check the database, its index and the files; --fix mends."),
    "backup": Entry("upkeep", "Copy the store to a file while others use it."),
    "restore": Entry("upkeep", "Put a backup in the place of what is there."),
    "migrate": Entry("migrate", "Carry a whole store to another database, SQLite or PostgreSQL."),
    "reembed": Entry("upkeep", "Embed everything anew, with the embedder of the settings."),
    "export": Entry("transfer", "Write every record, with its past, as JSON Lines."),
    "import": Entry("transfer", "Keep the records of an export; twice is as good as once.", "import_"),
    "enable": Entry("places", "Switch a memory on."),
    "disable": Entry("places", "Switch a memory off: nothing is kept in it, nothing recalled."),
    "clear": Entry("places", "Erase everything in a memory, for good."),
    "run": Entry("run", "Run an agent with a memory: talk to it, ask it once, or let it work."),
    "pipeline": Entry("pipeline", "Run pipelines whose agents remember; see what they learned."),
    "workflow": Entry("workflow", "Run workflows: phases of agents that hand memory on."),
    "connect": Entry("connect", "Connect a coding agent: its hooks and its MCP settings."),
    "disconnect": Entry("connect", "Take that back, exactly."),
    "hook": Entry("hooking", "Answer a hook of a coding agent; what `connect` sets up."),
    "learn": Entry("learn", "Learn from sessions that are over; what a host runs at its start."),
    "consolidate": Entry("consolidate", "Put what was learned together: MEMORY.md, a summary, skills."),
    "memory": Entry("memory", "See, clear or rebuild what this project learned."),
    "mcp": Entry("mcp", "Serve memory to an agent over the Model Context Protocol."),
    "eval": Entry("evaluate", "Measure how well recall finds what it should.", "eval_"),
    "serve": Entry("serve", "Serve memory over HTTP."),
    "keys": Entry("keys", "Make, list and revoke the keys of the server."),
    "demo": Entry("demo", "See it at work, in a throw-away folder, in a few seconds."),
}


class Told(click.Command):
    """A command whose help keeps the lines of its examples as they are."""

    def __init__(self, *args: Any, **described: Any) -> None:
        super().__init__(*args, **described | {"help": as_written(described.get("help"))})


def as_written(help: str | None) -> str:
    """Help in which the examples are not wrapped: a backspace before a paragraph is click's word for that."""
    return re.sub(r"\n\n( *)(?=Examples?:)", "\n\n\\1\b\n\\1", help or "")


class Listed(click.Group):
    """A group of commands that are told and listed in the order in which they stand."""

    command_class = Told

    def __init__(self, *args: Any, **described: Any) -> None:
        super().__init__(*args, **described | {"help": as_written(described.get("help"))})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See ``click.Group``."""
        del ctx
        return list(self.commands)


class Lazy(click.Group):
    """A group that knows its commands by name and help, and loads one when it runs."""

    def __init__(self, *args: Any, **described: Any) -> None:
        super().__init__(*args, **described | {"help": as_written(described.get("help"))})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See ``click.Group``."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See ``click.Group``."""
        del ctx
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"commonplace.faces.cli.{entry.module}")
        command: click.Command = getattr(module, entry.attribute or cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See ``click.Group``."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name=NAME, message="%(prog)s %(version)s")
@click.option("--store", metavar="STORE", help="A file or a postgresql:// address instead of the settings' store.")
def root(store: str | None) -> None:
    """Persistent memory for AI agents, which their people can read, edit and trust.

    Examples:
      commonplace demo
      commonplace init
      commonplace record add "Use pnpm, not npm" --category decisions
      commonplace recall "which package manager?"

    Exit codes: 0 done, 1 not found or something needs you, 2 not understood, 3 conflict, 4 forbidden, 5 settings,
    6 store or disk, 130 interrupted.
    """
    if store == "":
        raise click.UsageError("--store names nothing; leave it out to use the settings' store")
    if store:  # whatever is opened for this command, and whoever it starts, sees the same
        before = os.environ.get(STORE, "")
        os.environ[STORE] = store
        click.get_current_context().call_on_close(lambda: os.environ.update({STORE: before}))


def run(arguments: Sequence[str]) -> int:
    """Run a command; a mistake in how it was typed is invalid input, said in one line."""
    if COMPLETION in os.environ:  # a shell asks what could be typed next: that is click's own business
        root.main(args=list(arguments), prog_name=NAME)
    try:
        # Not root.main: it takes a reader that has enough for a failure.
        with root.make_context(NAME, list(arguments)) as context:
            return int(root.invoke(context) or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return 0
    except click.ClickException as error:
        raise InvalidInput(_sentence(error)) from error
    except click.Abort:
        raise KeyboardInterrupt from None


def _sentence(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    shown = f"; see `{context.command_path} --help`" if context else ""
    return " ".join(error.format_message().split()).rstrip(".") + shown
