"""Lowering: from a schedule to loops. The entry point is `lower.lower_schedule`; `plan` holds the values of each step.

    inputs, arguments    the parameters of the function, and the buffer of each tensor
    computations         what each stage computes, with inlined formulas written into it, and where (versions: how often).
                         `kinds` is the table of what differs between formulas (compute), scan/, extern and hybrid/
    checks               bounds checks of all reads of formulas: proved, required of the call, clamped, or refused
    regions/             bound inference: which region of each stage its readers need, and the loops that follow from it
    threads/             loops that are bound to threads: how many are launched, and which memory they share
    legality, in_place, in_vectors, uneven_splits        schedules that are refused, each with its reason
    nest                 the loops of one stage, under the conditions that its iterations exist, around the statements of
                         `compute`, or of an intrinsic (intrinsics/). `site` is what these statements use
    place_stages         the loops of all stages, inside one another, in the memory they need (storage_attributes)
    written/             handwritten functions, bounds-checked like generated ones
    reductions/          what the order of the loops decides about a reduction
    explained/           the same facts in words: `s.explain()`

The rule that keeps every access inside its buffer: an attached stage allocates the region that the *unguarded* loops of
its consumers reach (`regions/bounds`), while every statement stands under guards that admit real iterations of its formula
only (`regions/propagate.compared` for splits that do not come out even, `nest` for regions that reach beyond the tensor). So
a store lies in the allocated region because the loops of the stage run over exactly that, and a load lies in it because the
region was taken from that load over loops that are at least those around it; what `bounds` trims off a region lies
outside of the tensor, where `checks` has proved that nothing is read.
"""
