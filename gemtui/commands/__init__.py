"""What each command does; `gemtui.cli` reads the words and imports one of these."""
