"""The commands, in one or two modules each.

`gemtui.cli` parses the arguments, then imports the command's module.
"""
