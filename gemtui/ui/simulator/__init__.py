"""A policy on trial: one call, the calls of past sessions, and rules proposed from them."""
