"""The role dialect: one agent in one file, with its model, its prompt, its memory, its tools and its triggers.

``load`` reads the envelope (``apiVersion``, ``kind``, ``metadata``, ``spec``) and the flat form alike.  Nothing is
opened and no model is called here; an unknown key is refused with the file, the place in it and what is allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from commonplace.config.decode import FILE_BYTES, At, ConfigBlock, Misfit, Required, decode, parse_yaml, read_yaml
from commonplace.config.paths import is_address
from commonplace.files import disk
from commonplace.model.binding import Binding, Limit
from commonplace.model.errors import ConfigError
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.text import strict_yaml

PROVIDERS = ("openai", "anthropic", "google", "ollama", "test")  # test calls no model: for trying a role out
EPHEMERAL = "ephemeral"  # what an agent without a file is called
DOTENV = ".env"
NO_MEMORY = "is missing, so this role has no memory; add `memory:` with `semantic:` and `max_memories: 1000` below it"
MOVED = "is now `semantic.max_memories`: write `semantic:` and below it `max_memories: {0}`"
LANCEDB, POSTGRES = "lancedb", "postgres"  # the other stores than sqlite

_variable = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")

Name = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$",
        description="letters, digits, `-`, `_` and `.`, at most 100 of them",
    ),
]  #: a name that can be part of a file's
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Seconds = Annotated[int, Meta(ge=1, le=86_400)]
Delay = Annotated[float, Meta(ge=0, le=86_400)]
Budget = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Backend: TypeAlias = Literal["sqlite", "lancedb", "postgres"]


class ModelSettings(ConfigBlock):
    """Which language model an agent calls."""

    provider: str = ""  #: one of PROVIDERS, or any word together with a base_url
    name: str = ""
    base_url: str | None = None  #: another address, which speaks OpenAI's protocol
    api_key_env: str | None = None  #: the variable that holds the key, if not the provider's own
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None  #: None: the provider's own
    max_tokens: Count | None = None  #: of one answer; None: the provider's own
    timeout_seconds: Annotated[int, Meta(ge=1, le=3600)] = 120

    def __post_init__(self) -> None:
        """Check the provider and the name, which only make sense together with the address."""
        if self.provider not in PROVIDERS and not self.base_url:
            allowed = f"should be one of {', '.join(PROVIDERS)}, or come with a base_url"
            raise Misfit("provider", f"{allowed}, not {self.provider!r}")
        if not self.name.strip():
            raise Misfit("name", "is missing")

    @classmethod
    def expand(cls, text: str) -> Any:
        """Read the short form, such as ``openai:gpt-4o-mini``."""
        provider, _, name = text.partition(":")
        return {"provider": provider, "name": provider if provider == "test" else name}

    @property
    def spec(self) -> str:
        """What ``providers.models.model_of`` and ``agents.models.spoken`` call it."""
        if self.provider == "test":
            return "test"
        return f"{self.provider}:{self.name}" if self.provider in PROVIDERS else self.name


class EmbeddingSettings(ConfigBlock):
    """The embedder of a role; blank: that of the model's provider."""

    provider: Literal["", "local", "onnx", "openai", "anthropic", "google", "ollama"] = ""
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""

    @property
    def is_set(self) -> bool:
        """Whether the role chooses one; else it is derived, and may fall back on the local one."""
        return bool(self.provider or self.model or self.base_url)


class KindSettings(ConfigBlock):
    """One kind of memory; each kind has its own word for ``keep``."""

    enabled: bool = True
    keep: Count  #: how many there may be; the oldest go first


class SemanticSettings(KindSettings):
    """Facts, and the tool ``remember``."""

    keep: Count = field(name="max_memories", default=1000)


class EpisodicSettings(KindSettings):
    """What happened, and the tool ``record_episode``."""

    keep: Count = field(name="max_episodes", default=500)


class ProceduralSettings(KindSettings):
    """How things are done, and the tool ``learn_procedure``."""

    keep: Count = field(name="max_procedures", default=100)


class ConsolidationSettings(ConfigBlock):
    """When and how episodes become facts."""

    enabled: bool = True
    interval: Literal["after_session", "after_autonomous", "manual"] = "after_session"
    max_episodes_per_run: Annotated[int, Meta(ge=1, le=1000)] = 20
    model_override: str | None = None  #: PROVIDER:NAME, or a name of the agent's own provider


class MemorySettings(ConfigBlock):
    """The ``memory`` section, every default filled in."""

    max_sessions: Count = 10
    max_resume_messages: Count = 20
    store_backend: Backend = "sqlite"
    store_path: str | None = None  #: None: ``memory/<name>.db`` in the data folder, or ``.lance``
    embeddings: EmbeddingSettings = EmbeddingSettings()
    episodic: EpisodicSettings = EpisodicSettings()
    semantic: SemanticSettings = SemanticSettings()
    procedural: ProceduralSettings = ProceduralSettings()
    consolidation: ConsolidationSettings = ConsolidationSettings()

    @property
    def kinds(self) -> dict[Kind, KindSettings]:
        """The kinds that are switched on."""
        every = {Kind.SEMANTIC: self.semantic, Kind.EPISODIC: self.episodic, Kind.PROCEDURAL: self.procedural}
        return {kind: settings for kind, settings in every.items() if settings.enabled}


class CronTrigger(ConfigBlock, tag_field="type", tag="cron"):
    """Runs by the clock."""

    type: ClassVar[str] = "cron"
    schedule: Required  #: five fields
    prompt: Required
    timezone: str = "UTC"
    autonomous: bool = False


class FileWatchTrigger(ConfigBlock, tag_field="type", tag="file_watch"):
    """Runs when a file changes."""

    type: ClassVar[str] = "file_watch"
    paths: Annotated[tuple[str, ...], Meta(min_length=1)]  #: files or folders, from the role's folder
    extensions: tuple[str, ...] = ()  #: such as ``.md``; none: all
    prompt_template: str = "File changed: {path}"
    debounce_seconds: Delay = 1.0
    process_existing: bool = False  #: also once for each file that exists at the start
    autonomous: bool = False


class WebhookTrigger(ConfigBlock, tag_field="type", tag="webhook"):
    """Runs when an HTTP request comes in."""

    type: ClassVar[str] = "webhook"
    path: str = "/webhook"
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=1, le=65_535)] = 8080
    method: Literal["POST", "PUT"] = "POST"
    rate_limit_rpm: Annotated[int, Meta(ge=1, le=100_000)] = 60  #: requests in a minute
    secret_env: str | None = None  #: the variable that holds the shared secret; None: no secret
    autonomous: bool = False


Trigger: TypeAlias = CronTrigger | FileWatchTrigger | WebhookTrigger


class SharedMemory(ConfigBlock):
    """A store that several agents have in common."""

    store_path: Required
    max_memories: Count = 1000
    store_backend: Backend = "sqlite"  #: replaces the backend of each of them


class Delegate(ConfigBlock):
    """An agent that can be called."""

    name: Required
    role_file: Required  #: from the role's folder
    description: str = ""


class DelegateTool(ConfigBlock, tag_field="type", tag="delegate"):
    """The tool by which an agent calls others."""

    type: ClassVar[str] = "delegate"
    agents: Annotated[tuple[Delegate, ...], Meta(min_length=1)]
    mode: Literal["inline"] = "inline"
    max_depth: Annotated[int, Meta(ge=1, le=20)] = 3
    timeout_seconds: Seconds = 120
    shared_memory: SharedMemory | None = None


class Autonomy(ConfigBlock):
    """How an autonomous agent works."""

    continuation_prompt: str = "Continue with the task. Call finish_task when it is done."
    iteration_delay_seconds: Delay = 0.0


class Guardrails(ConfigBlock):
    """What a run may use up."""

    max_iterations: Annotated[int, Meta(ge=1, le=10_000)] = 10  #: turns of an autonomous run
    max_tokens_per_run: Annotated[int, Meta(ge=1, le=100_000_000)] = 50_000  #: of one turn
    max_tool_calls: Annotated[int, Meta(ge=1, le=100_000)] = 20  #: of one turn
    timeout_seconds: Seconds = 300  #: of one turn
    autonomous_token_budget: Budget | None = None  #: of a whole autonomous run
    daemon_token_budget: Budget | None = None  #: of everything that a daemon does


class ToolSecurity(ConfigBlock):
    """What tools may reach."""

    restrict_db_paths: bool = True  #: the store has to lie in the data folder


class Security(ConfigBlock):
    """What an agent may reach."""

    tools: ToolSecurity = ToolSecurity()


class Spec(ConfigBlock):
    """What an agent is: the ``spec`` of its file."""

    prompt: Required = field(name="role")
    model: Annotated[ModelSettings, Meta(description="PROVIDER:NAME, or provider and name below it")] | None = None
    memory: MemorySettings | None = None  #: None: the section is missing
    tools: tuple[DelegateTool, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    autonomy: Autonomy = Autonomy()
    guardrails: Guardrails = Guardrails()
    security: Security = Security()


class Metadata(ConfigBlock):
    """What an agent or a flow is called; the last three keys are not used here."""

    name: Name
    description: str = ""
    tags: Any = None
    author: Any = None
    version: Any = None


class Envelope(ConfigBlock):
    """What is around the spec of a file."""

    version: Literal["commonplace/v1", "initrunner/v1"] = field(name="apiVersion", default="commonplace/v1")


class AgentFile(Envelope):
    """A role file with its envelope."""

    kind: Literal["Agent"] = "Agent"
    metadata: Metadata
    spec: Spec


class FlatFile(Spec, kw_only=False):  # its own keys are listed first
    """A role file without an envelope: the keys of ``Metadata`` are next to those of the spec."""

    name: Name
    description: str = ""
    tags: Any = None
    author: Any = None
    version: Any = None


class Role(Spec):
    """One agent, as its file describes it."""

    name: str
    description: str = ""
    file: str  #: where it was read from; what an error names
    flat: bool = False  #: it has no envelope; decides what an error calls its sections

    @property
    def folder(self) -> str:
        """Where its file lies."""
        return os.path.dirname(os.path.abspath(self.file))

    def path(self, section: str) -> str:
        """What a section is called in this file."""
        return section if self.flat else f"spec.{section}"

    def memory_settings(self) -> MemorySettings:
        """Its memory section.  Raises ``ConfigError`` with what to add if there is none."""
        if self.memory is None:
            raise ConfigError(NO_MEMORY, file=self.file, path=self.path("memory"))
        return self.memory

    def with_shared_memory(self, shared: SharedMemory) -> Role:
        """The same role with a store that others use as well: its own settings stay, but where and how much."""
        memory = self.memory or MemorySettings()
        semantic = memory.semantic.replace(keep=shared.max_memories)
        place = {"store_path": shared.store_path, "store_backend": shared.store_backend}
        return self.replace(memory=memory.replace(semantic=semantic, **place))

    def store(self, home: str) -> str:
        """The file of its store, its folder or its address; a relative path is one in the data folder."""
        memory = self.memory_settings()
        if memory.store_backend == POSTGRES or is_address(memory.store_path or ""):
            return self._address(memory)
        ending = "lance" if memory.store_backend == LANCEDB else "db"
        named = memory.store_path or os.path.join("memory", f"{self.name}.{ending}")
        path = os.path.normpath(os.path.join(home, os.path.expanduser(named)))
        if self.security.tools.restrict_db_paths and not _is_inside(path, home):
            reason = (
                f"{named!r} is outside of the data folder {home!r}; `security.tools.restrict_db_paths: false` allows it"
            )
            raise ConfigError(reason, file=self.file, path=self.path("memory.store_path"))
        return path

    def _address(self, memory: MemorySettings) -> str:
        """The address of its database; a file from elsewhere must not send memories away unasked."""
        address = memory.store_path or ""
        if not is_address(address):
            reason = "should be the address of a PostgreSQL database, such as postgresql://host/name"
        elif self.security.tools.restrict_db_paths:
            reason = "is outside of the data folder; `security.tools.restrict_db_paths: false` allows it"
        else:
            return address
        raise ConfigError(reason, file=self.file, path=self.path("memory.store_path"))

    def scope(self, home: str) -> Scope:
        """The scope of its memories: roles with the same store share it."""
        store = self.store(home)
        if is_address(store):  # its database is called so; one without a name is the role's own
            return Scope.of(("namespace", store.partition("?")[0].partition("://")[2].partition("/")[2] or self.name))
        return Scope.of(("namespace", os.path.splitext(os.path.basename(store))[0]))

    def bind(self, channel: Channel, *, home: str) -> Binding:
        """What a caller of this channel may do: write the kinds that are enabled, each within its limit."""
        scope, kinds = self.scope(home), self.memory_settings().kinds
        return Binding(
            channel=channel,
            writes=dict.fromkeys(kinds, scope),
            also_writes=frozenset({scope}),
            reads=(scope,),
            limits={kind: Limit(keep=settings.keep) for kind, settings in kinds.items()},
        )


def load(file: str) -> Role:
    """Read a role from its file."""
    return parse(read_yaml(file), file=file)


def read(text: str, *, file: str) -> Role:
    """Read a role from the text of its file."""
    return parse(parse_yaml(text, file=file), file=file)


def scaffold(template: str, **values: str) -> str:
    """Fill in the ``{names}`` of a template, each value written so that YAML reads it as the same text."""
    return template.format(**{name: strict_yaml.dump_scalar(value) for name, value in values.items()})


def parse(data: Any, *, file: str) -> Role:
    """Check the data of a role file, with the envelope or without."""
    at, flat = At(file=file), isinstance(data, Mapping) and "spec" not in data
    _refuse_moved(data if flat else _below(data, "spec"), at if flat else at.key("spec"))
    about: Metadata | FlatFile
    spec: Spec
    if flat:
        about = spec = decode(data, FlatFile, at)
    else:
        envelope = decode(data, AgentFile, at)
        about, spec = envelope.metadata, envelope.spec
    described = {name: getattr(spec, name) for name in Spec.__struct_fields__}
    return Role(name=about.name, description=about.description, file=file, flat=flat, **described)


def _refuse_moved(spec: Any, at: At) -> None:
    """Refuse ``memory.max_memories`` with its new place."""
    if (old := _below(_below(spec, "memory"), "max_memories")) is not None:
        raise at.key("memory.max_memories").error(MOVED.format(old))


def _below(data: Any, key: str) -> Any:
    return data.get(key) if isinstance(data, Mapping) else None


def ephemeral(model: ModelSettings | None, *, prompt: str, memory: bool = True) -> Role:
    """The agent of a user who has no file: it remembers by default."""
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
    return decode(spec, ModelSettings, At(file=file, path=path))


def environment(role: Role, env: Mapping[str, str], *, home: str) -> dict[str, str]:
    """Return the environment of a role: the process's, then ``.env`` in its folder, then the one in the data folder.

    Neither file overrides what is set already.
    """
    merged = dict(env)
    for file in (os.path.join(role.folder, DOTENV), os.path.join(home, DOTENV)):
        for name, value in _read_dotenv(file).items():
            merged.setdefault(name, value)
    return merged


def _read_dotenv(file: str) -> dict[str, str]:
    """``NAME=value`` lines, with or without quotes; a missing file is empty."""
    try:
        lines = disk.read_text(file, limit=FILE_BYTES).splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {disk.reason(error)}", file=file) from error
    variables: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _variable.fullmatch(line.strip())
        if found is None:  # the line itself is not repeated: it may be half a key
            raise ConfigError(f"line {number} is not NAME=value", file=file)
        variables[found[1]] = _unquote(found[2])
    return variables


def _unquote(value: str) -> str:
    quote = value[:1]
    if quote in {"'", '"'} and (end := value.find(quote, 1)) > 0:
        return value[1:end]
    return re.split(r"\s#", value, maxsplit=1)[0].strip()


def _is_inside(path: str, folder: str) -> bool:
    real, around = os.path.realpath(path), os.path.realpath(folder)
    return real.startswith(around.rstrip(os.sep) + os.sep)
