"""Run `gemtui` as `python -m gemtui`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder: nothing must be imported from it

    try:
        from gemtui.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())
