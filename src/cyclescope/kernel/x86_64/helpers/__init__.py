"""Helper instructions of x86-64 kernels: what carries a dependency, and what cuts it."""
