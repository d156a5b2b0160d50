"""``commonplace run``: an agent with a past: at the terminal, in one shot, by itself, as a daemon, or in a flow."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.session import plural
from commonplace.cli.terminal import print_note, print_text, visible
from commonplace.config.paths import home
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput, ProviderError
from commonplace.model.values import Value
from commonplace.roles.dialect import Role, environment, ephemeral, model_settings
from commonplace.roles.flow_dialect import Flow, load
from commonplace.text.cleaning import one_line

if TYPE_CHECKING:
    from commonplace.roles.agent import Call, Conversation, RoleAgent
    from commonplace.roles.daemon import Ran, Run
    from commonplace.roles.triggers import Event

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
NO_TRIGGERS = "is missing, so a daemon would wait for ever; add `- type: cron` with `schedule:` and `prompt:` below it"
FLOW_NEEDS = "a flow needs something to do: say --prompt TEXT, or --daemon for the triggers of its agents"
CREATED = "Created {0} semantic memories from episodic data."
SHOWN_CHARS = 100  # of what a trigger asks
GREETING = "/help says what you can do here; /quit ends it."
ASKING = "> "
DIM, PLAIN = "\x1b[2m", "\x1b[0m"


@click.command(cls=Command)
@click.argument("role", metavar="[ROLE]", required=False)
@click.option("-p", "--prompt", metavar="TEXT", help="Ask this, write the answer and end; no session is saved.")
@click.option("-i", "--interactive", is_flag=True, help="Talk; what happens too if nothing else is said.")
@click.option("-a", "--autonomous", is_flag=True, help="Work on the prompt until finish_task is called.")
@click.option("--daemon", is_flag=True, help="Wait for the role's triggers, and run at each, until a signal ends it.")
@click.option("--resume", is_flag=True, help="Go on with this agent's newest session.")
@click.option("--no-memory", is_flag=True, help="Remember nothing, and recall nothing.")
@click.option("--model", metavar="PROVIDER:NAME", help="Another model than the role's.")
@click.option("--max-iterations", metavar="N", type=click.IntRange(min=1), help="Steps of an autonomous run.")
@click.option("--token-budget", metavar="N", type=click.IntRange(min=1), help="Tokens of an autonomous run.")
def run(role: str | None, **said: Any) -> int:
    """Run the agent of a role file, the agents of a flow file, or one without a file, with their memory.

    Without a file the agent is called `ephemeral` and remembers in a store of its own.  Answers go to standard output,
    what the agent does with its memory to standard error, a line for each call.

    Examples:
      commonplace run role.yaml -i
      commonplace run role.yaml -i --resume
      commonplace run role.yaml -p "What do you know about me?"
      commonplace run role.yaml -a -p "Tidy up the changelog"
      commonplace run role.yaml --daemon
      commonplace run flow.yaml -p "Write about green tea"
      commonplace run --no-memory
    """
    how = How(**said)
    described = _described(role, how)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what libraries say to programmers; -W and PYTHONWARNINGS show it
    screen = Screen()
    if isinstance(described, Flow):
        return _flow(described, screen, how)
    if how.daemon and not described.triggers:
        raise ConfigError(NO_TRIGGERS, file=described.file, path=described.path("triggers"))
    with _agent(described, screen) as agent:
        return _daemon(agent, screen) if how.daemon else _ran(agent, screen, how)


class How(Value):
    """How an agent is to run."""

    prompt: str | None
    interactive: bool
    autonomous: bool
    daemon: bool
    resume: bool
    no_memory: bool
    model: str | None
    max_iterations: int | None
    token_budget: int | None

    def _check(self) -> None:
        if self.prompt is not None and not self.prompt.strip():
            raise InvalidInput("the prompt is blank")
        if self.daemon and (self.prompt or self.interactive or self.autonomous or self.resume):
            raise InvalidInput("--daemon waits for its triggers: leave out --prompt, -i, -a and --resume")
        if self.autonomous and self.interactive:
            raise InvalidInput("--autonomous works by itself, --interactive with you: say one of them")
        if self.autonomous and self.prompt is None:
            raise InvalidInput("--autonomous needs a task: say it with --prompt")
        if not self.autonomous and (self.max_iterations or self.token_budget):
            raise InvalidInput("--max-iterations and --token-budget are limits of --autonomous")
        if self.resume and self.no_memory:
            raise InvalidInput("--resume needs the memory that --no-memory leaves out")


def _described(file: str | None, how: How) -> Role | Flow:
    model = model_settings(how.model, file="commonplace run", path="--model") if how.model else None
    if file is None:
        chosen = model or model_settings(_default_model(os.environ), file="commonplace run", path="--model")
        return ephemeral(chosen, prompt=PROMPT, memory=not how.no_memory)
    described = load(file)
    if isinstance(described, Flow):
        return described.changed(model=model, memory=not how.no_memory)
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


@contextmanager
def _agent(described: Role, screen: Screen, name: str = "") -> Iterator[RoleAgent]:
    """The agent of a role, with its memory open; ``name`` is what a flow calls it."""
    from commonplace.roles.agent import RoleAgent, catch_up  # noqa: PLC0415
    from commonplace.roles.delegate import helpers, targets  # noqa: PLC0415 - --help loads no agent
    from commonplace.roles.memory import role_memory  # noqa: PLC0415

    def watch(call: Call) -> None:
        screen.called(call if call.agent or not name else call.replace(agent=name))

    asked = helpers(targets(described), env=os.environ, watch=watch, tell=print_note)
    if described.memory is None:
        env = environment(described, os.environ, home=home(os.environ))
        yield RoleAgent(described, env=env, watch=watch, helpers=asked)
        return
    with role_memory(described) as held:
        agent = RoleAgent(described, held, env=held.env, watch=watch, helpers=asked)
        for sentence in held.notes:
            print_note(f"{name}: {sentence}" if name else sentence)
        if count := catch_up(held, tell=print_note):
            screen.quiet(f"{plural(count, 'text')} that had no vector yet got one")
        yield agent


def _ran(agent: RoleAgent, screen: Screen, how: How) -> int:
    """Run it in the way that was asked for."""
    from commonplace.roles.agent import Conversation  # noqa: PLC0415 - see _agent

    talk = Conversation(agent, tell=print_note)
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
    screen.aside(f"Resumed session with {plural(count, 'message')}.")
    if talk.recalls():
        screen.aside("Loaded relevant memories from previous sessions.")


def _once(talk: Conversation, screen: Screen, prompt: str) -> int:
    """One answer; no session is kept of it."""
    import asyncio  # noqa: PLC0415 - --help waits for nobody

    from commonplace.roles.repl import interruptible  # noqa: PLC0415 - see _ran

    try:
        with asyncio.Runner() as runner:
            turn = interruptible(runner, talk.say(prompt, hear=screen.write))
    finally:
        screen.end()
    if turn.cut:
        print_note("the answer was cut off: the model used up its tokens")
    return OK


def _together(talk: Conversation, screen: Screen, first: str | None) -> int:
    """A conversation, until somebody has enough."""
    from commonplace.roles.repl import Repl  # noqa: PLC0415 - see _ran
    from commonplace.roles.sessions import asked  # noqa: PLC0415

    screen.prepare(asked(talk.history))
    Repl(talk, screen).run(first)
    _closed(talk, screen, "after_session")
    return OK


def _alone(talk: Conversation, screen: Screen, how: How) -> int:
    """A task, until it is done or a limit is reached."""
    import asyncio  # noqa: PLC0415 - see _once

    from commonplace.roles.autonomous import autonomous, capture  # noqa: PLC0415
    from commonplace.roles.repl import interruptible  # noqa: PLC0415

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
        print_note(outcome.stopped)
    else:
        capture(talk.agent.held, outcome.summary, session=talk.id, tell=print_note)
        print_text(outcome.summary)
    _closed(talk, screen, "after_session", "after_autonomous")
    return ATTENTION if outcome.summary is None else OK


def _closed(talk: Conversation, screen: Screen, *moments: str) -> None:
    if created := talk.close(*moments):
        screen.aside(CREATED.format(created))


def _daemon(agent: RoleAgent, screen: Screen) -> int:
    """Wait for triggers, until a signal ends it."""
    from commonplace.roles.daemon import Worker  # noqa: PLC0415 - see _agent

    worker = Worker(agent, tell=screen.note, hear=screen.write)

    async def run(event: Event) -> None:
        try:
            ran = await worker.run(event)
        finally:
            screen.end()
        if event.autonomous and ran.said is not None:
            screen.say(ran.said)
        _after(ran, screen)

    return _served([(agent, "")], run, screen)


def _served(agents: Sequence[tuple[RoleAgent, str]], run: Run, screen: Screen) -> int:
    """Let the triggers of agents run something."""
    import asyncio  # noqa: PLC0415 - see _once

    from commonplace.engine.memory import now_utc  # noqa: PLC0415
    from commonplace.roles.daemon import Daemon, served  # noqa: PLC0415 - see _agent
    from commonplace.roles.triggers import sources  # noqa: PLC0415

    async def told(event: Event) -> None:
        who = f"{event.agent}: {event.trigger}" if event.agent else event.trigger
        asked = one_line(event.prompt)
        screen.quiet(f"{who}: {asked[: SHOWN_CHARS - 3] + '...' if len(asked) > SHOWN_CHARS else asked}")
        await run(event)

    every = [
        source
        for agent, name in agents
        for source in sources(
            agent.role, home=home(os.environ), env=agent.env, clock=now_utc, sleep=asyncio.sleep, agent=name
        )
    ]
    served(Daemon(every, told, tell=screen.note, say=screen.aside))
    return OK


def _after(ran: Ran, screen: Screen) -> None:
    if ran.stopped:
        screen.note(ran.stopped)
    if ran.created:
        screen.aside(CREATED.format(ran.created))


def _flow(flow: Flow, screen: Screen, how: How) -> int:
    """Agents that hand on what they say: once, or whenever one of their triggers says so."""
    if how.interactive or how.autonomous or how.resume:
        raise InvalidInput("a flow runs with --prompt or --daemon: leave out -i, -a and --resume")
    if how.prompt is None and not how.daemon:
        raise InvalidInput(FLOW_NEEDS)
    from commonplace.roles.flow import agreeing  # noqa: PLC0415 - see _agent

    if how.daemon and not any(member.role.triggers for member in flow.members):
        raise ConfigError("have no triggers, so a daemon would wait for ever", file=flow.file, path="spec.agents")
    with ExitStack() as opened:
        agents = {
            member.name: opened.enter_context(_agent(member.role, screen, member.name)) for member in flow.members
        }
        agreeing(flow, {name: agent.held for name, agent in agents.items() if agent.held})
        return _flow_daemon(flow, agents, screen) if how.daemon else _flow_once(flow, agents, screen, how.prompt or "")


def _flow_once(flow: Flow, agents: Mapping[str, RoleAgent], screen: Screen, prompt: str) -> int:
    import asyncio  # noqa: PLC0415 - see _once

    from commonplace.roles.agent import Conversation  # noqa: PLC0415
    from commonplace.roles.flow import handed_on  # noqa: PLC0415 - see _agent
    from commonplace.roles.repl import interruptible  # noqa: PLC0415

    async def ask(name: str, prompt: str) -> str:
        turn = await Conversation(agents[name], tell=print_note).say(prompt)
        screen.quiet(f"{name} has answered")
        return turn.output

    with asyncio.Runner() as runner:
        _say_all(interruptible(runner, handed_on(flow, prompt, ask)), screen)
    return OK


def _flow_daemon(flow: Flow, agents: Mapping[str, RoleAgent], screen: Screen) -> int:
    from commonplace.roles.daemon import Worker  # noqa: PLC0415 - see _agent
    from commonplace.roles.flow import handed_on  # noqa: PLC0415

    workers = {name: Worker(agent, tell=screen.note) for name, agent in agents.items()}

    async def run(event: Event) -> None:
        async def ask(name: str, prompt: str) -> str:
            alone = event.autonomous and name == event.agent
            ran = await workers[name].run(event.replace(agent=name, prompt=prompt, autonomous=alone))
            _after(ran.replace(stopped=""), screen)
            if ran.said is None:
                raise Forbidden(f"agent {name!r} {ran.stopped}")
            return ran.said

        _say_all(await handed_on(flow, event.prompt, ask, start=event.agent), screen)

    return _served([(agent, name) for name, agent in agents.items()], run, screen)


def _say_all(said: Mapping[str, str], screen: Screen) -> None:
    for name, text in said.items():
        screen.say(f"{name}:\n{text}" if len(said) > 1 else text)


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
        print_text(text)

    def note(self, sentence: str) -> None:
        """See ``Terminal``."""
        self.end()
        sys.stdout.flush()
        print_note(sentence)

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
