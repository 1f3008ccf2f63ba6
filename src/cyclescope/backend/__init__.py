"""Backends: kernels in, samples out."""
