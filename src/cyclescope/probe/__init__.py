"""Questions about a core, one file each: kernels, sweep, model, verdict with error."""
