"""Learning: how a project learns from its sessions, as settings.  Names in files are the documents' own."""

from __future__ import annotations

from commonplace.model.values import Value


class Learning(Value):
    """Everything that can be set about extraction and consolidation; times, sizes and counts have their unit."""

    enabled: bool = False  #: the master switch
    mode: str = "rules"  #: how it thinks: rules, model or host
    max_rollout_age_days: int = 30  #: older sessions are left alone
    min_rollout_idle_hours: int = 12  #: sessions that were active more recently are left alone
    max_rollouts_per_startup: int = 64  #: sessions that one run takes
    thread_scan_limit: int = 300  #: sessions that one run looks at, newest first
    stage1_concurrency: int = 8  #: sessions at the same time
    stage1_lease_seconds: int = 120
    stage1_retry_delay_seconds: int = 120
    phase1_input_token_limit: int = 4000  #: what a model sees of one session at most
    rollout_payload_percent: float = 0.7  #: of a model's window, for the session
    fallback_token_limit: int = 16_000  #: the window of a model that does not say
    max_raw_memories_for_global: int = 200  #: extractions that one consolidation reads, newest first
    phase2_lease_seconds: int = 180
    phase2_retry_delay_seconds: int = 180
    phase2_heartbeat_seconds: int = 30
    summary_injection_token_limit: int = 5000
    max_records_per_session: int = 20
    max_loss_percent: int = 25  #: of the facts in MEMORY.md that one consolidation may drop with a stated reason


class Models(Value):
    """Which language models think, as settings."""

    default: str | None = None  #: provider and model, such as ``openai:gpt-5-mini``
    smol: str | None = None  #: the small one, for consolidation; None: the default one
    base_url: str | None = None  #: an OpenAI-compatible endpoint; None: the provider's own
    api_key_env: str | None = None  #: the variable that holds the key; None: the provider's own
    timeout_seconds: int = 120  #: for one answer, with all tries

    def of(self, role: str) -> str | None:
        """The model of a role, ``default`` or ``smol``; the small one falls back to the default one."""
        return (self.smol or self.default) if role == "smol" else self.default
