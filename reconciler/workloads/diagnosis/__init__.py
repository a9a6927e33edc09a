"""What is wrong with a workload, in sentences: a pure function of what is known about it."""
