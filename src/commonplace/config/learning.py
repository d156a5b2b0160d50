"""The blocks ``memories`` and ``models`` of a project's settings, as values.  No recall loads this.

Names, limits, meanings and defaults of all fields are in ``config.settings``; here they get their Python names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from commonplace.config.settings import MEMORIES, MODELS
from commonplace.model.values import Value


class Learning(Value):
    """Everything that can be set about extraction and consolidation; ``maxLossPercent`` is ``max_loss_percent``."""

    enabled: bool
    mode: str
    ask_agent: bool
    max_rollout_age_days: int
    min_rollout_idle_hours: int
    max_rollouts_per_startup: int
    thread_scan_limit: int
    stage1_concurrency: int
    stage1_lease_seconds: int
    stage1_retry_delay_seconds: int
    phase1_input_token_limit: int
    rollout_payload_percent: float
    fallback_token_limit: int
    max_raw_memories_for_global: int
    phase2_lease_seconds: int
    phase2_retry_delay_seconds: int
    phase2_heartbeat_seconds: int
    summary_injection_token_limit: int
    max_records_per_session: int
    max_loss_percent: int


class Models(Value):
    """Which language models extract and consolidate."""

    default: str | None
    smol: str | None
    base_url: str | None
    api_key_env: str | None
    timeout_seconds: int

    def of(self, role: str) -> str | None:
        """The model of a role, ``default`` or ``smol``; the small one falls back to the default one."""
        return (self.smol or self.default) if role == "smol" else self.default


def _to_snake(names: Mapping[str, Any]) -> dict[str, Any]:
    return {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name): value for name, value in names.items()}


Learning.defaults.update(_to_snake({setting.name: setting.default for setting in MEMORIES.settings}))
Models.defaults.update(_to_snake({setting.name: setting.default for setting in MODELS.settings}))


def learning(settings: Mapping[str, Any]) -> Learning:
    """How the project learns from its sessions."""
    return Learning(**_to_snake(settings["memories"]))


def models(settings: Mapping[str, Any]) -> Models:
    """Which language models extract and consolidate."""
    return Models(**settings["models"])


DEFAULT_LEARNING = learning({"memories": {}})  #: of a project that sets nothing
