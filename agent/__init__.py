"""One node's GPUs: read, judge, report."""
