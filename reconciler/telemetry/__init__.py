"""What GPUs did and do: values over time, from Prometheus, from agents, or from a simulation."""
