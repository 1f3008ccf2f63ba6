"""From measurements to latencies and throughput."""
