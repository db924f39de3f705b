"""The work of the commands, in one or two modules each.

`gemtui.cli` parses the arguments, then imports only the module of the command that was given.
"""
