"""The style sheet of HTML exports, with dark colours and a print layout."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --text: #1f2328; --muted: #59636e; --line: #d1d9e0; --code: #f4f6f8;
  --you: #0b57d0; --model: #6f42c1; --good: #1a7f37; --bad: #b3261e; --warn: #8a5a00;
  --keyword: #a12a2a; --string: #0a5c2b; --comment: #59636e; --name: #6639ba; --number: #0550ae;
  --added: #dff5e3; --removed: #fde7e5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --text: #e4e7eb; --muted: #9da7b3; --line: #3a424c; --code: #1d2229;
    --you: #8ab4f8; --model: #c9a7ff; --good: #6fdd8b; --bad: #ff9a91; --warn: #e8b65a;
    --keyword: #ff9a91; --string: #8ee6a5; --comment: #9da7b3; --name: #d2b3ff; --number: #8ac2ff;
    --added: #16331f; --removed: #43201e;
  }
}
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 56rem; background: var(--page);
  color: var(--text); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; margin: 0 0 .75rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dt, .note, time { color: var(--muted); }
dd { margin: 0; }
article { border-top: 1px solid var(--line); margin-top: 1.5rem; padding-top: .75rem; }
article.dropped { border-left: 3px solid var(--warn); padding-left: .75rem; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
.user h2 { color: var(--you); } .model h2 { color: var(--model); }
h2 time { font-weight: normal; font-size: .875rem; }
.note { font-size: .875rem; }
.user p { white-space: pre-line; }
pre, code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .875em; }
pre, table { background: var(--code); border-radius: 4px; }
pre { padding: .6rem .75rem; white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .9em; }
th, td { border: 1px solid var(--line); padding: .2rem .5rem; text-align: left; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); }
blockquote { margin-left: 0; padding-left: .75rem; border-left: 3px solid var(--line); }
details { border: 1px solid var(--line); border-radius: 4px; margin: .5rem 0; padding: 0 .75rem; }
summary { cursor: pointer; padding: .3rem 0; }
.success { color: var(--good); }
.error, .cancelled, .denied, .refused { color: var(--bad); }
.interrupted, .unconfirmed, .dropped h2 { color: var(--warn); }
.diff ins, .diff del { text-decoration: none; display: block; }
.diff ins { background: var(--added); } .diff del { background: var(--removed); }
.k { color: var(--keyword); } .s { color: var(--string); } .n { color: var(--name); }
.c { color: var(--comment); font-style: italic; } .m { color: var(--number); }
.c1, .c9 { color: var(--bad); } .c2, .c10 { color: var(--good); } .c3, .c11 { color: var(--warn); }
.c4, .c12 { color: var(--you); } .c5, .c13 { color: var(--model); }
.c6, .c14 { color: var(--number); } .c8 { color: var(--muted); }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  details::details-content { content-visibility: visible; height: auto; }
  article, pre { break-inside: auto; } h2, summary { break-after: avoid; }
}
"""
