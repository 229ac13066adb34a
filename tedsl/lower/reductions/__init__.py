"""What the order of its loops decides about a reduction."""
