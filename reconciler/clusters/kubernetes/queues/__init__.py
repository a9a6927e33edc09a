"""What a slice's workloads queue in: Kueue's objects, kept to the lease."""
