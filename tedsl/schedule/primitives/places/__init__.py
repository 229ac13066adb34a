"""Where stages are computed: at a loop of a reader, at the root, or written into the reader."""
