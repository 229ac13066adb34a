"""The memory of simulated devices: regions that know what was written and by whom, and what accesses cost."""
