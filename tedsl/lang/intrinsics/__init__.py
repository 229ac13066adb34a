"""Instructions of the machine as formulas: what tensorize and te.compute call for a region."""
