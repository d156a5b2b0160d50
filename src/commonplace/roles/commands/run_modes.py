"""The modes of running agents: one answer, a conversation, a task, a daemon, a flow.  Each returns an exit code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from commonplace.agents.loop import ObservedToolCall
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.terminal import print_note, print_text
from commonplace.config.paths import home
from commonplace.engine.memory import now_utc
from commonplace.model.errors import Forbidden
from commonplace.roles.agent import RoleAgent, open_agent
from commonplace.roles.autonomous import capture, work
from commonplace.roles.commands.repl import Repl, run_interruptible
from commonplace.roles.commands.screen import Screen
from commonplace.roles.conversation import Conversation
from commonplace.roles.daemon import Daemon, Run, Worker, WorkerRun, serve
from commonplace.roles.delegate import delegates, targets
from commonplace.roles.dialect import Role
from commonplace.roles.flow import check_shared_embedder, run_flow
from commonplace.roles.flow_dialect import Flow
from commonplace.roles.operator import require_trusted_flow, require_trusted_triggers
from commonplace.roles.project import ProjectMemory
from commonplace.roles.sessions import user_texts
from commonplace.roles.triggers import TriggerEvent, sources
from commonplace.text.cleaning import one_line, plural

CREATED = "Created {0} semantic memories from episodic data."
SHOWN_CHARS = 100  # of a trigger's prompt
TRUNCATED = "the answer was cut off: the model used up its tokens"


@contextmanager
def open_watched_agent(
    role: Role, screen: Screen, name: str = "", *, project: ProjectMemory | None = None
) -> Iterator[RoleAgent]:
    """Open the agent of a role with its memory, and that of the project; ``name`` is its name in a flow."""

    def watch(call: ObservedToolCall) -> None:
        screen.print_call(call if call.agent or not name else call.replace(agent=name))

    below = delegates(targets(role), env=os.environ, watch=watch, notify=print_note)
    with open_agent(role, env=os.environ, watch=watch, delegates=below, project=project) as agent:
        for sentence in agent.notes:
            print_note(f"{name}: {sentence}" if name else sentence)
        if agent.held and (count := agent.held.catch_up(notify=print_note)):
            screen.print_dim(f"{plural(count, 'text')} that had no vector yet got one")
        yield agent


def start_conversation(agent: RoleAgent, screen: Screen, *, resume: bool) -> Conversation:
    """Start a conversation, with the messages of the newest session if it is resumed."""
    talk = Conversation(agent, notify=print_note)
    if not resume:
        return talk
    count = talk.resume()
    screen.print_note(f"Resumed session with {plural(count, 'message')}." if count else "No previous session found.")
    if count and talk.recalls():
        screen.print_note("Loaded relevant memories from previous sessions.")
    return talk


def run_once(talk: Conversation, screen: Screen, prompt: str) -> int:
    """Print one answer; no session is saved."""
    try:
        with asyncio.Runner() as runner:
            reply = run_interruptible(runner, talk.say(prompt, on_text=screen.write))
    finally:
        screen.end()
    if reply.truncated:
        print_note(TRUNCATED)
    return OK


def run_conversation(talk: Conversation, screen: Screen, first: str | None) -> int:
    """Converse until the user ends it."""
    screen.prepare(user_texts(talk.history))
    Repl(talk, screen).run(first)
    _close(talk, screen, "after_session")
    return OK


def run_autonomously(talk: Conversation, screen: Screen, task: str, *, steps: int | None, tokens: int | None) -> int:
    """Work on a task until it is done or a limit is reached."""

    def step(number: int, of: int) -> None:
        screen.end()
        screen.print_dim(f"step {number} of {of}")

    try:
        with asyncio.Runner() as runner:
            working = work(talk, task, steps=steps, tokens=tokens, on_text=screen.write, on_step=step)
            ended = run_interruptible(runner, working)
    finally:
        screen.end()
    if ended.summary is None:
        print_note(ended.stopped)
    else:
        capture(talk.agent.held, ended.summary, session=talk.id, notify=print_note)
        print_text(ended.summary)
    _close(talk, screen, "after_session", "after_autonomous")
    return ATTENTION if ended.summary is None else OK


def _close(talk: Conversation, screen: Screen, *moments: str) -> None:
    if created := talk.close(*moments):
        screen.print_note(CREATED.format(created))


def run_daemon(agent: RoleAgent, screen: Screen) -> int:
    """Wait for triggers, until a signal ends it."""
    worker = Worker(agent, notify=screen.warn, on_text=screen.write)

    async def run(event: TriggerEvent) -> None:
        try:
            ran = await worker.run(event)
        finally:
            screen.end()
        if event.autonomous and ran.output is not None:
            screen.say(ran.output)
        _report(ran, screen)

    return _serve([(agent, "")], run, screen)


def _serve(agents: Sequence[tuple[RoleAgent, str]], run: Run, screen: Screen) -> int:
    """Run something at every trigger of these agents."""

    async def announce(event: TriggerEvent) -> None:
        who = f"{event.agent}: {event.trigger}" if event.agent else event.trigger
        prompt = one_line(event.prompt)
        screen.print_dim(f"{who}: {prompt[: SHOWN_CHARS - 3] + '...' if len(prompt) > SHOWN_CHARS else prompt}")
        await run(event)

    for agent, _ in agents:
        require_trusted_triggers(agent.role, os.environ)
    every = [
        source
        for agent, name in agents
        for source in sources(
            agent.role, home=home(os.environ), env=agent.env, clock=now_utc, sleep=asyncio.sleep, agent=name
        )
    ]
    serve(Daemon(every, announce, notify=screen.warn, announce=screen.print_note))
    return OK


def _report(ran: WorkerRun, screen: Screen) -> None:
    if ran.stopped:
        screen.warn(ran.stopped)
    if ran.created:
        screen.print_note(CREATED.format(ran.created))


@contextmanager
def open_flow(flow: Flow, screen: Screen) -> Iterator[Mapping[str, RoleAgent]]:
    """Open the agents of a flow with their memories."""
    require_trusted_flow(flow, os.environ)
    with ExitStack() as opened:
        agents = {
            member.name: opened.enter_context(open_watched_agent(member.role, screen, member.name))
            for member in flow.members
        }
        check_shared_embedder(flow, {name: agent.held for name, agent in agents.items() if agent.held})
        yield agents


def run_flow_once(flow: Flow, agents: Mapping[str, RoleAgent], screen: Screen, prompt: str) -> int:
    """Run a flow with one prompt."""

    async def ask(name: str, prompt: str) -> str:
        reply = await Conversation(agents[name], notify=print_note).say(prompt)
        screen.print_dim(f"{name} has answered")
        return reply.output

    with asyncio.Runner() as runner:
        screen.print_answers(run_interruptible(runner, run_flow(flow, prompt, ask)))
    return OK


def run_flow_daemon(flow: Flow, agents: Mapping[str, RoleAgent], screen: Screen) -> int:
    """Run a flow at every trigger of its agents, from that agent on."""
    workers = {name: Worker(agent, notify=screen.warn) for name, agent in agents.items()}

    async def run(event: TriggerEvent) -> None:
        async def ask(name: str, prompt: str) -> str:
            alone = event.autonomous and name == event.agent
            ran = await workers[name].run(event.replace(agent=name, prompt=prompt, autonomous=alone))
            _report(ran.replace(stopped=""), screen)
            if ran.output is None:
                raise Forbidden(f"agent {name!r} {ran.stopped}")
            return ran.output

        screen.print_answers(await run_flow(flow, event.prompt, ask, start=event.agent))

    return _serve([(agent, name) for name, agent in agents.items()], run, screen)
