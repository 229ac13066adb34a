"""Programs that were once compiled wrongly, one file each, as the random programs found them."""
