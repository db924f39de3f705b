"""The demo's policies: one of every day, one that only looks."""

from __future__ import annotations

from pathlib import Path

EVERYDAY = """\
# What the agent may do in this project without asking.

[[rule]]
toolName = "run_shell_command"
commandPrefix = ["python -m pytest", "python -m unittest"]
decision = "allow"
priority = 200

[[rule]]
toolName = ["write_file", "replace"]
argsPattern = "\\"file_path\\":\\"(tests|tidewatch)/"
decision = "allow"
priority = 150

# Publishing stays with me.
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git push"
decision = "deny"
priority = 300
denyMessage = "Publishing is done by hand."

[[rule]]
toolName = ["read_file", "glob", "grep_search", "list_directory"]
decision = "allow"
priority = 100
"""

LOOK_ONLY = """\
[[rule]]
toolName = "replace"
decision = "deny"
priority = 999
interactive = false

[[rule]]
toolName = "run_shell_command"
decision = "deny"
priority = 999
interactive = false

[[rule]]
toolName = "write_file"
decision = "deny"
priority = 999
interactive = false
"""

POLICIES = {"everyday": EVERYDAY, "look-only": LOOK_ONLY}


def write_policies(folder: Path) -> None:
    """Write them into a folder of policies, which is made. Raises OSError."""
    folder.mkdir(parents=True)
    for name, text in POLICIES.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
