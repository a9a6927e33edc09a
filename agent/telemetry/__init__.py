"""What an agent shows of its node's GPUs: metrics, a memory of some hours, and the pods that use them."""
