"""What runs on the nodes of slices: from pods to workloads, models and GPUs, and what is wrong with them. Pure."""
