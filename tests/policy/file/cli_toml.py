"""The TOML reader of the installed CLI, taken out of its bundle: one Node process for all texts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_BEGIN = "// node_modules/@iarna/toml/lib/parser.js"
_END = "// node_modules/@iarna/toml/parse-async.js"
_CHILD = r"""
const fs = require("fs");
const source = fs.readFileSync(process.argv[1], "utf8");
const commonJs = (parts) => {
  let module;
  return () => {
    if (!module) { module = {exports: {}}; Object.values(parts)[0](module.exports, module); }
    return module.exports;
  };
};
const names = ["__commonJS", "require", "global"];
const made = new Function(...names, source + "return require_parse_string()");
const parse = made(commonJs, require, globalThis);
const told = (value) => {
  if (value instanceof Date) return {moment: true};
  if (typeof value === "bigint") return {unsafe: true};
  if (typeof value === "number") return {number: Number.isFinite(value) ? value : String(value)};
  if (Array.isArray(value)) return value.map(told);
  if (value && typeof value === "object")
    return {table: Object.entries(value).map(([key, each]) => [key, told(each)])};
  return value;
};
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  let answer;
  try { answer = {read: told(parse(JSON.parse(line)))}; }
  catch (error) { answer = {refused: String(error.message)}; }
  fs.writeSync(1, JSON.stringify(answer) + "\n");
});
"""


class CliToml:
    """The CLI's reader; leaving it ends its process."""

    def __init__(self, program: Path, folder: Path) -> None:
        """Start it. `folder`: where its source is put."""
        chunks = map(_text, sorted(program.resolve().parent.glob("chunk-*.js")))
        text = next(text for text in chunks if _BEGIN in text)
        source = folder / "toml.js"
        source.write_text(text[text.index(_BEGIN) : text.index(_END)], "utf-8")
        self._child = subprocess.Popen(
            ["node", "-e", _CHILD, str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def read(self, text: str) -> Any:
        """What it makes of a text, in the form of `told`; None where it refuses it."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        print(json.dumps(text), file=self._child.stdin, flush=True)
        return json.loads(self._child.stdout.readline()).get("read")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._child:
            self._child.terminate()


def _text(path: Path) -> str:
    return path.read_text("utf-8")
