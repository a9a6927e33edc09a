"""What runs on the nodes now: workloads, GPUs, alerts, diagnoses. Looks at clusters and at measurements."""
