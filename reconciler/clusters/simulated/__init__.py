"""A simulated Kubernetes cluster: the driver of the demo and of tests."""
