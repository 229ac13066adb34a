"""The version of tedsl: the one place that says it."""

VERSION = "0.1.0"
