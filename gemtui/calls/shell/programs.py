"""Facts about programs, used to decide which command prefixes a rule may allow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

DELETES: Final = "it can delete or overwrite any file"
RUNS: Final = "it can run any other command"
BEYOND: Final = "it changes things outside of this machine"
_RIGHTS = "it changes permissions or runs commands as another user"
_SENDS = "it can download and send anything, and save what it downloads"
_SYSTEM = "it changes the system rather than the project"
_LATER = "it changes what the commands after it do"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _never(why: str, text: str) -> dict[str, str]:
    return dict.fromkeys(text.split(), why)


NEVER: Final = {
    **_never(
        DELETES,
        """rm rmdir unlink shred truncate dd mv cp install ln rsync tee fdisk parted wipefs mkfs
        mkswap srm trash sort tree uniq xxd split csplit patch cpio gzip gunzip bzip2 bunzip2 xz
        unxz unzip""",
    ),
    **_never(
        _RIGHTS,
        """sudo su doas pkexec chmod chown chgrp setfacl chattr passwd usermod useradd visudo""",
    ),
    **_never(
        RUNS,
        """eval exec source . coproc test printf read unset wait local xargs env
        nohup time nice ionice setsid stdbuf command builtin watch
        parallel entr script strace ltrace gdb lldb flock chroot unshare nsenter at batch crontab
        fd rg awk gawk mawk nawk sed vim vi nvim emacs nano ed ex less more man tar zip busybox
        expect tmux screen osascript start xvfb-run dbus-run-session systemd-run runuser setpriv sg
        taskset chrt numactl prlimit setarch valgrind perf hyperfine unbuffer chronic caffeinate
        fakeroot proot firejail bwrap direnv dotenv nix nix-shell rlwrap wine""",
    ),
    "find": "it can run commands and delete files (-exec, -delete)",
    **_never(_SENDS, "curl wget nc ncat netcat telnet ftp sftp socat ssh scp http https aria2c"),
    **_never(
        _SYSTEM,
        """kill killall pkill shutdown reboot halt poweroff init systemctl service launchctl mount
        umount swapoff iptables ufw sysctl modprobe insmod apt apt-get dpkg yum dnf pacman brew
        snap apk zypper""",
    ),
    **_never(
        BEYOND,
        """aws gcloud az gsutil terraform tofu pulumi helm ansible ansible-playbook heroku fly
        flyctl vercel netlify wrangler firebase doctl twine psql mysql mongosh redis-cli
        sqlite3""",
    ),
    **_never(_LATER, "export alias unalias set trap enable hash declare typeset"),
}
"""Maps each program that never gets a suggested rule to the reason."""

SHELLS: Final = _names("bash sh zsh dash ksh fish tcsh csh pwsh powershell cmd cmd.exe")
LANGUAGES: Final = _names("node perl ruby php lua Rscript julia tclsh")
EVALUATES: Final = _names("timeit code pdb profile cProfile trace runpy IPython ipython")
"""Modules for `python -m` that execute any code passed to them."""

RUNNERS: Final = _names("uv poetry pdm hatch rye pipenv pipx conda mamba micromamba")
"""Programs that run another program in an environment, as in `uv run X`."""
ALONE: Final = _names("npx uvx bunx")
"""Programs that run another program without a subcommand, as in `npx X`."""

_CONTAINERS = "it can affect the whole machine or delete things"
ONLY: Final = {
    "git": "it can discard, publish or rewrite work, or run other programs",
    "docker": _CONTAINERS,
    "podman": _CONTAINERS,
    "kubectl": BEYOND,
}
"""Maps programs of which only the subcommands in the table of programs get suggested rules to the
reason.
"""
GH: Final = _names("view list status diff checks")
"""Actions that get suggested rules, as in `gh pr list` or `gh issue view`."""
TOOLS: Final = _names(
    """npm pnpm yarn bun cargo go pip gh make just task rake gradle gradlew mvn mvnw dotnet bundle
    composer rails mix deno tox nox nx turbo pre-commit swift flutter dart stack cabal bazel cmake
    meson ninja rustup"""
) | frozenset((*ONLY, *RUNNERS))
"""Programs whose second word is a subcommand."""
BAD_SECOND: Final = _names(
    """publish unpublish push delete destroy rm rmi prune purge exec x kill deploy release upload
    login logout config adduser token owner access yank eval shell repl console dlx create api
    auth secret cache global link self toolchain node runner runghc runhaskell ghci"""
)
"""Subcommands that never get a suggested rule, whatever the program."""
THIRD: Final = _names("run run-script compose pip mod tool pr issue repo workflow")
"""Subcommands whose effect depends on the next word, as in `npm run NAME`."""
INSTALLS: Final = _names("install i add ci get sync update upgrade")

READS: Final = _names(
    """cat head tail ls grep egrep fgrep wc stat file diff cmp du df nl od strings cut
    md5sum sha256sum realpath readlink basename dirname jq column comm paste tr"""
)
HARMLESS: Final = _names("echo pwd cd true false exit sleep date which type whoami id uname seq")
MAKES: Final = _names("mkdir touch mktemp mkfifo")
CHECKS: Final = _names("ruff mypy eslint tsc black isort flake8 prettier pyright")
"""Programs that check code, and may modify it."""

_LONGEST: Final = 1000
"""The longest sed or awk script, in characters, that is analysed."""
_EVALUATED: Final = r"(?s:[^\[]*\[(?:[^`$]|\$(?!\())*(?:\$\(|`).*)"
"""Matches an array subscript that contains a command substitution.

Bash executes the substitution wherever it expects a variable name, even in single quotes.
"""
_SCRIPT_RUNS: Final = {
    "sed": r"(?s:.*s(?P<s>[^\w\s])(?:(?!(?P=s)).)*(?P=s)(?:(?!(?P=s)).)*(?P=s)[gpiImM0-9]*[ew].*"
    r"|(?:.*[;{}\n!]|[\d$,/]*|/.*/)\s*[ewW](?:\s.*)?)",
    "awk": r"(?s:inplace|.*(?:\bsystem\s*\(|\|&?\s*(?:getline|\"\")|\bprint[^;}]*>).*)",
}
_EDITOR: Final = r"-c.*|--cmd.*|\+.*|-S.*|--eval.*|-eval|-l|--load.*|--script.*"
_OPTIONS_RUN: Final = {
    "tar": r"--checkpoint-action.*|--to-command.*|--use-compress-program.*|-I.*|--rsh-command.*"
    r"|--(?:info|new-volume)-script.*|-F.*",
    "sort": r"--compress-pro.*",
    "rsync": r"-[a-zA-Z]*e.*|--rsh.*|--rsync-path.*",
    "split": r"--fil.*",
    "zip": r"-[a-zA-Z]*TT.*|--unzip-command.*",
    "rg": r"--pre(?:=.*)?|--hostname-bin.*",
    "git": r"--upload-pack.*|--receive-pack.*|--exec.*|--open-files.*|-O.+|--extcmd.*",
    "man": r"-P.*|--pager.*|-H.*|--html.*",
    "env": r"-[a-zA-Z]*S.*|--split-string.*",
    "make": r"--eval.*|SHELL=.*",
    "cargo": r"--config.*",
    "go": r"--?(?:exec|toolexec|vettool|overlay)(?:=.*)?",
    "kubectl": r"--kubeconfig.*",
    "npm": r"--(?:sc|node-o).*",
    "mapfile": r"-C.*",
    "compgen": r"-C.*",
    "complete": r"-C.*",
    "bind": r"-x.*",
    "gdb": r"--?(?:ex|x|eval-command|command|iex|ix).*",
    "vim": _EDITOR,
    "emacs": _EDITOR,
    "sed": _SCRIPT_RUNS["sed"],
    "awk": _SCRIPT_RUNS["awk"],
    **dict.fromkeys(("printf", "test", "[", "read", "unset", "let", "wait"), _EVALUATED),
}
_SAME: Final = {
    **dict.fromkeys(("gtar", "bsdtar"), "tar"),
    **dict.fromkeys(("vi", "nvim", "ex", "view"), "vim"),
    **dict.fromkeys(("gawk", "mawk", "nawk"), "awk"),
    **dict.fromkeys(("gsed",), "sed"),
    **dict.fromkeys(("gmake",), "make"),
    **dict.fromkeys(("readarray",), "mapfile"),
    **dict.fromkeys(("declare", "local", "typeset", "export", "[["), "test"),
}
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_COMPILED: Final = {name: re.compile(pattern) for name, pattern in _OPTIONS_RUN.items()}


def hides_a_program(name: str, words: Iterable[str]) -> bool:
    """Return whether arguments make a known program start another or write a file.

    `name`: the program without its folder. `words`: its arguments, without quotes.
    """
    known = _SAME.get(name, name)
    pattern = _COMPILED.get(known)
    if known in _SCRIPT_RUNS:
        words = [_STRING.sub('""', word) if known == "awk" else word for word in words]
        if any(len(word) > _LONGEST for word in words):
            return True
    return pattern is not None and any(pattern.fullmatch(word) for word in words)
