"""The commands, a module or two each; `gemtui.cli` parses the arguments and imports one."""
