"""Real clusters: the driver on the official client of Kubernetes. The one door to that package."""
