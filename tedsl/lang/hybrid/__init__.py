"""Hybrid script: loops written as a Python function, which runs as Python on arrays and becomes a tensor on tensors.

    @te.hybrid.script
    def outer(a, b):
        c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                c[i, j] = a[i] * b[j]
        return c

    script      the decorator: as Python on arrays, as a program on tensors
    names       what the names of the language mean when the function runs as Python
    source      the text of the function, and errors that point into it
    scope       what a name stands for while the function is read
    parser      statements
    expressions expressions, and calls of the language's functions
    operation   HybridOp: the statements as an operation, with its loops as axes
    nests       which loops belong together, and whether their order may change
"""
