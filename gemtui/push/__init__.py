"""Write all sessions to a folder, for tools that collect the sessions of many machines.

See assets/push.md.
"""
