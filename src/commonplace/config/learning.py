"""The blocks ``memories`` and ``models`` of a project's settings, as values.  No recall loads this."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from commonplace.config.learning_settings import Learning, Models


def learning(settings: Mapping[str, Any]) -> Learning:
    """How the project learns; a name such as ``maxRolloutAgeDays`` is ``max_rollout_age_days`` here."""
    return Learning(**{_snake(name): value for name, value in settings["memories"].items()})


def models(settings: Mapping[str, Any]) -> Models:
    """Which language models think."""
    return Models(**settings["models"])


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
