"""Write a folder of all sessions, for tools that collect those of many machines.

See assets/push.md.
"""
