"""The whole system in simulated time, under faults: docs/fault-simulation.md."""
