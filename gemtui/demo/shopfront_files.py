"""The files of shopfront, the demo's TypeScript front end."""

from __future__ import annotations

PACKAGE = """\
{
  "name": "shopfront",
  "private": true,
  "type": "module",
  "scripts": { "dev": "vite", "build": "vite build", "test": "vitest run" },
  "dependencies": { "lodash": "^4.17.21", "react": "^19.0.0", "react-dom": "^19.0.0" },
  "devDependencies": { "typescript": "^5.7.0", "vite": "^6.0.0", "vitest": "^3.0.0" }
}
"""

CART = """\
import _ from "lodash";

export interface Line {
  sku: string;
  price: number; // in the smallest unit of the currency
  count: number;
}

export function total(lines: Line[]): number {
  return _.sumBy(lines, (line) => line.price * line.count);
}

export function add(lines: Line[], sku: string, price: number): Line[] {
  const found = _.find(lines, { sku });
  if (!found) return [...lines, { sku, price, count: 1 }];
  return lines.map((line) => (line.sku === sku ? { ...line, count: line.count + 1 } : line));
}
"""

FORMAT = """\
export function money(amount: number, currency: string): string {
  return (amount / 100).toFixed(2) + " " + currency;
}
"""

CHECKOUT = """\
import { total, type Line } from "./cart";
import { money } from "./format";

export function Checkout({ lines, currency }: { lines: Line[]; currency: string }) {
  return (
    <section className="checkout">
      <h2>Your order</h2>
      {lines.map((line) => (
        <p key={line.sku} style={{ marginTop: 4, marginBottom: 13 }}>
          {line.count} × {line.sku}
        </p>
      ))}
      <strong style={{ marginTop: 7 }}>{money(total(lines), currency)}</strong>
    </section>
  );
}
"""

TOKENS = """\
:root {
  --accent: #1b6ac9;
  --danger: #c0392b;
  --ink: #222831;
  --line: #d0d7de;
  --paper: #fafafa;
}
"""

_NAMES = (
    "Accordion Alert Avatar Badge Banner Breadcrumb Button Calendar Card Carousel Checkbox Chip "
    "Code Combobox Counter Dialog Divider Drawer Dropdown Empty Fieldset Figure Filter Footer "
    "Gallery Gauge Grid Header Heading Hint Icon Input Kbd Label Link List Loader Menu Meter "
    "Modal Navbar Notice Pager Panel Picker Popover Price Progress Quantity Quote Radio Range "
    "Rating Receipt Ribbon Search Select Sheet Sidebar Skeleton Slider Stack Stepper Switch Table "
    "Tabs Tag Textarea Toast Toggle Toolbar Tooltip Tree Voucher Wishlist"
)
COMPONENTS = tuple(_NAMES.split())
_COLOURS = ("#1b6ac9", "#c0392b", "#222831", "#d0d7de")
TOKEN_OF = dict(zip(_COLOURS, ("accent", "danger", "ink", "line"), strict=True))


def colour_of(name: str) -> str:
    """The colour that is written into a component."""
    return _COLOURS[sum(map(ord, name)) % len(_COLOURS)]


def component(name: str) -> str:
    """A component with a colour written into it."""
    return f"""\
import type {{ ReactNode }} from "react";

export function {name}({{ children }}: {{ children: ReactNode }}) {{
  return (
    <div className="{name.lower()}" style={{{{ color: "{colour_of(name)}" }}}}>
      {{children}}
    </div>
  );
}}
"""


def story(name: str) -> str:
    """A component's page in the catalogue."""
    return f"""\
import {{ {name} }} from "./{name}";

export default {{ component: {name}, parameters: {{ background: "#fafafa" }} }};

export const Plain = () => <{name}>{name}</{name}>;
"""
