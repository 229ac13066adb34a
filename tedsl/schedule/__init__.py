"""How a formula is computed: stages, the loops of each, the relations between loops, and the directives that change them."""
