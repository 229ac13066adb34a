"""The passes of TVM's tir.transform that tedsl does not have, each with the reason; docs/compatibility.md lists them too."""

_NO_MACHINE = "tedsl makes no code for machines that need it"
_OF_BLOCKS = "it is of TensorIR's blocks, which came beside te; tedsl.lower makes loops without them"
NOT_PLANNED = {
    "PrimFuncPass": "passes are ModulePass",
    "CoProcSync": 'there are no coprocessors here; for the threads of a GPU, ThreadSync("shared") inserts barriers',
    "TextureFlatten": _NO_MACHINE,
    "MergeDynamicSharedMemoryAllocations": "StorageRewrite shares memory; that of scope shared.dyn is one piece in each kernel",
    **dict.fromkeys(("LowerInitBlock", "PlanAndUpdateBufferAllocationLocation", "ConvertBlocksToOpaque",
                     "CompactBufferAllocation", "LowerMatchBuffer", "FlattenBuffer", "UnifyThreadBinding"), _OF_BLOCKS),
}
_NO_FLOAT8 = "there are no numbers of dtype float8 here; BF16Legalize serves bfloat16"
OF_LATER_RELEASES = {  # of 0.9 to 0.19, and not in the tables of 0.8
    **dict.fromkeys(("LowerOpaqueBlock", "LiftThreadBinding", "TransformMmaBufferLayout", "InjectSoftwarePipeline",
                     "ManifestSharedMemoryLocalStage", "LowerCrossThreadReduction", "InjectPermutedLayout",
                     "RemoveWeightLayoutRewriteBlock"), _OF_BLOCKS),
    **dict.fromkeys(("FP8ComputeLegalize", "FP8StorageLegalize"), _NO_FLOAT8),
    **dict.fromkeys(("BF16ComputeLegalize", "BF16StorageLegalize"), "BF16Legalize does both, as in 0.8"),
}
