"""The whole system in simulated time, under faults: docs/explain/fault-simulation.md."""
