"""The passes of TVM's tir.transform that tedsl does not have, each with the reason; docs/compatibility.md lists them too."""

_NO_MACHINE = "tedsl makes no code for machines that need it"
_OF_BLOCKS = "it is of TensorIR's blocks, which came beside te; tedsl.lower makes loops without them"
NOT_PLANNED = {
    "DecorateDeviceScope": "SplitHostDevice finds launches of threads without a mark",
    "InferFragment": "fragments are known by the calls that fill and read them: tir.tvm_load_matrix_sync and its kin",
    "LowerDeviceStorageAccessInfo": _NO_MACHINE, "CombineContextCall": _NO_MACHINE, "CoProcSync": _NO_MACHINE,
    "LiftAttrScope": _NO_MACHINE, "InjectCopyIntrin": _NO_MACHINE, "TextureFlatten": _NO_MACHINE,
    "MergeDynamicSharedMemoryAllocations": "StorageRewrite shares memory; that of scope shared.dyn is one piece in each kernel",
    **dict.fromkeys(("LowerInitBlock", "PlanAndUpdateBufferAllocationLocation", "ConvertBlocksToOpaque",
                     "CompactBufferAllocation", "LowerMatchBuffer", "FlattenBuffer", "UnifyThreadBinding"), _OF_BLOCKS),
}
