"""A program that reads the file writes of sessions in a separate process."""

from __future__ import annotations

from gemtui.sessions.store.readers import serve
from gemtui.sessions.writes.written_files import writes_in

if __name__ == "__main__":
    serve(lambda place: writes_in(place.path))
