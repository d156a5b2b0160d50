"""The role dialect: one agent in one file, with its model, its prompt, its memory, its tools and its triggers.

``load`` reads the envelope (``apiVersion``, ``kind``, ``metadata``, ``spec``) and the flat form alike.  Nothing is
opened and nobody is asked here; what is unknown is refused with the file, the place in it and what is allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from commonplace.config.paths import is_address
from commonplace.config.settings import Schema, checked
from commonplace.model.binding import Binding, Limit
from commonplace.model.errors import ConfigError
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.roles.envelope import (
    FILE_BYTES,
    METADATA,
    items,
    mapping,
    named,
    needed,
    opened,
    said_in,
    section,
    text,
    text_of,
)
from commonplace.roles.schema import AUTONOMY, GUARDRAILS, MEMORY, MODEL, SECURITY, SHARED, TOOLS, TRIGGERS, Sort
from commonplace.text import strict_yaml

PROVIDERS = ("openai", "anthropic", "google", "ollama", "test")  # test asks nobody: for trying a role out
SPEC = ("role", "model", "memory", "tools", "triggers", "autonomy", "guardrails", "security")
EPHEMERAL = "ephemeral"  # what an agent without a file is called
DOTENV = ".env"
UNREMEMBERING = (
    "is missing, so this role has no memory; add `memory:` with `semantic:` and `max_memories: 1000` below it"
)
MOVED = "is now `semantic.max_memories`: write `semantic:` and below it `max_memories: {0}`"
LANCEDB, POSTGRES = "lancedb", "postgres"  # the other stores than sqlite

_variable = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")


class ModelSettings(Value):
    """Which language model an agent speaks with."""

    provider: str  #: one of PROVIDERS, or any word beside a base_url
    name: str
    base_url: str | None = None  #: another address, which speaks OpenAI's protocol
    api_key_env: str | None = None  #: the variable that holds the key, if not the provider's own
    temperature: float | None = None  #: None: the provider's own
    max_tokens: int | None = None  #: of one answer; None: the provider's own
    timeout_seconds: int = 120

    @property
    def spec(self) -> str:
        """What ``providers.models.model_of`` and ``agents.models.spoken`` call it."""
        if self.provider == "test":
            return "test"
        return f"{self.provider}:{self.name}" if self.provider in PROVIDERS else self.name


class EmbeddingSettings(Value):
    """What a role says of its embedder; blank: it follows the model's provider."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""

    @property
    def said(self) -> bool:
        """Whether the role chooses one; else it is derived, and may fall back on the local one."""
        return bool(self.provider or self.model or self.base_url)


class KindSettings(Value):
    """One kind of memory."""

    enabled: bool = True
    keep: int  #: how many there may be; the oldest go first


class ConsolidationSettings(Value):
    """When and how episodes become facts."""

    enabled: bool = True
    interval: str = "after_session"  #: after_session, after_autonomous or manual
    max_episodes_per_run: int = 20
    model_override: str | None = None  #: PROVIDER:NAME, or a name of the agent's own provider


class MemorySettings(Value):
    """The ``memory`` section, every default filled in."""

    max_sessions: int = 10
    max_resume_messages: int = 20
    store_backend: str = "sqlite"
    store_path: str | None = None  #: None: ``memory/<name>.db`` in the data folder, or ``.lance``
    embeddings: EmbeddingSettings = EmbeddingSettings()
    semantic: KindSettings = KindSettings(keep=1000)
    episodic: KindSettings = KindSettings(keep=500)
    procedural: KindSettings = KindSettings(keep=100)
    consolidation: ConsolidationSettings = ConsolidationSettings()

    @property
    def kinds(self) -> dict[Kind, KindSettings]:
        """The kinds that are switched on."""
        every = {Kind.SEMANTIC: self.semantic, Kind.EPISODIC: self.episodic, Kind.PROCEDURAL: self.procedural}
        return {kind: settings for kind, settings in every.items() if settings.enabled}


class CronTrigger(Value):
    """Runs by the clock."""

    schedule: str  #: five fields
    prompt: str
    timezone: str = "UTC"
    autonomous: bool = False
    type: str = "cron"


class FileWatchTrigger(Value):
    """Runs when a file changes."""

    paths: tuple[str, ...]  #: files or folders, from the role's folder
    extensions: tuple[str, ...] = ()  #: such as ``.md``; none: all
    prompt_template: str = "File changed: {path}"
    debounce_seconds: float = 1.0
    process_existing: bool = False  #: once for each file that is there at the start
    autonomous: bool = False
    type: str = "file_watch"


class WebhookTrigger(Value):
    """Runs when somebody calls."""

    path: str = "/webhook"
    host: str = "127.0.0.1"
    port: int = 8080
    method: str = "POST"
    rate_limit_rpm: int = 60  #: calls in a minute
    secret_env: str | None = None  #: the variable that holds the shared secret; None: no secret
    autonomous: bool = False
    type: str = "webhook"


Trigger: TypeAlias = CronTrigger | FileWatchTrigger | WebhookTrigger


class SharedMemory(Value):
    """A store that several agents have in common."""

    store_path: str
    max_memories: int = 1000
    store_backend: str = "sqlite"  #: one for all of them, whatever their own is


class Delegate(Value):
    """An agent that can be asked for something."""

    name: str
    role_file: str  #: from the role's folder
    description: str = ""


class DelegateTool(Value):
    """The tool by which an agent asks others."""

    agents: tuple[Delegate, ...]
    mode: str = "inline"
    max_depth: int = 3
    timeout_seconds: int = 120
    shared_memory: SharedMemory | None = None
    type: str = "delegate"


class Autonomy(Value):
    """How an agent works by itself."""

    continuation_prompt: str = "Continue with the task. Call finish_task when it is done."
    iteration_delay_seconds: float = 0.0


class Guardrails(Value):
    """What a run may use up."""

    max_iterations: int = 10  #: turns of an autonomous run
    max_tokens_per_run: int = 50_000  #: of one turn
    max_tool_calls: int = 20  #: of one turn
    timeout_seconds: int = 300  #: of one turn
    autonomous_token_budget: int | None = None  #: of a whole autonomous run
    daemon_token_budget: int | None = None  #: of everything that a daemon does


class Role(Value):
    """One agent, as its file describes it."""

    name: str
    description: str = ""
    file: str  #: where it was read from; what an error names
    prompt: str
    model: ModelSettings | None  #: None: it says none, and whoever runs it has to
    memory: MemorySettings | None = None  #: None: the section is missing
    tools: tuple[DelegateTool, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    autonomy: Autonomy = Autonomy()
    guardrails: Guardrails = Guardrails()
    restrict_db_paths: bool = True  #: its store has to lie in the data folder
    flat: bool = False  #: it has no envelope; decides what an error calls its sections

    @property
    def folder(self) -> str:
        """Where its file lies."""
        return os.path.dirname(os.path.abspath(self.file))

    def path(self, section: str) -> str:
        """What a section is called in this file."""
        return section if self.flat else f"spec.{section}"

    def remembering(self) -> MemorySettings:
        """Its memory section; a role that has none is told how to get one."""
        if self.memory is None:
            raise ConfigError(UNREMEMBERING, file=self.file, path=self.path("memory"))
        return self.memory

    def sharing(self, shared: SharedMemory) -> Role:
        """The same role with a store that others use as well: its own settings stay, but where and how much."""
        memory = self.memory or MemorySettings()
        semantic = memory.semantic.replace(keep=shared.max_memories)
        place = {"store_path": shared.store_path, "store_backend": shared.store_backend}
        return self.replace(memory=memory.replace(semantic=semantic, **place))

    def store(self, home: str) -> str:
        """The file of its store, its folder or its address; a relative path is one in the data folder."""
        memory = self.remembering()
        if memory.store_backend == POSTGRES or is_address(memory.store_path or ""):
            return self._address(memory)
        ending = "lance" if memory.store_backend == LANCEDB else "db"
        said = memory.store_path or os.path.join("memory", f"{self.name}.{ending}")
        path = os.path.normpath(os.path.join(home, os.path.expanduser(said)))
        if self.restrict_db_paths and not _inside(path, home):
            reason = (
                f"{said!r} is outside of the data folder {home!r}; `security.tools.restrict_db_paths: false` allows it"
            )
            raise ConfigError(reason, file=self.file, path=self.path("memory.store_path"))
        return path

    def _address(self, memory: MemorySettings) -> str:
        """The address of its database; a file from elsewhere must not send memories away unasked."""
        said = memory.store_path or ""
        if not is_address(said):
            reason = "should be the address of a PostgreSQL database, such as postgresql://host/name"
        elif self.restrict_db_paths:
            reason = "is outside of the data folder; `security.tools.restrict_db_paths: false` allows it"
        else:
            return said
        raise ConfigError(reason, file=self.file, path=self.path("memory.store_path"))

    def scope(self, home: str) -> Scope:
        """Where its memories live: whoever has the same store has the same ones."""
        store = self.store(home)
        if is_address(store):  # its database is called so; one without a name is the role's own
            return Scope.of(("namespace", store.partition("?")[0].partition("://")[2].partition("/")[2] or self.name))
        return Scope.of(("namespace", os.path.splitext(os.path.basename(store))[0]))

    def bind(self, channel: Channel, *, home: str) -> Binding:
        """What comes in by this channel may be kept: the kinds that are on, each within its limit."""
        scope, kinds = self.scope(home), self.remembering().kinds
        return Binding(
            channel=channel,
            writes=dict.fromkeys(kinds, scope),
            also_writes=frozenset({scope}),
            reads=(scope,),
            limits={kind: Limit(keep=settings.keep) for kind, settings in kinds.items()},
        )


def load(file: str) -> Role:
    """Read a role from its file."""
    return read(text_of(file), file=file)


def read(text: str, *, file: str) -> Role:
    """Read a role from the text of its file."""
    return parse(said_in(text, file=file), file=file)


def scaffold(template: str, **values: str) -> str:
    """A template with its ``{names}`` filled in, each value written so that it stays the text that it is."""
    return template.format(**{name: strict_yaml.dump_scalar(value) for name, value in values.items()})


def parse(said: Any, *, file: str) -> Role:
    """Check what a file says, with the envelope or without."""
    flat = isinstance(said, dict) and "spec" not in said
    metadata, spec = _flat(said, file) if flat else opened(said, file, kind="Agent", spec=SPEC)
    within = "" if flat else "spec."

    def settings(name: str, schema: Schema) -> dict[str, Any]:
        return checked(section(spec, name, file, within), schema, file, within=f"{within}{name}.")

    return Role(
        name=named(metadata, file, "" if flat else "metadata."),
        description=text(metadata, "description", file, "" if flat else "metadata."),
        file=file,
        prompt=needed(spec, "role", file, within),
        model=_model(spec.get("model"), file, f"{within}model"),
        memory=_memory(spec.get("memory"), file, f"{within}memory"),
        tools=tuple(_tool(one, file, where) for one, where in items(spec, "tools", file, within)),
        triggers=tuple(_trigger(one, file, where) for one, where in items(spec, "triggers", file, within)),
        autonomy=Autonomy(**settings("autonomy", AUTONOMY)),
        guardrails=Guardrails(**settings("guardrails", GUARDRAILS)),
        restrict_db_paths=settings("security", SECURITY)["tools"]["restrict_db_paths"],
        flat=flat,
    )


def ephemeral(model: ModelSettings | None, *, prompt: str, memory: bool = True) -> Role:
    """The agent of somebody who has no file: it remembers unless told not to."""
    return Role(
        name=EPHEMERAL,
        file=EPHEMERAL,
        prompt=prompt,
        model=model,
        memory=MemorySettings() if memory else None,
        flat=True,
    )


def model_settings(spec: str, *, file: str, path: str = "model") -> ModelSettings:
    """A model by one word: ``openai:gpt-4o-mini``."""
    found = _model(spec, file, path)
    if found is None:
        raise ConfigError("is missing", file=file, path=path)
    return found


def environment(role: Role, env: Mapping[str, str], *, home: str) -> dict[str, str]:
    """The environment of a role: what is set, then ``.env`` beside its file, then the one in the data folder.

    Neither file overrides what is set already.
    """
    merged = dict(env)
    for file in (os.path.join(role.folder, DOTENV), os.path.join(home, DOTENV)):
        for name, value in _dotenv(file).items():
            merged.setdefault(name, value)
    return merged


def _dotenv(file: str) -> dict[str, str]:
    """``NAME=value`` lines, with or without quotes; a file that is not there says nothing."""
    try:
        with open(file, encoding="utf-8") as source:
            lines = source.read(FILE_BYTES).splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=file) from error
    said: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _variable.fullmatch(line.strip())
        if found is None:  # the line itself is not repeated: it may be half a key
            raise ConfigError(f"line {number} is not NAME=value", file=file)
        said[found[1]] = _unquoted(found[2])
    return said


def _unquoted(value: str) -> str:
    quote = value[:1]
    if quote in {"'", '"'} and (end := value.find(quote, 1)) > 0:
        return value[1:end]
    return re.split(r"\s#", value, maxsplit=1)[0].strip()


def _inside(path: str, folder: str) -> bool:
    real, around = os.path.realpath(path), os.path.realpath(folder)
    return real.startswith(around.rstrip(os.sep) + os.sep)


# The parts of a file


def _flat(said: Any, file: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    top = mapping(said, file, "", (*METADATA, *SPEC))
    return {key: top[key] for key in top if key in METADATA}, {key: top[key] for key in top if key in SPEC}


def _model(said: Any, file: str, path: str) -> ModelSettings | None:
    if said is None:
        return None
    if isinstance(said, str):
        provider, _, name = said.partition(":")
        said = {"provider": provider, "name": provider if provider == "test" else name}
    if not isinstance(said, Mapping):
        raise ConfigError(f"should be PROVIDER:NAME, or provider and name below it, not {said!r}", file=file, path=path)
    given = ModelSettings(**checked(said, MODEL, file, within=f"{path}."))
    if given.provider not in PROVIDERS and not given.base_url:
        allowed = f"should be one of {', '.join(PROVIDERS)}, or have a base_url beside it"
        raise ConfigError(f"{allowed}, not {given.provider!r}", file=file, path=f"{path}.provider")
    if not given.name.strip():
        raise ConfigError("is missing", file=file, path=f"{path}.name")
    return given


def _memory(said: Any, file: str, path: str) -> MemorySettings | None:
    if said is None:
        return None
    if not isinstance(said, Mapping):
        raise ConfigError(f"should be lines of `key: value` below it, not {said!r}", file=file, path=path)
    if "max_memories" in said:
        raise ConfigError(MOVED.format(said["max_memories"]), file=file, path=f"{path}.max_memories")
    given = checked(said, MEMORY, file, within=f"{path}.")
    limits = {"semantic": "max_memories", "episodic": "max_episodes", "procedural": "max_procedures"}
    kinds = {
        kind: KindSettings(enabled=given[kind]["enabled"], keep=given[kind][most]) for kind, most in limits.items()
    }
    return MemorySettings(
        **given | kinds | {
            "embeddings": EmbeddingSettings(**given["embeddings"]),
            "consolidation": ConsolidationSettings(**given["consolidation"]),
        }
    )  # fmt: skip


def _typed(said: Mapping[str, Any], file: str, where: str, known: Mapping[str, Sort]) -> tuple[str, dict[str, Any]]:
    """What sort of thing it is, and the rest of it, checked; keys that hold mappings are as they were said."""
    sort = str(said.get("type"))
    if sort not in known:
        raise ConfigError(f"should be one of {', '.join(known)}, not {sort!r}", file=file, path=f"{where}.type")
    schema = known[sort]
    apart = ("type", *schema.lists, *schema.mappings)
    rest = {name: value for name, value in said.items() if name not in apart}
    given = checked(rest, schema.settings, file, within=f"{where}.")
    for name in schema.lists:
        given[name] = said.get(name) or []
        if not isinstance(given[name], list):
            raise ConfigError("should be a list", file=file, path=f"{where}.{name}")
    for name in schema.needed:
        if not given[name]:
            raise ConfigError("is missing", file=file, path=f"{where}.{name}")
    return sort, given


def _trigger(said: Mapping[str, Any], file: str, where: str) -> Trigger:
    sort, given = _typed(said, file, where, TRIGGERS)
    if sort == "cron":
        return CronTrigger(**given)
    if sort == "webhook":
        return WebhookTrigger(**given)
    words = {name: tuple(str(one) for one in given[name]) for name in ("paths", "extensions")}
    return FileWatchTrigger(**given | words)


def _tool(said: Mapping[str, Any], file: str, where: str) -> DelegateTool:
    _, given = _typed(said, file, where, TOOLS)
    shared = section(said, "shared_memory", file, f"{where}.")
    agents = [_delegate(one, file, f"{where}.agents[{number}]") for number, one in enumerate(given["agents"])]
    return DelegateTool(**given | {"agents": tuple(agents), "shared_memory": _shared(shared, file, where)})


def _delegate(said: Any, file: str, where: str) -> Delegate:
    known = mapping(said, file, where, ("name", "role_file", "description"))
    within = f"{where}."
    return Delegate(
        name=needed(known, "name", file, within),
        role_file=needed(known, "role_file", file, within),
        description=text(known, "description", file, within),
    )


def _shared(said: Mapping[str, Any], file: str, where: str) -> SharedMemory | None:
    """A shared store; without a path there is none."""
    given = checked(said, SHARED, file, within=f"{where}.shared_memory.")
    if said and not given["store_path"]:
        raise ConfigError("is missing", file=file, path=f"{where}.shared_memory.store_path")
    return SharedMemory(**given) if given["store_path"] else None
