"""Services of a slice that its other clusters use: exported by the Multi-Cluster Services API, and let in."""
