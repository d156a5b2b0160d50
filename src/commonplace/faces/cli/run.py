"""``commonplace run``: an agent with a past, at the terminal, in one shot, or by itself."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from commonplace.config.places import home
from commonplace.config.role import Role, environment, ephemeral, load, model_settings
from commonplace.domain.errors import InvalidInput, ProviderError
from commonplace.domain.values import Value
from commonplace.engine.text import one_line
from commonplace.faces.cli.commands import Told
from commonplace.faces.cli.exits import ATTENTION, OK
from commonplace.faces.cli.session import counted
from commonplace.faces.cli.terminal import note, say, visible

if TYPE_CHECKING:
    from commonplace.agents.role import Call, Conversation
    from commonplace.agents.role_memory import RoleMemory

PROMPT = """\
You are a helpful assistant with a long-term memory. Save what is worth knowing in later conversations with \
remember(), and what you should always do with learn_procedure(). Search with recall() before you answer what may \
depend on earlier conversations."""
#: What runs if no model is named, by the key that is there.
MODELS = {
    "OPENAI_API_KEY": "openai:gpt-5-mini",
    "ANTHROPIC_API_KEY": "anthropic:claude-haiku-4-5",
    "GOOGLE_API_KEY": "google:gemini-2.5-flash",
    "GEMINI_API_KEY": "google:gemini-2.5-flash",
}
NO_MODEL = (
    "no model is named and no key is set: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GOOGLE_API_KEY, or say --model "
    "PROVIDER:NAME; memory commands, such as `commonplace memory list`, work without one"
)
UNDELEGATED = "this role delegates to other agents, which is not there yet; it runs without that tool"
GREETING = "/help says what you can do here; /quit ends it."
ASKING = "> "
DIM, PLAIN = "\x1b[2m", "\x1b[0m"


@click.command(cls=Told)
@click.argument("role", metavar="[ROLE]", required=False)
@click.option("-p", "--prompt", metavar="TEXT", help="Ask this, write the answer and end; no session is saved.")
@click.option("-i", "--interactive", is_flag=True, help="Talk; what happens too if nothing else is said.")
@click.option("-a", "--autonomous", is_flag=True, help="Work on the prompt until finish_task is called.")
@click.option("--resume", is_flag=True, help="Go on with this agent's newest session.")
@click.option("--no-memory", is_flag=True, help="Remember nothing, and recall nothing.")
@click.option("--model", metavar="PROVIDER:NAME", help="Another model than the role's.")
@click.option("--max-iterations", metavar="N", type=click.IntRange(min=1), help="Steps of an autonomous run.")
@click.option("--token-budget", metavar="N", type=click.IntRange(min=1), help="Tokens of an autonomous run.")
def run(role: str | None, **said: Any) -> int:
    """Run the agent of a role file, or one without a file, with its memory.

    Without a file the agent is called `ephemeral` and remembers in a store of its own.  Answers go to standard output,
    what the agent does with its memory to standard error, a line for each call.

    Examples:
      commonplace run role.yaml -i
      commonplace run role.yaml -i --resume
      commonplace run role.yaml -p "What do you know about me?"
      commonplace run role.yaml -a -p "Tidy up the changelog"
      commonplace run --no-memory
    """
    how = How(**said)
    described = _role(role, how)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what libraries say to programmers; -W and PYTHONWARNINGS show it
    if described.memory is None:
        return _ran(described, None, environment(described, os.environ, home=home(os.environ)), how)
    from commonplace.agents.role_memory import role_memory  # noqa: PLC0415 - --help loads no store

    with role_memory(described) as held:
        return _ran(described, held, held.env, how)


class How(Value):
    """How an agent is to run."""

    prompt: str | None
    interactive: bool
    autonomous: bool
    resume: bool
    no_memory: bool
    model: str | None
    max_iterations: int | None
    token_budget: int | None

    def _check(self) -> None:
        if self.prompt is not None and not self.prompt.strip():
            raise InvalidInput("the prompt is blank")
        if self.autonomous and self.interactive:
            raise InvalidInput("--autonomous works by itself, --interactive with you: say one of them")
        if self.autonomous and self.prompt is None:
            raise InvalidInput("--autonomous needs a task: say it with --prompt")
        if not self.autonomous and (self.max_iterations or self.token_budget):
            raise InvalidInput("--max-iterations and --token-budget are limits of --autonomous")
        if self.resume and self.no_memory:
            raise InvalidInput("--resume needs the memory that --no-memory leaves out")


def _role(file: str | None, how: How) -> Role:
    model = model_settings(how.model, file="commonplace run", path="--model") if how.model else None
    if file is None:
        chosen = model or model_settings(_default_model(os.environ), file="commonplace run", path="--model")
        return ephemeral(chosen, prompt=PROMPT, memory=not how.no_memory)
    described = load(file)
    if model is not None:
        described = described.replace(model=model)
    return described.replace(memory=None) if how.no_memory else described


def _default_model(env: Mapping[str, str]) -> str:
    """The model of the first key that is there, also in the data folder's .env."""
    known = environment(ephemeral(None, prompt=PROMPT), env, home=home(env))
    found = next((model for key, model in MODELS.items() if known.get(key, "").strip()), None)
    if found is None:
        raise ProviderError(NO_MODEL)
    return found


def _ran(described: Role, held: RoleMemory | None, env: Mapping[str, str], how: How) -> int:
    """Run it in the way that was asked for."""
    from commonplace.agents.role import Conversation, RoleAgent  # noqa: PLC0415 - --help runs no agent

    screen = Screen()
    agent = RoleAgent(described, held, env=env, watch=screen.called)
    talk = Conversation(agent, tell=note)
    for sentence in (*(held.notes if held else ()), *([UNDELEGATED] if described.tools else ())):
        note(sentence)
    if how.resume:
        _resumed(talk, screen)
    if how.autonomous:
        return _alone(talk, screen, how)
    if how.prompt is not None and not how.interactive:
        return _once(talk, screen, how.prompt)
    return _together(talk, screen, how.prompt)


def _resumed(talk: Conversation, screen: Screen) -> None:
    count = talk.resume()
    if not count:
        screen.aside("No previous session found.")
        return
    screen.aside(f"Resumed session with {counted(count, 'message')}.")
    if talk.recalls():
        screen.aside("Loaded relevant memories from previous sessions.")


def _once(talk: Conversation, screen: Screen, prompt: str) -> int:
    """One answer; no session is kept of it."""
    import asyncio  # noqa: PLC0415 - --help waits for nobody

    from commonplace.agents.repl import interruptible  # noqa: PLC0415 - see _ran

    try:
        with asyncio.Runner() as runner:
            turn = interruptible(runner, talk.say(prompt, hear=screen.write))
    finally:
        screen.end()
    if turn.cut:
        note("the answer was cut off: the model used up its tokens")
    return OK


def _together(talk: Conversation, screen: Screen, first: str | None) -> int:
    """A conversation, until somebody has enough."""
    from commonplace.agents.repl import Repl  # noqa: PLC0415 - see _ran
    from commonplace.agents.sessions import asked  # noqa: PLC0415

    screen.prepare(asked(talk.history))
    Repl(talk, screen).run(first)
    _closed(talk, screen, "after_session")
    return OK


def _alone(talk: Conversation, screen: Screen, how: How) -> int:
    """A task, until it is done or a limit is reached."""
    import asyncio  # noqa: PLC0415 - see _once

    from commonplace.agents.autonomous import autonomous, capture  # noqa: PLC0415
    from commonplace.agents.repl import interruptible  # noqa: PLC0415

    def step(number: int, of: int) -> None:
        screen.end()
        screen.quiet(f"step {number} of {of}")

    working = autonomous(
        talk, how.prompt or "", steps=how.max_iterations, tokens=how.token_budget, hear=screen.write, step=step
    )
    try:
        with asyncio.Runner() as runner:
            outcome = interruptible(runner, working)
    finally:
        screen.end()
    if outcome.summary is None:
        note(outcome.stopped)
    else:
        capture(talk.agent.held, outcome.summary, session=talk.id, tell=note)
        say(outcome.summary)
    _closed(talk, screen, "after_session", "after_autonomous")
    return ATTENTION if outcome.summary is None else OK


def _closed(talk: Conversation, screen: Screen, *moments: str) -> None:
    if created := talk.close(*moments):
        screen.aside(f"Created {created} semantic memories from episodic data.")


class Screen:
    """The terminal: answers on standard output as they come, everything else on standard error."""

    def __init__(self) -> None:
        self._open = False  # a line of an answer is begun and not ended
        self._asks = sys.stdin is not None and sys.stdin.isatty()
        if hasattr(sys.stdin, "reconfigure"):  # bytes that are no UTF-8 are refused with a sentence, later
            sys.stdin.reconfigure(errors="surrogateescape")

    def prepare(self, earlier: list[str]) -> None:
        """Let lines be edited, with what was said before within reach; nothing of it is written to a file."""
        if not self._asks:
            return
        self.aside(GREETING)
        try:
            import readline  # noqa: PLC0415 - not on every system, and only for conversations
        except ImportError:
            return
        for line in earlier:
            readline.add_history(one_line(line))

    def ask(self) -> str:
        """See ``Terminal``."""
        sys.stdout.flush()
        return input(ASKING if self._asks else "")

    def confirm(self, question: str) -> bool:
        """See ``Terminal``."""
        try:
            return input(f"{question} [y/N]: ").strip().lower() in {"y", "yes"}
        except (EOFError, KeyboardInterrupt):
            self.say("")
            return False

    def write(self, piece: str) -> None:
        """See ``Terminal``."""
        if piece:
            sys.stdout.write(visible(piece))
            sys.stdout.flush()
            self._open = not piece.endswith("\n")

    def end(self) -> None:
        """See ``Terminal``."""
        if self._open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._open = False

    def say(self, text: str) -> None:
        """See ``Terminal``."""
        self.end()
        say(text)

    def note(self, sentence: str) -> None:
        """See ``Terminal``."""
        self.end()
        sys.stdout.flush()
        note(sentence)

    def aside(self, text: str) -> None:
        """Write a line that is no answer."""
        sys.stdout.flush()
        sys.stderr.write(visible(text) + "\n")
        sys.stderr.flush()

    def called(self, call: Call) -> None:
        """Write what an agent did, in one quiet line."""
        self.end()
        self.quiet(str(call))

    def quiet(self, text: str) -> None:
        """Write a line that does not want to be read."""
        line = visible(one_line(text))
        shown = f"{DIM}· {line}{PLAIN}" if sys.stderr.isatty() and "NO_COLOR" not in os.environ else f"· {line}"
        sys.stdout.flush()
        sys.stderr.write(shown + "\n")
        sys.stderr.flush()
