"""How likely readings make what explains them: the ports of classes, and the micro-operations of forms."""
