"""From a schedule to loops.

    checks (are the elements there that a formula reads? clamps, asserts)
    -> plan (what is known about one stage; kinds: a table of what is different for compute, scan and extern)
    -> normalize (inline) -> propagate (extents down, indices and intervals up, guards) -> bounds (regions, consumers first)
    -> compute (init, update, stores) -> nest (the loops of one stage) -> scan, scan_stages (steps, in the memory of the scan)
    -> extern (the user's statements over real memory) -> attach (where each stage stands)
    -> arguments (parameters and buffers) -> lower: `lower_schedule`

The rule that keeps every access inside its buffer: an attached stage allocates the region that the *unguarded* loops of
its consumers reach (`bounds`), while every statement stands under guards that admit real iterations of its formula only
(`propagate.compared` for splits that do not come out even, `nest` for regions that reach beyond the tensor). So a store
lies in the allocated region because the loops of the stage run over exactly that, and a load lies in it because the
region was taken from that load over loops that are at least those around it; what `bounds` trims off a region lies
outside of the tensor, where `checks` has proved that nothing is read.
"""
