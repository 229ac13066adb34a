"""How results are shown: lines in a terminal, a page, a roofline; and several sittings put together."""
