"""The processes that run: controllers, appliers, hooks, and what watches them."""
