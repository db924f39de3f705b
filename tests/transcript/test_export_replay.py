"""The page that plays a session: what is in it, and what its script does."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from shutil import which

import pytest

from gemtui.transcript.export_replay import SCRIPT, to_replay
from gemtui.transcript.model import Author, Message, Text, Thought, ToolCall, ToolStatus, Transcript
from tests.patience import PATIENCE
from tests.transcript.test_export import HOSTILE_ABOUT, Page, exported, hostile_transcript, message

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def said(author: Author, time: datetime | None, *blocks: Text | Thought | ToolCall) -> Message:
    return Message(id=f"{author}-{time}", author=author, blocks=blocks, time=time)


def call(time: datetime) -> ToolCall:
    return ToolCall(id="c", name="glob", args={}, status=ToolStatus.SUCCESS, time=time)


TALK = Transcript.of(
    [
        said(Author.USER, at(0), Text(text="Look for it")),
        said(
            Author.MODEL,
            at(2.5),
            Thought(subject="Plan", description="", time=at(2)),
            Text(text="I look."),
            call(at(4)),
            call(at(100)),
        ),
        said(Author.SYSTEM, None, Text(text="No time")),
        said(Author.USER, at(90), Text(text="A clock that went back")),
    ]
)


def test_steps_have_the_times_of_the_session_and_never_go_back() -> None:
    page = exported(to_replay, TALK)
    times = [int(each) for each in re.findall(r'data-at="(\d+)"', page)]
    assert times == [0, 2500, 2500, 2500, 4000, 100_000, 100_000, 100_000]


def test_a_page_permits_only_its_own_script_and_style() -> None:
    page = exported(to_replay, TALK)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for name, tag in (("script-src", "script"), ("style-src", "style")):
        ((content),) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = b64encode(sha256(content.encode()).digest()).decode()
        assert rules.pop(name) == f"'sha256-{digest}'"
    assert rules == {
        "default-src": "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", page)
    for power in ("innerHTML", "eval", "Function(", "fetch", "XMLHttp", "document.write", "import"):
        assert power not in SCRIPT


def test_hostile_text_makes_no_elements_and_leaves_the_script_alone() -> None:
    page = Page(exported(to_replay, hostile_transcript(), HOSTILE_ABOUT, dropped=True))
    assert page.open == []
    assert page.tags.count("script") == 1
    assert not {name for name in page.names if name.startswith("on")}
    breakout = "</script><script>alert(1)</script><!-- <script> ]]> \u2028"
    text = exported(to_replay, Transcript.of([message(Author.USER, Text(text=breakout))]))
    assert text.count("<script>") == text.count("</script>") == 1


DOM = """
const times = TIMES, log = [];
const listeners = {};
const element = (id) => ({
  id, value: '', max: '', textContent: '', checked: false,
  addEventListener: (name, act) => { listeners[id + ' ' + name] = act; },
});
const known = {};
for (const id of ['play', 'back', 'step', 'place', 'clock', 'speed', 'short']) {
  known[id] = element(id);
}
known.speed.value = '5'; known.short.checked = true;
const steps = times.map((time) => ({
  waits: false, getAttribute: () => String(time), scrollIntoView: () => {},
  classList: { toggle(name, on) { this.owner.waits = on; } },
}));
steps.forEach((step) => { step.classList.owner = step; });
let timers = [], clock = 0;
globalThis.setTimeout = (act, wait) => { timers.push([clock + wait, act]); return timers.length; };
globalThis.clearTimeout = () => { timers = []; };
globalThis.document = {
  getElementById: (id) => known[id], querySelectorAll: () => steps,
  documentElement: { classList: { add: () => {} } },
  addEventListener: (name, act) => { listeners['document ' + name] = act; },
};
const count = () => steps.filter((step) => !step.waits).length;
const note = (what) => log.push([what, count(), clock, known.play.textContent]);
const run = () => {
  while (timers.length) { const [at, act] = timers.shift(); clock = at; act(); note('timer'); }
};
const key = (name) => listeners['document keydown']({ key: name, preventDefault: () => {} });
"""
ACTS = """
note('start');
key('ArrowRight'); note('step');
listeners['back click'](); note('back');
key(' '); note('play'); run();
known.speed.value = '1'; known.short.checked = false;
key(' '); key(' '); note('pause');
known.place.value = '4'; listeners['place input'](); note('place');
key(' '); timers.length = 1; const [when, act] = timers.shift(); log.push(['wait', when - clock]);
console.log(JSON.stringify(log));
"""


@pytest.mark.skipif(which("node") is None, reason="no Node.js to run the script with")
def test_the_script_plays_pauses_steps_and_shortens_waits(tmp_path: Path) -> None:
    """On a stand-in for the page's elements, with a clock of its own."""
    program = tmp_path / "play.js"
    times = [0, 2500, 4000, 100_000, 160_000]
    program.write_text(DOM.replace("TIMES", json.dumps(times)) + SCRIPT + ACTS)
    done = subprocess.run(["node", program], capture_output=True, check=True, timeout=PATIENCE)
    assert json.loads(done.stdout) == [
        ["start", 1, 0, ""],
        ["step", 2, 0, "Play"],
        ["back", 1, 0, "Play"],
        ["play", 1, 0, "Pause"],
        ["timer", 2, 500, "Pause"],
        ["timer", 3, 800, "Pause"],
        ["timer", 4, 2800, "Pause"],
        ["timer", 5, 4800, "Play"],
        ["pause", 0, 4800, "Play"],
        ["place", 4, 4800, "Play"],
        ["wait", 60_000],
    ]
