"""The documents: what people write, what machines write back, and how both are read and checked."""
