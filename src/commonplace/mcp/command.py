"""``commonplace mcp``: memory for the agents that people already use, over the Model Context Protocol."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from commonplace.agents.surface import Surface
from commonplace.cli.commands import Command
from commonplace.cli.terminal import print_note
from commonplace.install import hint
from commonplace.mcp.stdio import serve
from commonplace.model.errors import InvalidInput
from commonplace.records import records_surface

TOKEN = "COMMONPLACE_MCP_TOKEN"  # noqa: S105 - the name of a variable
HOST, PORT = "127.0.0.1", 8127
KEY_CHARS_MIN = 16  # of a key that people choose themselves


@click.command(cls=Command)
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option("--host", metavar="ADDRESS", help=f"With --http: the address to listen at.  [default: {HOST}]")
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help=f"With --http: the port to listen at.  [default: {PORT}]",
)
@click.option("--no-token", is_flag=True, help="With --http, on loopback only: require no key.")
@click.option("--directory", metavar="DIR", help="Serve the project in this folder.  [default: the current one]")
@click.option("--role", metavar="FILE", help="Serve the memory tools of this role instead.")
@click.option("--pipeline", metavar="FILE", help="Serve the memory tools of an agent in this pipeline instead.")
@click.option(
    "--agent", metavar="NAME", help="With --pipeline: the agent. Otherwise: serve the memory of an intent agent."
)
@click.option("--namespace", metavar="NAME", help="With --agent, without --pipeline: the namespace that it shares.")
def mcp(
    *, over_http: bool, host: str | None, port: int | None, no_token: bool, directory: str | None, role: str | None,
    pipeline: str | None, agent: str | None, namespace: str | None,
) -> None:  # fmt: skip
    """Serve memory to an agent over the Model Context Protocol.

    Hosts start the server themselves and talk to it on standard input and output; it ends with them.  The options
    decide which memory it serves: the project's and your own, a role's, or an agent's.  A model cannot change that.
    With --http it listens on loopback and requires a key: the one in COMMONPLACE_MCP_TOKEN, or a new one that it
    prints once.

    Examples:
      commonplace mcp
      commonplace mcp --directory ~/work/shop
      commonplace mcp --role role.yaml
      commonplace mcp --pipeline release.yml --agent reviewer
      commonplace mcp --agent researcher --namespace research
      commonplace mcp --http --port 8127
    """
    if sum(1 for one in (directory, role, pipeline, namespace) if one is not None) > 1:
        raise InvalidInput("--directory, --role, --pipeline and --namespace exclude each other; give one of them")
    if agent is None and (pipeline is not None or namespace is not None):
        raise InvalidInput("--pipeline and --namespace need --agent")
    if agent is not None and (directory is not None or role is not None):
        raise InvalidInput("--agent goes with --pipeline, with --namespace or alone")
    surface = _surface(directory=directory, role=role, pipeline=pipeline, agent=agent, namespace=namespace)
    if over_http:
        _serve_http(surface, host=host or HOST, port=PORT if port is None else port, no_token=no_token)
        return
    if host is not None or port is not None or no_token:
        raise InvalidInput("--host, --port and --no-token are for --http")
    if os.isatty(0):
        print_note("Waiting for an MCP client on stdin (Ctrl-D to quit); docs/mcp.md describes how to connect one")
    serve(surface)


def _surface(
    *, directory: str | None, role: str | None, pipeline: str | None, agent: str | None, namespace: str | None
) -> Surface:
    """Return what the options name; only that is loaded."""
    if role is not None:
        from commonplace.roles import role_surface  # noqa: PLC0415 - see above

        return role_surface(role)
    if pipeline is not None:
        from commonplace.ci import pipeline_surface  # noqa: PLC0415 - see above

        return pipeline_surface(pipeline, agent or "")
    if agent is not None:
        from commonplace.intents import intent_surface  # noqa: PLC0415 - see above

        return intent_surface(agent, namespace)
    if directory is not None and not os.path.isdir(directory):
        raise InvalidInput(f"{directory!r} is not a folder")
    return records_surface(directory)


def _serve_http(surface: Surface, *, host: str, port: int, no_token: bool) -> None:
    try:
        from commonplace.mcp import http  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InvalidInput(f"{hint('MCP over HTTP needs the extra `mcp`', 'mcp')} ({error})") from error
    http.serve(surface, host=host, port=port, key=None if no_token else _key(http.new_key), notify=print_note)


def _key(new: Callable[[], str]) -> str:
    """Return the key in the environment, or a new one, which is printed once."""
    given = os.environ.get(TOKEN)
    if given is None:
        made = new()
        print_note(f"the key of this server, shown only once: {made}")
        return made
    if len(given) < KEY_CHARS_MIN or not given.isascii() or not given.isprintable() or " " in given:
        raise InvalidInput(f"{TOKEN} must have at least {KEY_CHARS_MIN} printable ASCII characters and no spaces")
    return given
