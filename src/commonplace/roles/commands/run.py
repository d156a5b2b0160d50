"""``commonplace run``: run the agent of a role, the agents of a flow, or an agent without a file."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import click

from commonplace.cli.commands import Command
from commonplace.cli.terminal import print_note
from commonplace.config.paths import home
from commonplace.model.errors import ConfigError, InvalidInput, ProviderError
from commonplace.model.values import Value
from commonplace.roles.dialect import Role, ephemeral, model_settings
from commonplace.roles.flow_dialect import Flow, load
from commonplace.roles.operator import environment

PROMPT = """\
You are a helpful assistant with a long-term memory. Save what is worth knowing in later conversations with \
remember(), and what you should always do with learn_procedure(). Search with recall() before you answer what may \
depend on earlier conversations."""
#: The default model, by the key that is set.
MODELS = {
    "OPENAI_API_KEY": "openai:gpt-5-mini",
    "ANTHROPIC_API_KEY": "anthropic:claude-haiku-4-5",
    "GOOGLE_API_KEY": "google:gemini-2.5-flash",
    "GEMINI_API_KEY": "google:gemini-2.5-flash",
}
NO_MODEL = (
    "no model is named and no key is set: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GOOGLE_API_KEY, or pass --model "
    "PROVIDER:NAME; memory commands, such as `commonplace role list`, work without one"
)
NO_TRIGGERS = "is missing, so a daemon would wait for ever; add `- type: cron` with `schedule:` and `prompt:` below it"
FLOW_NEEDS = "a flow needs something to do: pass --prompt TEXT, or --daemon for the triggers of its agents"


@click.command(cls=Command)
@click.argument("role", metavar="[ROLE]", required=False)
@click.option("-p", "--prompt", metavar="TEXT", help="Answer this prompt and exit; no session is saved.")
@click.option("-i", "--interactive", is_flag=True, help="Start a conversation (default).")
@click.option("-a", "--autonomous", is_flag=True, help="Work on the prompt until finish_task is called.")
@click.option("--daemon", is_flag=True, help="Wait for the role's triggers and run at each, until a signal ends it.")
@click.option("--resume", is_flag=True, help="Resume this agent's newest session.")
@click.option("--no-memory", is_flag=True, help="Run without memory.")
@click.option("--model", metavar="PROVIDER:NAME", help="Use this model instead of the role's.")
@click.option("--max-iterations", metavar="N", type=click.IntRange(min=1), help="Limit the steps of an autonomous run.")
@click.option("--token-budget", metavar="N", type=click.IntRange(min=1), help="Limit the tokens of an autonomous run.")
def run(role: str | None, **options: Any) -> int:
    """Run the agent of a role file, the agents of a flow file, or one without a file, with their memory.

    Without a file the agent is called `ephemeral` and has a store of its own.  Answers go to standard output, tool
    calls to standard error, a line for each.

    Examples:
      commonplace run role.yaml -i
      commonplace run role.yaml -i --resume
      commonplace run role.yaml -p "What do you know about me?"
      commonplace run role.yaml -a -p "Tidy up the changelog"
      commonplace run role.yaml --daemon
      commonplace run flow.yaml -p "Write about green tea"
      commonplace run --no-memory
    """
    chosen = RunOptions(**options)
    described = _load_described(role, chosen)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what libraries say to programmers; -W and PYTHONWARNINGS show it
    return _run_flow(described, chosen) if isinstance(described, Flow) else _run_role(described, chosen)


class RunOptions(Value):
    """The options of the command."""

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
            raise InvalidInput("--autonomous and --interactive exclude each other: choose one of them")
        if self.autonomous and self.prompt is None:
            raise InvalidInput("--autonomous needs a task: say it with --prompt")
        if not self.autonomous and (self.max_iterations or self.token_budget):
            raise InvalidInput("--max-iterations and --token-budget are limits of --autonomous")
        if self.resume and self.no_memory:
            raise InvalidInput("--resume needs the memory that --no-memory leaves out")


def _load_described(file: str | None, options: RunOptions) -> Role | Flow:
    model = model_settings(options.model, file="commonplace run", path="--model") if options.model else None
    if file is None:
        chosen = model or model_settings(_default_model(os.environ), file="commonplace run", path="--model")
        return ephemeral(chosen, prompt=PROMPT, memory=not options.no_memory)
    described = load(file)
    if isinstance(described, Flow):
        return described.with_options(model=model, memory=not options.no_memory)
    if model is not None:
        described = described.replace(model=model)
    return described.replace(memory=None) if options.no_memory else described


def _default_model(env: Mapping[str, str]) -> str:
    """Return the model of the first key that is set, also in the data folder's .env."""
    known = environment(ephemeral(None, prompt=PROMPT), env, home=home(env))
    found = next((model for key, model in MODELS.items() if known.get(key, "").strip()), None)
    if found is None:
        raise ProviderError(NO_MODEL)
    return found


def _run_role(role: Role, options: RunOptions) -> int:
    if options.daemon and not role.triggers:
        raise ConfigError(NO_TRIGGERS, file=role.file, path=role.path("triggers"))
    from commonplace.roles.commands import run_modes as modes  # noqa: PLC0415 - --help loads no agent
    from commonplace.roles.commands.screen import Screen  # noqa: PLC0415
    from commonplace.roles.project import project_memory  # noqa: PLC0415

    screen, remembers = Screen(), not (options.no_memory or options.daemon)
    with (
        project_memory(notify=print_note, wanted=remembers) as project,
        modes.open_watched_agent(role, screen, project=project) as agent,
    ):
        if options.daemon:
            return modes.run_daemon(agent, screen)
        talk = modes.start_conversation(agent, screen, resume=options.resume)
        if options.autonomous:
            limits = {"steps": options.max_iterations, "tokens": options.token_budget}
            return modes.run_autonomously(talk, screen, options.prompt or "", **limits)
        if options.prompt is not None and not options.interactive:
            return modes.run_once(talk, screen, options.prompt)
        return modes.run_conversation(talk, screen, options.prompt)


def _run_flow(flow: Flow, options: RunOptions) -> int:
    if options.interactive or options.autonomous or options.resume:
        raise InvalidInput("a flow runs with --prompt or --daemon: leave out -i, -a and --resume")
    if options.prompt is None and not options.daemon:
        raise InvalidInput(FLOW_NEEDS)
    if options.daemon and not any(member.role.triggers for member in flow.members):
        raise ConfigError("have no triggers, so a daemon would wait for ever", file=flow.file, path="spec.agents")
    from commonplace.roles.commands import run_modes as modes  # noqa: PLC0415 - see _run_role
    from commonplace.roles.commands.screen import Screen  # noqa: PLC0415

    screen = Screen()
    with modes.open_flow(flow, screen) as agents:
        if options.daemon:
            return modes.run_flow_daemon(flow, agents, screen)
        return modes.run_flow_once(flow, agents, screen, options.prompt or "")
