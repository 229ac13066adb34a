"""Hybrid scripts in lowering: their loops as directives shape them, and any loops as the text of a script."""
