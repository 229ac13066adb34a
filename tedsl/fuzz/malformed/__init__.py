"""Malformed input: nodes made from wrong types, texts that say nothing. It is refused in words, or accepted and works."""
