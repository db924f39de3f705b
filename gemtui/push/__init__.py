"""Write all sessions to a folder, for tools that collect them from many machines.

See assets/push.md.
"""
