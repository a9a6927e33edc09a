"""Real clusters: the driver on Kubernetes' official client. Only this package uses it."""
