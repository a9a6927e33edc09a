"""The planner's inputs and results."""
