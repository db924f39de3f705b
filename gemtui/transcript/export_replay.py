"""Export a transcript as an HTML page that plays it back at its recorded times.

Each step is the beginning of a message or one of its blocks, at its recorded time. Without scripts,
and in print, the page shows everything at once. The style sheet and the script are fixed strings,
which the page allows by their hashes. All untrusted text is in elements of the page. The script
reads numbers from these elements and shows or hides them; it never creates elements from text.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from gemtui.transcript.export_html import (
    STYLE,
    block_elements,
    message_end,
    message_head,
    note_html,
    page_head,
)
from gemtui.transcript.export_words import ExportHeading, passages
from gemtui.transcript.model import Block, Message, Thought, ToolCall, Transcript

REPLAY_STYLE = f"""{STYLE}
#player {{ display: none; }}
.playing #player {{
  display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; position: sticky; top: 0;
  padding: .5rem 0; background: var(--page); border-bottom: 1px solid var(--line); z-index: 1;
}}
#player button, #player select {{ font: inherit; color: inherit; background: var(--code);
  border: 1px solid var(--line); border-radius: 4px; padding: .2rem .6rem; }}
#player input[type=range] {{ flex: 1 1 12rem; }}
.playing .waits {{ display: none; }}
@media print {{ .playing #player {{ display: none; }} .playing .waits {{ display: revert; }} }}
"""

PLAYER = """<div id="player" role="group" aria-label="Player">
<button id="play" type="button">Play</button>
<button id="back" type="button" title="Left arrow">Back</button>
<button id="step" type="button" title="Right arrow">Step</button>
<input id="place" type="range" min="0" value="0" aria-label="Step">
<span id="clock"></span>
<label>Speed <select id="speed"><option value="1">1x</option><option value="2">2x</option>
<option value="5" selected>5x</option><option value="20">20x</option><option value="60">60x</option>
</select></label>
<label><input id="short" type="checkbox" checked> Shorten waits to 10 s</label>
</div>
"""

SCRIPT = """'use strict';
(function () {
  var byId = function (id) { return document.getElementById(id); };
  var steps = Array.prototype.slice.call(document.querySelectorAll('[data-at]'));
  var times = steps.map(function (step) { return Number(step.getAttribute('data-at')) || 0; });
  var play = byId('play'), place = byId('place'), clock = byId('clock');
  var speed = byId('speed'), short = byId('short');
  var shown = 0, timer = null;
  var two = function (number) { return (number < 10 ? '0' : '') + number; };
  var words = function (ms) {
    var all = Math.floor(ms / 1000);
    return Math.floor(all / 3600) + ':' + two(Math.floor(all / 60) % 60) + ':' + two(all % 60);
  };
  var show = function (count) {
    shown = Math.max(0, Math.min(steps.length, count));
    steps.forEach(function (step, index) { step.classList.toggle('waits', index >= shown); });
    place.value = String(shown);
    var now = shown ? times[shown - 1] : 0;
    clock.textContent = words(now) + ' / ' + words(times.length ? times[times.length - 1] : 0);
    if (shown) { steps[shown - 1].scrollIntoView({ block: 'nearest' }); }
  };
  var stop = function () {
    if (timer !== null) { clearTimeout(timer); }
    timer = null;
    play.textContent = 'Play';
  };
  var next = function () {
    if (shown >= steps.length) { stop(); return; }
    var wait = shown ? times[shown] - times[shown - 1] : 0;
    if (short.checked) { wait = Math.min(wait, 10000); }
    timer = setTimeout(function () { show(shown + 1); next(); }, wait / Number(speed.value));
  };
  var start = function () {
    if (shown >= steps.length) { show(0); }
    play.textContent = 'Pause';
    next();
  };
  var toggle = function () { if (timer === null) { start(); } else { stop(); } };
  var move = function (count) { stop(); show(count); };
  var again = function () { if (timer !== null) { stop(); start(); } };
  play.addEventListener('click', toggle);
  byId('back').addEventListener('click', function () { move(shown - 1); });
  byId('step').addEventListener('click', function () { move(shown + 1); });
  place.addEventListener('input', function () { move(Number(place.value)); });
  speed.addEventListener('change', again);
  short.addEventListener('change', again);
  document.addEventListener('keydown', function (event) {
    var tag = event.target && event.target.tagName;
    if (/^(INPUT|SELECT|BUTTON|SUMMARY)$/.test(tag || '')) { return; }
    if (event.ctrlKey || event.altKey || event.metaKey) { return; }
    if (event.key === ' ') { toggle(); }
    else if (event.key === 'ArrowLeft') { move(shown - 1); }
    else if (event.key === 'ArrowRight') { move(shown + 1); }
    else { return; }
    event.preventDefault();
  });
  place.max = String(steps.length);
  document.documentElement.classList.add('playing');
  show(Math.min(1, steps.length));
}());
"""


def to_replay(
    transcript: Transcript, summary: ExportHeading, *, dropped: bool = False
) -> Iterator[str]:
    """Yield a transcript as a page that plays it back, one message at a time.

    `summary`: the facts for the heading. `dropped`: include the messages that are no longer part of
    the conversation.
    """
    yield from page_head(summary, REPLAY_STYLE, script=SCRIPT)
    yield PLAYER
    clock = _Clock()
    for passage in passages(transcript, dropped=dropped):
        if isinstance(passage, str):
            yield _step(clock.now, note_html(passage))
        else:
            yield "".join(_message(passage, clock))
    yield f"</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"


class _Clock:
    """Counts milliseconds since the first known time, and never goes back."""

    def __init__(self) -> None:
        self.now = 0
        self._first: datetime | None = None

    def at(self, time: datetime | None) -> int:
        if time is not None:
            self._first = self._first or time
            self.now = max(self.now, (time - self._first) // timedelta(milliseconds=1))
        return self.now


def _message(message: Message, clock: _Clock) -> Iterator[str]:
    head = message_head(message).removeprefix("<article ")
    yield f'<article data-at="{clock.at(message.time)}" {head}'
    for index, block in enumerate(message.blocks):
        elements = "".join(block_elements(block))
        time = _time(block)
        yield elements if index == 0 and time is None else _step(clock.at(time), elements)
    yield message_end(message)


def _time(block: Block) -> datetime | None:
    return block.time if isinstance(block, Thought | ToolCall) else None


def _step(at: int, elements: str) -> str:
    return f'<div data-at="{at}">\n{elements}</div>\n'
