"""Reduce sentences as people write them to simple ones: a decision, and one object.

`edit only src, don't push` becomes: allow `edit src/**`, deny `edit`, deny `git push`. Only known
forms are reduced, because a wrong guess could allow what the user believes to be denied. The answer
to any other sentence is an example that resembles it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gemtui.calls.shell.program_table import program_table
from gemtui.files import is_file, path_exists
from gemtui.policy.model.rules import Decision
from gemtui.processes import find_program

REST = "everything else"
_NOUN_KINDS = {
    "shell": "run",
    "command": "run",
    "commands": "run",
    "network": "network",
    "internet": "network",
    "web": "network",
    "agents": "agents",
    "subagents": "agents",
}
_VERB_KINDS = {
    "read": "read",
    "reads": "read",
    "reading": "read",
    "edit": "edit",
    "edits": "edit",
    "editing": "edit",
    "write": "edit",
    "writes": "edit",
    "writing": "edit",
    "change": "edit",
    "changes": "edit",
    "changing": "edit",
    "modify": "edit",
    "modifying": "edit",
    "run": "run",
    "running": "run",
    "execute": "run",
    "executing": "run",
}
_KINDS = {**_NOUN_KINDS, **_VERB_KINDS}
"""Maps the words that begin an object to the kind of tools that they mean."""
_DENY = r"deny|never|forbid|block|do not|don't|dont|not|no|cannot|can't"
_VERB = re.compile(
    rf"(?:(?P<deny>{_DENY})|(?P<ask>ask)(?: me)?(?: first)?(?: (?:before|for|about))?"
    rf"|(?P<allow>allow|permit))(?: |$)",
    re.IGNORECASE,
)
_DENY_WORDS = re.compile(
    rf"\b(?:{_DENY}|avoid|without|stop|denied|forbidden|leave|keep|out)\b", re.IGNORECASE
)
"""Matches words after which an example should deny something."""
_POLITE = re.compile(
    r"(?:(?:please|you|it|the agent|may|can|should|must|let|always|also|to|ever) )+", re.IGNORECASE
)
"""Matches words before or after the verb that don't change what a sentence means."""
_VERBS = _DENY.replace("|not", "") + "|ask|allow|permit"
_START = rf"(?:{_VERBS}|only|nothing|please|you|always|may|can|must)\b"
_JOINT = re.compile(
    rf"[;\n]|(?<=[a-z*/'\"`])\.(?=\s|$)"
    rf"|,\s+(?:and |but )?(?={_START})|\s+(?:and|but)\s+(?={_START})"
    rf"|(?<!\bread)(?<!\bedit)(?<!\bwrite)(?<!\bchange)(?<!\brun),\s+(?:and )?"
    rf"(?=(?:{'|'.join(_KINDS)}|use)\b)",
    re.IGNORECASE,
)
"""Separates sentences. A comma or “and” does so only before a word that can begin one."""
_LIST = re.compile(r",\s*(?:and |or |nor )?|\s+(?:and|or|nor)\s+", re.IGNORECASE)
_EXCEPT = re.compile(
    r",?\s+(?:except|apart from|other than|(?:but|and) not|(?<=all )but|(?<=thing )but)"
    r"(?: for)?\s+|,\s+not\s+",
    re.IGNORECASE,
)
_RESTS = re.compile(r"(?:all|any ?thing|every ?thing|the rest|rest)(?: else)?", re.IGNORECASE)
_TESTS = re.compile(r"(?:(?:the|all|its|unit) )*(?:tests|test suite)", re.IGNORECASE)
_TEST_COMMANDS = {
    "package.json": ("npm test", "npm run test"),
    "yarn.lock": ("yarn test",),
    "pnpm-lock.yaml": ("pnpm test",),
    "pyproject.toml": ("pytest", "python -m pytest"),
    "setup.cfg": ("pytest", "python -m pytest"),
    "pytest.ini": ("pytest", "python -m pytest"),
    "uv.lock": ("uv run pytest",),
    "poetry.lock": ("poetry run pytest",),
    "tox.ini": ("tox",),
    "Cargo.toml": ("cargo test",),
    "go.mod": ("go test",),
    "pom.xml": ("mvn test",),
    "gradlew": ("./gradlew test",),
}
"""The commands that run a project's tests, by a file that such a project has."""
_GIT_COMMANDS = {
    **dict.fromkeys(("push", "pushes", "pushing"), "push"),
    **dict.fromkeys(("commit", "commits", "committing"), "commit"),
    **dict.fromkeys(("merge", "merges", "merging"), "merge"),
    **dict.fromkeys(("rebase", "rebasing"), "rebase"),
    **dict.fromkeys(("reset", "resetting"), "reset"),
    **dict.fromkeys(("stash", "stashing"), "stash"),
    **dict.fromkeys(("tag", "tagging"), "tag"),
    "checkout": "checkout",
}
"""Subcommands of git that people name without git, in the forms that they use."""
_BEFORE = {"the", "a", "any", "all", "each", "every", "use", "using", "access", "to", "of"}
"""Words before an object that don't change what it means."""
_ANY_FILE = {*_BEFORE, "file", "files", "anything", "everything", "code"}
_AROUND_FILES = {*_ANY_FILE, "in", "into", "inside", "below", "under", "within", "folder"}
_AROUND_OTHERS = {*_BEFORE, "command", "commands", "program", "programs", "anything", "everything"}
_AROUND_OTHERS |= {"access", "search", "searches", "requests"}
_NO_COMMAND = {
    *("a", "about", "after", "an", "and", "any", "anything", "anywhere", "are", "before", "but"),
    *("commands", "dependencies", "else", "everything", "except", "files", "folders", "for"),
    *("from", "if", "in", "into", "is", "it", "me", "my", "never", "not", "nothing", "of", "only"),
    *("or", "outside", "packages", "programs", "that", "the", "them", "things", "to", "unless"),
    *("when", "with", "without", "you", "your"),
}
"""Words of English that don't occur in commands, so what they are in is none."""
_ALSO_ENGLISH = {
    *("at", "clear", "cut", "enable", "export", "file", "find", "halt", "install", "join", "kill"),
    *("look", "mount", "move", "open", "patch", "read", "script", "service", "set", "show"),
    *("source", "split", "start", "test", "time", "trap", "type", "wait", "watch"),
}
"""Programs whose names are also words that begin sentences, as in `never start servers`."""
_NEAR = {
    "git push": ("push", "pushes", "pushing", "publish", "remote"),
    "git commit": ("commit", "commits", "committing"),
    "rm": ("delete", "deleting", "remove", "removing", "erase", "destroy"),
    "npm install": ("install", "installing", "packages", "dependencies"),
    "npm test": ("test", "tests", "testing"),
    "npm run lint": ("lint", "linter", "linters", "linting", "format", "formatter"),
    "npm run build": ("build", "building", "compile", "compiling"),
    "network": ("web", "internet", "network", "online", "download", "fetch", "url", "search"),
    "read .env": ("secret", "secrets", "passwords", "keys", "credentials", ".env", "read", "see"),
    "agents": ("agent", "agents", "subagent", "subagents"),
    "mcp github": ("mcp", "server", "servers"),
    "edit src/**": ("edit", "write", "change", "modify", "file", "files", "touch", "stay"),
    "run": ("command", "commands", "shell", "terminal", "bash", "run", "execute"),
    REST: ("rest", "else", "everything", "anything", "nothing"),
}
"""Objects of examples, by words of sentences that are like them."""


class SimpleSentence(NamedTuple):
    """What a sentence, or a part of one, says about one object.

    `object`: as in `edit src/**`, `git push`, or `everything else`; in quotes if the user wrote it
    so, and then it is taken as it is.
    """

    decision: Decision
    object: str


class UnclearSentence(ValueError):
    """A sentence that has no known form."""


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences."""
    parts = (" ".join(part.split()) for part in _JOINT.split(text.replace("’", "'")))
    parts = (re.sub(r"^(?:and|but|then|[-*•]|\d+[.)]) ", "", part).rstrip("!") for part in parts)
    return [part for part in parts if part]


def simple_sentences(text: str, project: Path | None) -> list[SimpleSentence]:
    """Return the simple sentences that a sentence stands for.

    Raises UnclearSentence for a sentence that has no known form, and ValueError, with a remedy, for
    one that lacks something.
    """
    if text.lower() in ("nothing else", "nothing"):
        return [SimpleSentence(Decision.DENY, REST)]
    base, *exceptions = _EXCEPT.split(_without_polite(text))
    decision, words = _verb_of(base)
    made = list(_Objects(decision, project).read(words))
    kind = made[0].object.partition(" ")[0]
    opposite = Decision.DENY if made[0].decision is Decision.ALLOW else Decision.ALLOW
    if exceptions and opposite is Decision.ALLOW and made[0].object not in (REST, *_KINDS.values()):
        raise UnclearSentence("a part of what is denied can't be allowed")
    for exception in exceptions:
        reader = _Objects(opposite, project, kind if kind in ("read", "edit", "run") else "")
        made += reader.read(exception)
    return made


def example_near(text: str, project: Path | None) -> str:
    """Return a sentence that has a known form and resembles one that hasn't."""
    words = text.lower().replace(",", " ").split()
    verb = "allow"
    if {"ask", "asks", "asking", "confirm", "question"} & {*words}:
        verb = "ask"
    elif re.search(
        rf"\b(?:{_DENY}|avoid|without|stop|denied|forbidden|leave|keep|out)\b", text, re.IGNORECASE
    ):
        verb = "never"
    for word in text.split():
        if re.fullmatch(r"[\w.-]+", word) and _is_there(project, word):
            return f"never edit {word}" if verb == "never" else f"edit only {word}"
    for example, like in _NEAR.items():
        if {*words} & {*like}:
            return f"{'deny' if verb == 'never' and example == REST else verb} {example}"
    for word in words:
        if program_table().knows(word) and word not in _ALSO_ENGLISH:
            return f"{verb} {word}"
    return f"{verb} edit src/**"


def is_quoted(text: str) -> bool:
    """Return whether a user put an object in quotes, so that it is taken as it is."""
    return bool(text[1:-1].strip()) and text[0] == text[-1] and text[0] in "'\"`"


def check_command(words: tuple[str, ...], project: Path | None) -> None:
    """Raise UnclearSentence for words that are probably no command, but English."""
    program = words[0]
    is_program = program_table().knows(program) or find_program(program) is not None
    if "/" in program:
        is_script = project is not None and is_file(project / program)
        is_program = is_script or program.startswith(("./", "/", "~"))
    if program in _ALSO_ENGLISH and words[1:]:
        is_program = not all(map(str.isalpha, words[1:]))
    has_english = any(word.lower().rstrip(",") in _NO_COMMAND for word in words)
    if not is_program or has_english:
        raise UnclearSentence(f"“{' '.join(words)}” is no known command, and it isn't in quotes")


def _is_there(project: Path | None, name: str) -> bool:
    return project is not None and name not in ("", ".", "..") and path_exists(project / name)


def _verb_of(text: str) -> tuple[Decision, str]:
    """Return a sentence's decision and what follows its verb."""
    verb = _VERB.match(text)
    if verb is not None:
        words = _without_polite(text[verb.end() :])
        if not words:
            raise ValueError(f"say what to {verb[0].strip()}, such as edit src/** or npm test")
        if verb["deny"] is None:
            return Decision.ALLOW if verb["allow"] else Decision.ASK_USER, words
        if verb["deny"].lower() != "deny":
            words = re.sub(r"^touch ", "edit ", words)
        return Decision.DENY, re.sub(r"^allow ", "", words)
    first = text.partition(" ")[0].lower().removesuffix("-only")
    if first not in (*_KINDS, "only", "use", *_GIT_COMMANDS.values()):
        raise UnclearSentence("start with allow, ask, deny or never")
    return Decision.ALLOW, text


def _without_polite(text: str) -> str:
    polite = _POLITE.match(f"{text} ")
    return text[polite.end() :] if polite else text


class _Objects:
    """Reads the objects after a sentence's verb, which may be several.

    `kind`: the kind of tools that an object without one is about; "" if only commands, names of
    tools and the like can be meant.
    """

    def __init__(self, decision: Decision, project: Path | None, kind: str = "") -> None:
        self._decision, self._project, self._kind = decision, project, kind
        self._is_git = False
        self._denied: list[str] = []
        """What “only” denies: kinds, or everything else."""

    def read(self, text: str) -> Iterator[SimpleSentence]:
        """Yield what the sentence says of each object."""
        if text.lower() == "read-only":
            text = "read only"
        only_all = re.match(r"only ", text, re.IGNORECASE) is not None
        parts = [text] if is_quoted(text) else _LIST.split(text)
        for at, part in enumerate(parts):
            words = part.split()
            only = only_all or "only" in map(str.lower, words)
            if only and self._decision is not Decision.ALLOW:
                raise UnclearSentence("“only” can only be said of what is allowed")
            words = [word for word in words if word.lower() != "only"]
            if at + 1 < len(parts) and self._is_bare(words):
                words += self._files_after(parts[at + 1])
            yield from self._object(words, only=only)
        for denied in dict.fromkeys(self._denied):
            yield SimpleSentence(Decision.DENY, denied)

    def _is_bare(self, words: list[str]) -> bool:
        return len(words) == 1 and _KINDS.get(words[0].lower()) in ("read", "edit")

    def _files_after(self, part: str) -> list[str]:
        """Return the files of the next part, as for `read` in `read and edit src`."""
        kind, _, files = part.partition(" ")
        return files.split() if _KINDS.get(kind.lower()) in ("read", "edit") else []

    def _object(self, words: list[str], *, only: bool) -> Iterator[SimpleSentence]:
        if not words:
            raise UnclearSentence("it doesn't say about what")
        text = " ".join(words)
        if _RESTS.fullmatch(text) and not self._kind:
            yield SimpleSentence(self._decision, REST)
            return
        while len(words) > 1 and words[0].lower() in _BEFORE:
            words = words[1:]
        if words[0] == "make" and words[1:] and words[1].lower() in {*_KINDS, *_GIT_COMMANDS}:
            words = words[1:]
        if words and words[0].lower() in _KINDS:
            self._kind, words = _KINDS[words[0].lower()], words[1:]
            if words[:1] == ["nothing"] and words[1:] in ([], ["else"]):
                yield SimpleSentence(Decision.DENY, self._kind)
                return
        elif words and not _is_there(self._project, text) and self._of_git(words[0].lower()):
            self._kind = ""
            words = ["git", self._of_git(words[0].lower()), *words[1:]]
        self._is_git = words[:1] == ["git"]
        if self._kind in ("read", "edit"):
            yield from self._files(words, only=only)
        else:
            yield from self._others(words, only=only)

    def _of_git(self, word: str) -> str:
        """Return the subcommand of git that a word means; "" if it means none."""
        if self._is_git and word in program_table().subcommands("git"):
            return word
        return _GIT_COMMANDS.get(word, "")

    def _files(self, words: list[str], *, only: bool) -> Iterator[SimpleSentence]:
        kind = self._kind
        outside = "outside" in words
        if outside and self._decision is Decision.ALLOW:
            raise UnclearSentence("what is outside of a folder can't be allowed")
        is_kind_of_file = words[-1:] == ["files"]
        if not _is_there(self._project, " ".join(words)):
            words = _trimmed(words, {*_AROUND_FILES, "outside"} if outside else _AROUND_FILES)
        path = " ".join(words)
        if not path:
            self._denied += [REST] * only
            yield SimpleSentence(self._decision, kind)
            return
        if not is_quoted(path) and not _is_there(self._project, path):
            if len(words) > 1 or is_kind_of_file:
                raise UnclearSentence(f"“{path}” is no file or folder of the project")
            if self._decision is Decision.ALLOW and path.isalpha() and path.islower():
                path = self._folder(path)
        if not (only or outside):
            yield SimpleSentence(self._decision, f"{kind} {path}")
            return
        self._denied += [kind] * only
        yield SimpleSentence(Decision.ALLOW, f"{kind} {self._folder(path)}")
        if outside:
            yield SimpleSentence(self._decision, kind)

    def _folder(self, path: str) -> str:
        """Return the path with an ending that says that it is a folder, if it isn't a file."""
        is_one_file = self._project is not None and is_file(self._project / path)
        if is_quoted(path) or is_one_file or "." in path.rstrip("/").rpartition("/")[2].lstrip("*"):
            return path
        return f"{path.removesuffix('/**').rstrip('/')}/**"

    def _others(self, words: list[str], *, only: bool) -> Iterator[SimpleSentence]:
        kind = self._kind
        text = " ".join(words)
        if _TESTS.fullmatch(text):
            self._denied += ["run"] * only
            for command in _test_commands(self._project):
                yield SimpleSentence(self._decision, command)
            return
        if kind == "run" and _trimmed(words, _AROUND_OTHERS):
            words = words[words[0].lower() in _BEFORE :]
        elif kind:
            words = _trimmed(words, _AROUND_OTHERS)
        if not words:
            self._denied += [REST] * only
            yield SimpleSentence(self._decision, kind)
            return
        is_tool = words[0] == "mcp" or (kind != "run" and "_" in words[0])
        self._denied += [REST if is_tool else "run"] * only
        yield SimpleSentence(self._decision, " ".join([kind] * bool(kind) + words))


def _trimmed(words: list[str], around: set[str]) -> list[str]:
    """Return the words without those at both ends that say nothing about the object."""
    start = 0
    end = len(words)
    while start < end and words[start].lower() in around:
        start += 1
    while start < end and words[end - 1].lower() in around:
        end -= 1
    return words[start:end]


def _test_commands(project: Path | None) -> list[str]:
    """Return the commands that run a project's tests. Raises ValueError if they are unknown."""
    commands: list[str] = []
    for file, runners in _TEST_COMMANDS.items():
        if _is_there(project, file):
            commands += runners
    if not commands:
        raise ValueError("name the command that runs the tests, such as: allow npm test")
    return list(dict.fromkeys(commands))
