"""Recognise files that decide what is run later, and describe settings changes.

A call that writes such a file can give the next run, the next commit or the next shell full
permissions, so the user is asked about the call in every mode except yolo. Code that an ordinary
command imports doesn't count, not even `conftest.py`, but a file that names programs to start does,
and so does a file that Gemini CLI's settings or git start (`starts_it`): if a hook starts it, the
model's own code runs as early as the next tool call. Build files are not included, because the CLI
itself refuses to write them (assets/gemini-cli.md#protected-files).
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import translate
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final

from gemtui.calls.git_repository import GitProgram, programs_of
from gemtui.calls.setting_effects import SettingEffect, commands_of, setting_effects
from gemtui.files import read_small, resolved
from gemtui.jsonfile import object_of, without_comments
from gemtui.paths import config_file, data_dir, gemini_home, state_dir, typed_path, worktrees_dir

_CLI = "it controls what later runs of Gemini CLI may do and what they start"
_CLI_ADDS = "later runs of Gemini CLI load instructions, tools or rules from it"
_GIT = "git starts the programs that it names"
_BARE = "git would treat its folder as a repository and start programs that the configuration names"
_VCS = "the version control system starts the programs that it names"
_CI = "the CI server runs the commands in it"
_EDITOR = "editors or their tasks start the programs that it names"
_SHELL = "every new shell or login runs it"
_ENTERED = "a shell runs it when it enters the folder"
_AGENT = "other coding agents load their permissions and hooks from it"
_VARIABLES = "programs that start here later, including Gemini CLI, load variables from it"
_PACKAGES = "it tells a package manager what to run and where to download from"
_STARTED = "a program reads it whenever it starts"
_RUN = "it is part of a program that is run"
_GEMTUI = "gemtui loads answers, rules and hooks from this folder"
_CONFIG = "gemtui starts the programs that it names and loads policies from it"
_TASKS = "a task runner runs the commands in it"
_CONTAINER = "it controls what containers run"

_FOLDERS: Mapping[str, str] = {
    ".gemini/settings.json": _CLI,
    ".gemini/trustedFolders.json": _CLI,
    ".gemini/.env": _VARIABLES,
    ".gemini": _CLI_ADDS,
    ".git": _GIT,
    ".githooks": _GIT,
    ".husky": "git runs it on commits and other actions",
    ".config/git": _GIT,
    ".hg": _VCS,
    ".jj": _VCS,
    ".sl": _VCS,
    ".config/gemtui": _CONFIG,
    ".github/workflows": _CI,
    ".github/actions": _CI,
    ".gitlab/ci": _CI,
    ".circleci": _CI,
    ".buildkite": _CI,
    ".woodpecker": _CI,
    ".semaphore": _CI,
    ".teamcity": _CI,
    ".builds": _CI,
    ".forgejo/workflows": _CI,
    ".gitea/workflows": _CI,
    ".vscode": _EDITOR,
    ".idea": _EDITOR,
    ".zed": _EDITOR,
    ".fleet": _EDITOR,
    ".helix": _EDITOR,
    ".externalToolBuilders": _EDITOR,
    ".vs": _EDITOR,
    ".nvim": _EDITOR,
    ".devcontainer": _CONTAINER,
    ".claude": _AGENT,
    ".codex": _AGENT,
    ".cursor": _AGENT,
    ".opencode": _AGENT,
    ".amazonq": _AGENT,
    ".augment": _AGENT,
    ".continue": _AGENT,
    ".junie": _AGENT,
    ".kiro": _AGENT,
    ".qwen": _AGENT,
    ".roo": _AGENT,
    ".windsurf": _AGENT,
    ".direnv": _ENTERED,
    ".mise": _ENTERED,
    ".shadowenv.d": _ENTERED,
    ".venv": _RUN,
    "venv/bin": _RUN,
    "env/bin": _RUN,
    "node_modules/.bin": _RUN,
    "site-packages": _RUN,
    "dist-packages": _RUN,
    ".local/bin": _RUN,
    ".local/share/gemtui": _GEMTUI,
    ".local/state/gemtui": _GEMTUI,
    "Library/Application Support/gemtui": _GEMTUI,
    ".vim": _EDITOR,
    ".emacs.d": _EDITOR,
    ".ipython": _STARTED,
    ".jupyter": _STARTED,
    ".docker": _STARTED,
    ".kube": _STARTED,
    ".aws": _STARTED,
    ".gradle": _PACKAGES,
    ".m2": _PACKAGES,
    ".cargo": _PACKAGES,
    ".mvn": _PACKAGES,
    ".yarn": _PACKAGES,
    ".bundle": _PACKAGES,
    ".ssh": "it controls who may log in and what a connection starts",
    ".config/fish": _SHELL,
    ".config/autostart": _SHELL,
    ".config/systemd": _SHELL,
    ".config/environment.d": _SHELL,
    ".config/direnv": _ENTERED,
    ".config": _STARTED,
    "Library/LaunchAgents": _SHELL,
}
"""Paths of files that decide what is run later, with clauses saying why.

A path may be a file, or a folder with everything in it, and may occur in any folder.
"""

_NAMES: Mapping[str, str] = {
    ".env": _VARIABLES,
    ".env.*": _VARIABLES,
    ".flaskenv": _VARIABLES,
    ".envrc": _ENTERED,
    ".autoenv*": _ENTERED,
    "devbox.json": _ENTERED,
    "devenv.nix": _ENTERED,
    "flake.nix": _ENTERED,
    "shell.nix": _ENTERED,
    ".mise.toml": _ENTERED,
    "mise.toml": _ENTERED,
    ".tool-versions": _ENTERED,
    "HEAD": _BARE,
    ".hgrc": _VCS,
    ".gitattributes": _GIT,
    ".gitmodules": _GIT,
    ".gitconfig": _GIT,
    ".pre-commit-config.yaml": _GIT,
    ".pre-commit-hooks.yaml": _GIT,
    "lefthook*.y*ml": _GIT,
    ".lefthook*.y*ml": _GIT,
    "lefthook*.toml": _GIT,
    ".lefthook*.toml": _GIT,
    "lefthook*.json": _GIT,
    ".lefthook*.json": _GIT,
    "lint-staged.config.*": _GIT,
    "simple-git-hooks.*": _GIT,
    ".simple-git-hooks.*": _GIT,
    ".huskyrc*": _GIT,
    ".lintstagedrc*": _GIT,
    ".npmrc": _PACKAGES,
    ".yarnrc*": _PACKAGES,
    ".pnpmfile.cjs": _PACKAGES,
    ".pnpmrc": _PACKAGES,
    ".pnp.*": _PACKAGES,
    "composer.json": _PACKAGES,
    "nuget.config": _PACKAGES,
    "pnpm-workspace.yaml": _PACKAGES,
    "bunfig.toml": _PACKAGES,
    ".pypirc": _PACKAGES,
    "pip.conf": _PACKAGES,
    "uv.toml": _PACKAGES,
    "gradle-wrapper.properties": _PACKAGES,
    "rust-toolchain*": _PACKAGES,
    ".bazelrc*": _PACKAGES,
    ".sbtopts": _PACKAGES,
    ".jvmopts": _PACKAGES,
    "dotnet-tools.json": _PACKAGES,
    "Directory.Build.*": _PACKAGES,
    ".gitlab-ci.y*ml": _CI,
    "Jenkinsfile*": _CI,
    ".travis.yml": _CI,
    "appveyor.yml": _CI,
    ".appveyor.yml": _CI,
    "azure-pipelines*.y*ml": _CI,
    "bitbucket-pipelines.yml": _CI,
    ".drone.y*ml": _CI,
    ".woodpecker.y*ml": _CI,
    ".cirrus.yml": _CI,
    "cloudbuild.y*ml": _CI,
    "buildspec.y*ml": _CI,
    "codemagic.yaml": _CI,
    "bitrise.yml": _CI,
    ".build.yml": _CI,
    "amplify.yml": _CI,
    ".goreleaser*.y*ml": _CI,
    ".releaserc*": _CI,
    "fly.toml": _CI,
    "render.yaml": _CI,
    "wrangler.*": _CI,
    "netlify.toml": _CI,
    "vercel.json": _CI,
    "gemini-extension.json": _CLI_ADDS,
    "hooks.json": _CLI_ADDS,
    ".mcp.json": _AGENT,
    "mcp.json": _AGENT,
    "opencode.json*": _AGENT,
    ".crush.json": _AGENT,
    "crush.json": _AGENT,
    ".aider.conf.yml": _AGENT,
    "*.code-workspace": _EDITOR,
    "*.sublime-project": _EDITOR,
    "launchSettings.json": _EDITOR,
    ".vimspector.json": _EDITOR,
    ".lvimrc": _EDITOR,
    ".exrc": _EDITOR,
    ".vimrc": _EDITOR,
    ".nvimrc": _EDITOR,
    ".nvim.lua": _EDITOR,
    ".dir-locals.el": _EDITOR,
    ".emacs": _EDITOR,
    ".gdbinit": _EDITOR,
    ".lldbinit": _EDITOR,
    ".pdbrc": _STARTED,
    ".pryrc": _STARTED,
    ".irbrc": _STARTED,
    ".ghci": _STARTED,
    ".Rprofile": _STARTED,
    ".iex.exs": _STARTED,
    ".byebugrc": _STARTED,
    ".ocamlinit": _STARTED,
    ".latexmkrc": _STARTED,
    "latexmkrc": _STARTED,
    ".pylintrc*": _STARTED,
    "pylintrc": _STARTED,
    ".sqliterc": _STARTED,
    ".psqlrc": _STARTED,
    ".curlrc": _STARTED,
    ".wgetrc": _STARTED,
    ".inputrc": _STARTED,
    "sitecustomize.py": _STARTED,
    "usercustomize.py": _STARTED,
    "*.pth": _STARTED,
    "justfile": _TASKS,
    ".justfile": _TASKS,
    "Taskfile.y*ml": _TASKS,
    "Taskfile.dist.y*ml": _TASKS,
    "tox.ini": _TASKS,
    "Rakefile": _TASKS,
    "Gruntfile.*": _TASKS,
    "gulpfile.*": _TASKS,
    "deno.json*": _TASKS,
    "Procfile*": _TASKS,
    "nodemon.json": _TASKS,
    ".overcommit.yml": _GIT,
    "docker-compose*.y*ml": _CONTAINER,
    "compose*.y*ml": _CONTAINER,
    ".devcontainer.json": _CONTAINER,
    "Vagrantfile": _CONTAINER,
    "Tiltfile": _CONTAINER,
    "Earthfile": _CONTAINER,
    "skaffold.y*ml": _CONTAINER,
    ".bashrc": _SHELL,
    ".bash_*": _SHELL,
    ".profile": _SHELL,
    ".zshrc": _SHELL,
    ".zshenv": _SHELL,
    ".zprofile": _SHELL,
    ".zlog*": _SHELL,
    ".kshrc": _SHELL,
    ".cshrc": _SHELL,
    ".tcshrc": _SHELL,
    ".login": _SHELL,
    ".xprofile": _SHELL,
    ".xinitrc": _SHELL,
    ".xsession*": _SHELL,
    ".pam_environment": _SHELL,
    ".tmux.conf": _SHELL,
    ".screenrc": _SHELL,
}
"""Name patterns of files that decide what is run later, with clauses saying why.

The patterns apply in every folder, because a start-up file in the home folder may be a link to such
a file.
"""

_MOST_ENTRIES = 2000
"""How many entries of the home folder are checked for links into the project."""
_ORDINARY = (".gemini/gemini.md", ".gemini/tmp", ".gemini/worktrees")
"""Paths under `.gemini` that start nothing: model instructions, plans, worktrees."""
_EVERYWHERE = tuple(f".gemini/{name}" for name in ("extensions", "commands", "agents", "policies", "hooks", "skills"))
"""Paths under `.gemini` that affect all runs, in every project."""


def why_runs_later(path: Path, project: Path) -> str | None:
    """Return why a file decides what is run later, as a clause; None if it doesn't.

    `path`, `project`: absolute, with links resolved. If `path` is in the project, the names of the
    folders above the project don't matter. Spellings that some file systems treat as equal (case,
    width, invisible characters) count as the same. Reads the disk.
    """
    below = path.relative_to(project) if path.is_relative_to(project) else path
    ours = any(path.is_relative_to(resolved(place)) for place in (data_dir(), state_dir()))
    if ours and not (below != path and project.is_relative_to(resolved(worktrees_dir()))):
        return _GEMTUI
    policies = resolved(config_file().parent / "policies")
    if path == resolved(config_file()) or path.is_relative_to(policies):
        return _CONFIG
    for start in _starts(_folded(path)):
        if any(_leads(start, place) for place in _EVERYWHERE):
            return _CLI_ADDS
    found = (why for each in (below, *_at_home(path, project)) if (why := _why(each)) is not None)
    return next(found, _BARE if _is_beside_head(path, project) else None)


def _why(below: Path) -> str | None:
    for start in _starts(_folded(below)):
        if any(_leads(start, place) for place in _ORDINARY):
            continue
        for place, why in _FOLDED_FOLDERS.items():
            if _leads(start, place):
                return why
    name = _folded(Path(below.name))
    return next((why for pattern, why in _PATTERNS if pattern.match(name)), None)


def _at_home(path: Path, project: Path) -> Iterator[Path]:
    """Yield the other names that a project file has through links in the home folder.

    The names are relative to the home folder, and only links into the project count. For example,
    in a project that contains start-up files, `~/.gemini` may be a link to the project's folder
    `gemini`.
    """
    home = Path.home()
    for folder in (home, home / ".config"):
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                target = resolved(Path(entry.path)) if entry.is_symlink() else None
                if target and target.is_relative_to(project) and path.is_relative_to(target):
                    yield Path(entry.path).relative_to(home) / path.relative_to(target)


def _is_beside_head(path: Path, project: Path) -> bool:
    """Return whether git may use a folder above the file as a bare repository.

    Git does so only if the folder contains a file named HEAD. Folders outside the project don't
    count.
    """
    places = (place for place in path.parents if place.is_relative_to(project))
    return any(os.path.lexists(place / "HEAD") for place in places)


def _starts(path: str) -> Iterator[str]:
    """Yield the path, then the path without its first component, and so on."""
    parts = path.strip("/").split("/")
    return ("/".join(parts[at:]) for at in range(len(parts)))


def _leads(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _folded(path: Path) -> str:
    text = unicodedata.normalize("NFKC", path.as_posix()).casefold()
    return "".join(char for char in text if unicodedata.category(char) != "Cf")


_FOLDED_FOLDERS = {name.lower(): why for name, why in _FOLDERS.items()}
_PATTERNS = [(re.compile(translate(name.lower())), why) for name, why in _NAMES.items()]


# --- changes of settings -------------------------------------------------------------------------


def describe_settings_change(path: Path, before: str | None, after: str | None) -> tuple[str, ...]:
    """Describe a change to one of the CLI's settings files, one sentence per setting.

    `before`, `after`: the whole contents; None if there is no file. Returns () for other files and
    for a deletion. The sentences quote untrusted values.
    """
    if not _folded(path).endswith("/.gemini/settings.json") or after is None:
        return ()
    now = _settings(after, path)
    if now is None:
        return ("The file would no longer be a JSON object, so Gemini CLI would exit immediately.",)
    was = _effects((_settings(before, path) if before else None) or {})
    becomes = _effects(now)
    gone = (f"Removes {setting}." for setting in was if setting not in becomes)
    return (*_changes(was, becomes), *gone)


def _changes(was: Mapping[str, SettingEffect], becomes: Mapping[str, SettingEffect]) -> Iterator[str]:
    for setting, effect in becomes.items():
        if setting not in was:
            yield f"Adds {setting}. {effect.follows}"
        elif effect.value != was[setting].value:
            yield f"Changes {setting}. {effect.follows}"


def _effects(settings: Mapping[str, Any]) -> dict[str, SettingEffect]:
    return {effect.setting: effect for effect in setting_effects(settings)}


def _settings(text: str, path: Path) -> Mapping[str, Any] | None:
    try:
        return object_of(without_comments(text.encode("utf-8", "replace")), path)
    except OSError:
        return None


_PROJECT: Final = re.compile(
    r"\$(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD)\b"
    r"|\$\{(?:(?:GEMINI|CLAUDE)_PROJECT_DIR|GEMINI_CWD|PWD|workspacePath)\}"
)
"""Variables in hook commands whose value is the run's folder."""


def starts_it(settings: Mapping[str, Any], project: Path, path: Path) -> str | None:
    """Return what starts a project file as a program, as a clause, or None.

    `settings`: Gemini CLI's settings, merged from all files. `project`, `path`: absolute, with
    links resolved. Files that such a program loads in turn are not recognised.
    """
    for command in commands_of(settings):
        folder = resolved(project / _PROJECT.sub(str(project), command.folder))
        if any(resolved(folder / name) == path for name in _names(command.words, project)):
            return "Gemini CLI's settings start it as a program"
    if any(_git_starts(each, project, path) for each in programs_of(project)):
        return "git runs it automatically, for example when you commit"
    return None


def is_program(path: Path, environ: Mapping[str, str]) -> bool:
    """Return whether a shell runs this file when its name is entered as a command.

    For that, the file must be executable, and its folder must be in PATH. So a new file doesn't
    count, because no tool makes files executable. `path`: absolute, with links resolved.
    """
    folders = (entry for entry in environ.get("PATH", "").split(":") if entry.startswith("/"))
    return os.access(path, os.X_OK) and any(resolved(Path(each)) == path.parent for each in folders)


def _git_starts(named: GitProgram, project: Path, path: Path) -> bool:
    if named.hooks:
        return path.is_relative_to(resolved(named.folder / typed_path(named.command)))
    names = _names((named.command,), project)
    return any(resolved(named.folder / typed_path(name)) == path for name in names)


def _names(words: tuple[str, ...], project: Path) -> Iterator[str]:
    """Yield all paths that the words of a command may refer to."""
    whole = [_PROJECT.sub(str(project), word).replace("\0", "") for word in words]
    yield from whole
    pieces = [piece for word in whole for piece in _split(word)]
    for before, piece in pairwise(["", *pieces]):
        yield from (piece, piece.partition("=")[2])
        if before == "-m":
            module = piece.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py")


def _split(text: str) -> list[str]:
    with suppress(ValueError):
        return [piece.strip(";&|()<>") for piece in shlex.split(text)]
    return text.split()


_LARGEST: Final = 1_000_000
_HEAD: Final = re.compile(rb"\A\s*---[ \t]*\r?\n(.*?)\r?\n---", re.DOTALL)
_STARTS: Final = re.compile(rb"mcp_servers|agent_card|\\")
"""Keys in an agent file's front matter that can start programs.

A backslash counts as well, because an escape sequence could spell one of the keys.
"""


def agents_that_start(project: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the agent files of user, project and extensions that may start programs.

    A file is included if it can't be read or its front matter can't be parsed.
    """
    home = gemini_home(environ)
    folders = (project / ".gemini" / "agents", home / "agents")
    for folder in (*folders, *sorted(home.glob("extensions/*/agents"))):
        yield from filter(_may_start, sorted(folder.glob("*.md")))


def _may_start(file: Path) -> bool:
    text = None
    with suppress(OSError):
        text = read_small(file, _LARGEST)
    head = None if text is None else _HEAD.match(text)
    return head is None or _STARTS.search(head[1]) is not None
