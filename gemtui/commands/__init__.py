"""The commands, one or two modules each.

`gemtui.cli` parses arguments and imports one.
"""
