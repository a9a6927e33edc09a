"""Pages of workloads that people file: the list, one of them, and the form."""
