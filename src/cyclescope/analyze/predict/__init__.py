"""The prediction of a block: bounds, simulation, uncertainty, and remarks on them."""
