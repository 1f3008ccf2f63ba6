"""How likely explanations are, given the readings: ports of classes, and micro-operations of forms."""
