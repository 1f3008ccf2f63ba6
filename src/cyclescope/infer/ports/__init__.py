"""Front-end slots, port usage and resources from experiments with blocking instructions."""
