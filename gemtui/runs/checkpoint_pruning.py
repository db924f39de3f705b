"""Remove old checkpoints by the settings."""

from __future__ import annotations

import time

from gemtui.agent.gemini import owner_lives
from gemtui.agent.run_folder import RunFolder
from gemtui.checkpoints.prune import CheckpointsUsage, prune
from gemtui.config import load_config
from gemtui.paths import checkpoints_dir, config_file
from gemtui.runs.listing import runs_dir


def prune_checkpoints() -> CheckpointsUsage:
    """Remove checkpoints that are too old or too many by the settings; return what was freed.

    Those that a run needs that goes on stay. Raises ConfigError.
    """
    config = load_config(config_file())

    def goes_on(run: str) -> bool:
        if not run:
            return False
        folder = RunFolder(runs_dir() / run)
        return folder.exit() is None and (folder.is_starting() or owner_lives(folder.owner()))

    return prune(
        checkpoints_dir(),
        before=time.time() - config.checkpoint_days * 86400,
        most_bytes=config.checkpoint_bytes,
        goes_on=goes_on,
    )
