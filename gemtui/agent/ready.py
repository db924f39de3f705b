"""A Gemini CLI that has been started and waits for its prompt.

The CLI reads its prompt from stdin, and waits as long as it likes once it has read the first
character (assets/gemini-cli.md#prompt). So it is started when the user begins to type, with this
character, and has loaded everything when the prompt is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from gemtui.agent.run_folder import Abort, Request, RunFolder, Waiting
from gemtui.processes import IndependentProcess


class ReadyCli:
    """A CLI that waits for its prompt, and its folder, which becomes that of the run.

    `files`: the texts of the files that were written for it. `changed`: returns whether anything
    has changed that the CLI reads when it starts. `supervisor`: the CLI's supervisor.
    """

    def __init__(
        self,
        folder: RunFolder,
        waiting: Waiting,
        files: Mapping[str, str],
        changed: Callable[[], bool],
        supervisor: IndependentProcess,
    ) -> None:
        self.folder, self.waiting, self.supervisor = folder, waiting, supervisor
        self._files, self._changed = files, changed
        self._is_sent = False

    def is_usable(self) -> bool:
        """Return whether the CLI waits, and is as if it were started now. Blocking."""
        is_waiting = self.folder.accepts_prompt and self.supervisor.poll() is None
        return is_waiting and not self._changed()

    def send(self, prompt: str, request: Request, files: Mapping[str, str]) -> bool:
        """Send the prompt; return False if the CLI can't be used for this run.

        Blocking. `request`, `files`: those of the run if it were started now. They must be the same
        as when the CLI was started, except for the prompt. Raises OSError.
        """
        unsent = replace(request, about={**request.about, "prompt": ""})
        is_same = (unsent, files) == (self.waiting.request, self._files)
        if not (is_same and prompt.startswith(self.waiting.first) and self.is_usable()):
            return False
        if not self.folder.claim():
            return False
        self.folder.write(self.folder.prompt.name, prompt)
        self.folder.write_request(request)
        self._is_sent = True
        return True

    def end(self) -> None:
        """End the CLI, unless it has got its prompt. Its supervisor then removes the folder."""
        if not self._is_sent:
            with suppress(OSError):
                self.folder.abort(Abort.TERM)
