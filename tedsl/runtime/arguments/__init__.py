"""Arguments of calls: checked one by one and against each other, refused with what to do instead."""
