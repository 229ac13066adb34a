"""Directives on reductions: in which stages and where their parts are computed."""
