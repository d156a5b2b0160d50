"""``commonplace init --template``: a role.yaml to start from, which runs as it is."""

from __future__ import annotations

import os

from commonplace.cli.terminal import print_json, print_text
from commonplace.model.errors import ConfigError, InvalidInput
from commonplace.roles.dialect import read, scaffold

FILE = "role.yaml"
ROLE_MODEL = "openai:gpt-4o-mini"
TEMPLATES = ("memory",)

_MEMORY = """\
# An agent that remembers.  `commonplace run role.yaml -i` talks with it.
apiVersion: commonplace/v1
kind: Agent
metadata:
  name: {name}
  description: Agent with memory
spec:
  role: |
    You are a helpful assistant with long-term memory.
    Use the recall() tool to search your memories before answering.
    Use the remember() tool to save important facts.
    Use the list_memories() tool when you are asked what you know.
    Use the learn_procedure() tool to record patterns that you should follow.
  model:
    provider: {provider}
    name: {model}
  memory:
    max_sessions: 10  # conversations that --resume can go back to
    max_resume_messages: 20
    semantic:
      max_memories: 1000
    episodic:
      max_episodes: 500
    procedural:
      max_procedures: 100
    consolidation:
      enabled: true
      interval: after_session  # or after_autonomous, manual
"""


def init_role(name: str | None, template: str | None, model: str | None, *, as_json: bool) -> None:
    """Write role.yaml here; one that is there stays."""
    if template not in TEMPLATES:
        raise InvalidInput(f"there is no template {template!r}; --template takes {', '.join(TEMPLATES)}")
    if not (name or "").strip():
        raise InvalidInput("an agent needs a name: --name assistant")
    provider, _, called = (model or ROLE_MODEL).partition(":")
    text = scaffold(_MEMORY, name=name or "", provider=provider, model=called)
    try:
        role = read(text, file=FILE)
    except ConfigError as error:
        raise InvalidInput(f"{error.path}: {error.reason}") from error
    try:
        with open(FILE, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidInput(f"{os.path.abspath(FILE)!r} is there already; nothing was written") from None
    if as_json:
        print_json({"file": os.path.abspath(FILE), "name": role.name})
    else:
        print_text(f"Made {FILE} for {role.name}; `commonplace run {FILE} -i` talks with it")
