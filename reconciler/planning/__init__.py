"""The world as the planner sees it."""
