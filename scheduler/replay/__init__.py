"""Runs a trace through the real planner in simulated time. Pure: no clock, no files, no network."""
