"""How long tests wait for what has to happen."""

PATIENCE = 60.0
"""Seconds until something is taken for missing, on a machine that has much else to do."""
