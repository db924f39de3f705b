"""`python -m gemtui` is the same as `gemtui`."""

from __future__ import annotations

import sys

from gemtui.cli import main

if __name__ == "__main__":
    sys.exit(main())
