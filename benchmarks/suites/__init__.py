"""The cases of the table, by subject: each module has `cases(threads)`, whose names are known before they are built."""
