"""Simulate a draft policy: on one call, on the calls of past sessions; propose rules from them."""
