"""A program that reads the file writes of sessions in a separate process."""

from __future__ import annotations

from gemtui.sessions.readers import serve
from gemtui.sessions.written_files import writes_in

if __name__ == "__main__":
    serve(lambda place: writes_in(place.path))
