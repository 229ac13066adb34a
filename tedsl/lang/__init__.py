"""The language: tensors, the operations that define them, and the graph that they form."""
