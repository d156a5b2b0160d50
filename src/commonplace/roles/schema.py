"""Every key of a role, with its default and what it may be: data, which ``config.role`` checks a file by."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.config.settings import Block, Schema, Setting
from commonplace.model.values import Value

MOST = 1_000_000  # of anything that is counted

MODEL: Schema = (
    Setting(name="provider", default="", kind=str, help="openai, anthropic, google or ollama"),
    Setting(name="name", default="", kind=str, help="the model"),
    Setting(name="base_url", default=None, kind=str, help="the address of an OpenAI-compatible endpoint"),
    Setting(name="api_key_env", default=None, kind=str, help="the variable that holds the key"),
    Setting(name="temperature", default=None, kind=float, least=0, most=2, help="how freely it speaks"),
    Setting(name="max_tokens", default=None, kind=int, least=1, most=MOST, help="most tokens of one answer"),
    Setting(name="timeout_seconds", default=120, kind=int, least=1, most=3600, help="how long one answer may take"),
)
MEMORY: Schema = (
    Setting(name="max_sessions", default=10, kind=int, least=1, most=MOST, help="sessions that are kept"),
    Setting(name="max_resume_messages", default=20, kind=int, least=1, most=MOST, help="messages that --resume loads"),
    Setting(
        name="store_backend", default="sqlite", kind=str, choices=("sqlite", "lancedb", "postgres"),
        help="what keeps it",
    ),
    Setting(name="store_path", default=None, kind=str, help="the file of the store, from the data folder"),
    Block(
        name="embeddings", help="what finds things by meaning", settings=(
            Setting(
                name="provider", default="", kind=str, help="empty: the model's provider",
                choices=("", "local", "onnx", "openai", "anthropic", "google", "ollama"),
            ),
            Setting(name="model", default="", kind=str, help="empty: the provider's default"),
            Setting(name="base_url", default="", kind=str, help="an OpenAI-compatible endpoint"),
            Setting(name="api_key_env", default="", kind=str, help="the variable that holds its key"),
        ),
    ),
    Block(
        name="episodic", help="what happened", settings=(
            Setting(name="enabled", default=True, kind=bool, help="on, with record_episode()"),
            Setting(name="max_episodes", default=500, kind=int, least=1, most=MOST, help="the oldest go first"),
        ),
    ),
    Block(
        name="semantic", help="what is so", settings=(
            Setting(name="enabled", default=True, kind=bool, help="on, with remember()"),
            Setting(name="max_memories", default=1000, kind=int, least=1, most=MOST, help="the oldest go first"),
        ),
    ),
    Block(
        name="procedural", help="how it is done", settings=(
            Setting(name="enabled", default=True, kind=bool, help="on, with learn_procedure()"),
            Setting(name="max_procedures", default=100, kind=int, least=1, most=MOST, help="the oldest go first"),
        ),
    ),
    Block(
        name="consolidation", help="facts out of episodes", settings=(
            Setting(name="enabled", default=True, kind=bool, help="by itself, at the interval"),
            Setting(
                name="interval", default="after_session", kind=str, help="when",
                choices=("after_session", "after_autonomous", "manual"),
            ),
            Setting(name="max_episodes_per_run", default=20, kind=int, least=1, most=1000, help="oldest first"),
            Setting(name="model_override", default=None, kind=str, help="another model than the agent's"),
        ),
    ),
)  # fmt: skip
AUTONOMY: Schema = (
    Setting(
        name="continuation_prompt", default="Continue with the task. Call finish_task when it is done.", kind=str,
        help="what is said between two turns",
    ),
    Setting(name="iteration_delay_seconds", default=0.0, kind=float, least=0, most=86_400, help="between two turns"),
)  # fmt: skip
GUARDRAILS: Schema = (
    Setting(name="max_iterations", default=10, kind=int, least=1, most=10_000, help="turns of an autonomous run"),
    Setting(name="max_tokens_per_run", default=50_000, kind=int, least=1, most=100_000_000, help="of one turn"),
    Setting(name="max_tool_calls", default=20, kind=int, least=1, most=100_000, help="of one turn"),
    Setting(name="timeout_seconds", default=300, kind=int, least=1, most=86_400, help="of one turn"),
    Setting(
        name="autonomous_token_budget", default=None, kind=int, least=1, most=1_000_000_000,
        help="of a whole autonomous run",
    ),
    Setting(
        name="daemon_token_budget", default=None, kind=int, least=1, most=1_000_000_000, help="of what a daemon does"
    ),
)  # fmt: skip
SECURITY: Schema = (
    Block(
        name="tools", help="what tools may reach", settings=(
            Setting(
                name="restrict_db_paths", default=True, kind=bool, help="the store has to lie in the data folder"
            ),
        ),
    ),
)  # fmt: skip
SHARED: Schema = (
    Setting(name="store_path", default=None, kind=str, help="the file of the shared store"),
    Setting(name="max_memories", default=1000, kind=int, least=1, most=MOST, help="facts that it may hold"),
    Setting(
        name="store_backend", default="sqlite", kind=str, choices=("sqlite", "lancedb", "postgres"),
        help="what keeps it",
    ),
)  # fmt: skip
SHARED_BY_FLOW: Schema = (Setting(name="enabled", default=False, kind=bool, help="all agents have one store"), *SHARED)


class Sort(Value):
    """One sort of a thing that a list holds, by its ``type``."""

    settings: Schema
    lists: tuple[str, ...] = ()  #: keys that hold lists
    mappings: tuple[str, ...] = ()  #: keys that hold mappings, checked by themselves
    needed: tuple[str, ...] = ()  #: keys that have no default


_AUTONOMOUS = Setting(name="autonomous", default=False, kind=bool, help="it works until it calls finish_task")
TRIGGERS: Mapping[str, Sort] = {
    "cron": Sort(
        settings=(
            Setting(name="schedule", default="", kind=str, help="five fields"),
            Setting(name="prompt", default="", kind=str, help="what it is asked"),
            Setting(name="timezone", default="UTC", kind=str, help="whose clock"),
            _AUTONOMOUS,
        ),
        needed=("schedule", "prompt"),
    ),
    "file_watch": Sort(
        settings=(
            Setting(name="prompt_template", default="File changed: {path}", kind=str, help="what it is asked"),
            Setting(name="debounce_seconds", default=1.0, kind=float, least=0, most=86_400, help="quiet before a run"),
            Setting(name="process_existing", default=False, kind=bool, help="also what is there at the start"),
            _AUTONOMOUS,
        ),
        lists=("paths", "extensions"),
        needed=("paths",),
    ),
    "webhook": Sort(
        settings=(
            Setting(name="path", default="/webhook", kind=str, help="of the address"),
            Setting(name="host", default="127.0.0.1", kind=str, help="where it listens"),
            Setting(name="port", default=8080, kind=int, least=1, most=65_535, help="likewise"),
            Setting(name="method", default="POST", kind=str, choices=("POST", "PUT"), help="how it is called"),
            Setting(name="rate_limit_rpm", default=60, kind=int, least=1, most=100_000, help="calls in a minute"),
            Setting(name="secret_env", default=None, kind=str, help="the variable that holds the shared secret"),
            _AUTONOMOUS,
        ),
    ),
}
TOOLS: Mapping[str, Sort] = {
    "delegate": Sort(
        settings=(
            Setting(name="mode", default="inline", kind=str, choices=("inline",), help="in this process"),
            Setting(name="max_depth", default=3, kind=int, least=1, most=20, help="delegates of delegates"),
            Setting(name="timeout_seconds", default=120, kind=int, least=1, most=86_400, help="of one answer"),
        ),
        lists=("agents",),
        mappings=("shared_memory",),
        needed=("agents",),
    ),
}
