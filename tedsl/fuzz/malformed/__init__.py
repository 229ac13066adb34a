"""Malformed input: nodes with fields of wrong types, meaningless texts. Each is refused by a TedslError, or works."""
