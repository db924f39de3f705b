"""A folder of all sessions for programs that hold more than one machine's: assets/push.md."""
