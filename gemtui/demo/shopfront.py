"""The demo's TypeScript front end: a bundle, a long clean-up, a picture, a refused edit."""

from __future__ import annotations

import base64
import struct
import zlib
from datetime import datetime, timedelta
from pathlib import Path

from gemtui.demo import shopfront_files as text
from gemtui.demo.calls import mcp, web
from gemtui.demo.chat import Chat
from gemtui.demo.workspace import CANCELLED, Workspace, failed

FLASH = "gemini-2.5-flash"


def tell(home: Path, now: datetime) -> Workspace:
    """Write all sessions of the project; returns its files as they are at the end."""
    work = Workspace(home / "src" / "shopfront", "shopfront", old=True)
    chats = home / ".gemini" / "tmp" / work.slug / "chats"
    work.files |= {
        "package.json": text.PACKAGE,
        "src/Checkout.tsx": text.CHECKOUT,
        "src/cart.ts": text.CART,
        "src/format.ts": text.FORMAT,
    }
    for name in text.COMPONENTS:
        work.files[f"src/ui/{name}.tsx"] = text.component(name)
        work.files[f"src/ui/{name}.stories.tsx"] = text.story(name)
    bundle(work, now - timedelta(days=15, hours=5)).write_old(chats)
    work.old = False
    tokens(work, now - timedelta(days=9, hours=7)).write(chats)
    spacing(work, now - timedelta(days=4, hours=2)).write(chats)
    money(work, now - timedelta(days=1, hours=1)).write(chats)
    german(work, now - timedelta(minutes=50)).write(chats)
    Chat(work, "nothing asked", start=now - timedelta(days=1, hours=3)).write(chats)
    return work


def bundle(work: Workspace, when: datetime) -> Chat:
    """A build before and after, and a table from an MCP server."""
    chat = Chat(work, "bundle", start=when, model=FLASH)
    chat.ask("Why is the bundle so big?")
    before = (
        "vite v6.0.3 building for production...\n✓ 214 modules transformed.\n"
        "dist/assets/index-4f1c.js   287.31 kB │ gzip: 96.04 kB\n✓ built in 2.41s"
    )
    chat.say("", work.shell("npx vite build", before, why="Measure", seconds=3.1))
    chunks = [
        {"module": "lodash", "kB": 71.5, "share": "25%", "imported by": "src/cart.ts"},
        {"module": "react-dom", "kB": 132.2, "share": "46%", "imported by": "src/main.tsx"},
        {"module": "src/ui", "kB": 58.9, "share": "20%", "imported by": "src/main.tsx"},
        {"module": "everything else", "kB": 24.7, "share": "9%", "imported by": "–"},
    ]
    chat.say(
        "Let me see what is in it.",
        mcp("bundle", "largest_modules", {"limit": 4}, chunks),
        work.grep("lodash"),
    )
    chat.say(
        "A quarter of it is **lodash**, for two calls in `src/cart.ts`. The language has both.",
        work.replace("src/cart.ts", 'import _ from "lodash";\n\n', "", "Drop lodash."),
        work.replace(
            "src/cart.ts",
            "  return _.sumBy(lines, (line) => line.price * line.count);\n",
            "  return lines.reduce((sum, line) => sum + line.price * line.count, 0);\n",
            "Sum without lodash.",
        ),
        work.replace(
            "src/cart.ts",
            "  const found = _.find(lines, { sku });\n",
            "  const found = lines.find((line) => line.sku === sku);\n",
            "Find without lodash.",
        ),
        work.replace("package.json", '"lodash": "^4.17.21", ', "", "Drop the dependency."),
    )
    after = before.replace("214", "211").replace("287.31", "215.64").replace("96.04", "70.88")
    chat.say("", work.shell("npx vite build", after, why="Measure again", seconds=2.8))
    chat.say("The bundle went from 287 kB to 216 kB (71 kB gzipped) without lodash.")
    return chat


def tokens(work: Workspace, when: datetime) -> Chat:
    """A long clean-up, component by component: more than 300 messages."""
    chat = Chat(work, "tokens", start=when)
    chat.ask(
        "Replace the colours written into our components with design tokens. One component at a "
        "time, with its story, and run its test each time."
    )
    chat.say("The tokens first.", work.write("src/tokens.css", text.TOKENS), work.list("src/ui"))
    for number, name in enumerate(text.COMPONENTS):
        if number and number % 12 == 0:
            chat.say(f"{number} of {len(text.COMPONENTS)} components use tokens now.")
            chat.ask("Go on")
        _use_tokens(chat, work, name, number)
    chat.say("", work.grep("#[0-9a-f]{6}"))
    chat.say(
        f"All {len(text.COMPONENTS)} components and their stories use the five tokens of "
        "`src/tokens.css`; no other file has a colour of its own."
    )
    chat.call_it("Replace colours with design tokens")
    return chat


def _use_tokens(chat: Chat, work: Workspace, name: str, number: int) -> None:
    path, story, colour = f"src/ui/{name}.tsx", f"src/ui/{name}.stories.tsx", text.colour_of(name)
    token = text.TOKEN_OF[colour]
    chat.say(f"Next: `{name}`.", work.read(path), work.read(story))
    new, why = f'"var(--{token})"', f"Use the {token} token."
    chat.say("", work.replace(path, f'"{colour}"', new, why))
    chat.say("", work.replace(story, '"#fafafa"', '"var(--paper)"', "Use the paper token."))
    test = f"npx vitest run {name}"
    if number % 17 == 9:
        snapshot = f"FAIL  src/ui/{name}.test.tsx > {name} > matches its snapshot\n"
        chat.say("", work.shell(test, snapshot + "1 failed | 2 passed", code=1, seconds=1.9))
        chat.say("Only the snapshot is old: it holds the colour itself.")
        test += " --update"
    passed = f"✓ src/ui/{name}.test.tsx (3 tests) 11ms\nTests  3 passed (3)"
    chat.say("", work.shell(test, passed, seconds=1.6))


def spacing(work: Workspace, when: datetime) -> Chat:
    """A prompt with a picture and a file, and a picture that is not there."""
    chat = Chat(work, "spacing", start=when, model="gemini-3-pro-preview")
    chat.ask(
        "What is wrong with the spacing in @shots/checkout.png ? It is @src/Checkout.tsx",
        {"text": "\n--- Content from referenced files ---"},
        {"inlineData": {"data": _picture(320, 200), "mimeType": "image/png"}},
        {"text": "\nContent from @src/Checkout.tsx:\n"},
        {"text": work.files["src/Checkout.tsx"]},
        {"text": "\n--- End of content ---"},
        shown=True,
    )
    missing = work.missing("shots/checkout-mobile.png")
    chat.say(
        "The rows are 17 pixels apart, the total only 7, so it reads as one more row. I'd like to "
        "compare with the small screen.",
        missing,
        thoughts=("Measuring: 4 above and 13 below each line; nothing on a common grid.",),
    )
    chat.say(
        "There is no such picture; I'll put everything on a grid of 8.",
        work.replace(
            "src/Checkout.tsx",
            "style={{ marginTop: 4, marginBottom: 13 }}",
            "style={{ margin: 8 }}",
            "Put rows on the grid.",
        ),
        work.replace(
            "src/Checkout.tsx",
            "style={{ marginTop: 7 }}",
            "style={{ marginTop: 24 }}",
            "Set the total apart.",
        ),
    )
    chat.say("Rows have 8 pixels around them, and the total stands 24 below: *it is not a row*.")
    return chat


def money(work: Workspace, when: datetime) -> Chat:
    """A search on the web, an edit that the person refuses, and the one that was wanted."""
    chat = Chat(work, "money", start=when)
    chat.ask("¥ amounts show two decimals: ¥1200 is “12.00 JPY”. 円 has no smaller unit!")
    chat.say(
        "",
        work.grep("money\\("),
        web(
            "Intl.NumberFormat currency fraction digits JPY",
            "`Intl.NumberFormat` with `style: 'currency'` uses the minor units of ISO 4217: two "
            "digits for EUR, **none for JPY**, three for KWD. [1] `resolvedOptions()` tells how "
            "many. [2]",
            (
                ("mdn.example", "https://mdn.example/Intl/NumberFormat"),
                ("tc39.example", "https://tc39.example/ecma402"),
            ),
        ),
        thoughts=("Finding the rule: The number of decimals belongs to the currency.",),
    )
    hard_coded = (
        "export function money(amount: number, currency: string): string {\n"
        '  if (currency === "JPY") return amount + " ¥";\n'
        '  return (amount / 100).toFixed(2) + " " + currency;\n}\n'
    )
    proposal = work.proposal("src/format.ts", hard_coded)
    refused = failed(proposal, CANCELLED, display=proposal.display, status="cancelled")
    chat.say("A special case for the yen:", refused)
    chat.note("Request cancelled.")
    chat.ask("No special cases. Let Intl decide.")
    chat.say("", work.write("src/format.ts", _MONEY))
    passed = "✓ src/format.test.ts (4 tests) 9ms\nTests  4 passed (4)"
    chat.say("", work.shell("npx vitest run format", passed, seconds=1.7))
    chat.say(
        "`money` asks `Intl` how many digits a currency has:\n\n"
        "| amount | currency | before | now |\n| ---: | --- | --- | --- |\n"
        "| 1200 | JPY | 12.00 JPY | ¥1,200 |\n"
        "| 1200 | EUR | 12.00 EUR | €12.00 |\n"
        "| 1200 | KWD | 12.00 KWD | KWD 1.200 |"
    )
    chat.call_it("Show amounts with the decimals of their currency 💴")
    return chat


_MONEY = """\
export function money(amount: number, currency: string): string {
  const format = new Intl.NumberFormat("en", { style: "currency", currency });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(amount / 10 ** digits);
}
"""


def german(work: Workspace, when: datetime) -> Chat:
    """A way that was given up by a rewind, and the one taken instead."""
    chat = Chat(work, "german", start=when, model="gemini-3-pro-preview")
    chat.ask("Which texts of the shop would have to be translated?")
    chat.say("", work.glob("src/*.tsx"), work.grep("<h2>|>[A-Z][a-z]+ [a-z]+<"))
    chat.say(
        "Only the heading of `src/Checkout.tsx`; everything else comes from the catalogue. "
        "The stories show names of components, which nobody translates."
    )
    wrong = chat.ask("Write a German copy of Checkout.tsx")
    copy = work.files["src/Checkout.tsx"].replace("Your order", "Ihre Bestellung")
    proposal = work.proposal("src/Checkout.de.tsx", copy)
    chat.say("", failed(proposal, CANCELLED, display=proposal.display, status="cancelled"))
    chat.note("Request cancelled.")
    chat.rewind(wrong)
    chat.ask("Put the texts into a table by language instead, German and English")
    table = (
        'export const texts = {\n  en: { order: "Your order" },\n'
        '  de: { order: "Ihre Bestellung" },\n} as const;\n\n'
        "export type Language = keyof typeof texts;\n"
    )
    chat.say(
        "One table, and the language as a property.",
        work.write("src/texts.ts", table),
        work.replace(
            "src/Checkout.tsx",
            'import { money } from "./format";\n',
            'import { money } from "./format";\nimport { texts, type Language } from "./texts";\n',
            "Import the texts.",
        ),
        work.replace(
            "src/Checkout.tsx",
            "export function Checkout({ lines, currency }: "
            "{ lines: Line[]; currency: string }) {\n",
            "interface Props {\n  lines: Line[];\n  currency: string;\n  language: Language;\n}\n\n"
            "export function Checkout({ lines, currency, language }: Props) {\n",
            "Take the language.",
        ),
        work.replace(
            "src/Checkout.tsx",
            "<h2>Your order</h2>",
            "<h2>{texts[language].order}</h2>",
            "Show the heading in the language.",
        ),
    )
    chat.say("", work.shell("npx tsc --noEmit", "", seconds=5.2))
    chat.say("`texts.ts` has both languages, and TypeScript finds a text that one of them lacks.")
    return chat


def _picture(width: int, height: int) -> str:
    """A small PNG (grey rows on white) in base64."""
    row = b"\0" + b"\xff" * width
    grey = b"\0" + b"\xff" * 20 + b"\xb0" * (width - 40) + b"\xff" * 20
    raw = b"".join(grey if 30 < y % 60 < 44 else row for y in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()
