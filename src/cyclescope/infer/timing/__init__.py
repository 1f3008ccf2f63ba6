"""Latencies and throughput from the times of kernels."""
