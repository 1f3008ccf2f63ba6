"""What several benchmarks share: references, judging, classes of disagreement, processes, checks."""
