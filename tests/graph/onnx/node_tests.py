"""The node tests of the package onnx, run by tedsl.graph.onnx_backend.

    python -m tests.graph.onnx.node_tests [--slice 3/8] [--match REGULAR_EXPRESSION] [--report FILE]

The standard ones are those whose values are tensors of numbers or bool, of the default domain, without control flow, random
numbers, and shapes that depend on elements.
"""

import argparse
import collections
import json
import re
import sys
import time
import warnings

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

STANDARD = {T.FLOAT, T.UINT8, T.INT8, T.UINT16, T.INT16, T.INT32, T.INT64, T.BOOL, T.FLOAT16, T.DOUBLE, T.UINT32,
            T.UINT64, T.BFLOAT16}
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
CONTROL = {"If", "Loop", "Scan", "SequenceMap"}
BY_ELEMENTS = {"NonZero", "Unique", "NonMaxSuppression", "Compress"}
OTHERS = {"ImageDecoder", "OptionalHasElement", "OptionalGetElement"}


def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        return load_model_tests(kind="node")


def left_out(case):
    """Why a test is not a standard one; an empty str if it is."""
    graph = case.model.graph
    values = [*graph.input, *graph.output]
    operators = {node.op_type for node in graph.node}
    if any(value.type.WhichOneof("value") != "tensor_type" for value in values):
        return "sequences and optionals"
    if any(value.type.tensor_type.elem_type not in STANDARD for value in values):
        return "strings and numbers of 8 bits and less"
    if any(node.domain not in ("", "ai.onnx") for node in graph.node):
        return "other domains"
    for names, reason in ((CONTROL, "control flow"), (RANDOM, "random numbers"),
                          (BY_ELEMENTS, "shapes that depend on elements"), (OTHERS, "files of images, optionals")):
        if operators & names:
            return reason
    return ""


def run(case):
    """What is wrong with our results, "" if nothing; and whether nothing was left to compute after the import."""
    from tedsl.graph.onnx_backend import TedslRep

    rep, nodes = TedslRep(case.model), 0
    for inputs, expected in case.data_sets:
        kinds = [helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in case.model.graph.input]
        results = rep.run([as_array(one, kind) for one, kind in zip(inputs, kinds)])
        expected = [one if isinstance(one, np.ndarray) else as_array(one, None) for one in expected]
        nodes = max(len(graph.nodes) for graph in rep._graphs.values())
        if len(results) != len(expected):
            return f"{len(results)} results, not {len(expected)}", False
        for ours, theirs in zip(results, expected):
            if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
                return f"{ours.dtype}{ours.shape} where {theirs.dtype}{theirs.shape} is expected", False
            if theirs.dtype.kind == "V" or str(theirs.dtype) == "bfloat16":
                ours, theirs = ours.astype("float32"), theirs.astype("float32")
            try:
                np.testing.assert_allclose(ours, theirs, rtol=max(case.rtol, 0), atol=case.atol)
            except AssertionError as difference:
                return "other numbers: " + " ".join(str(difference).split())[:200], False
    return "", nodes == 0


def as_array(given, kind):
    """The array of a test, which is one, a tensor of ONNX, or numbers of Python."""
    return numpy_helper.to_array(given) if isinstance(given, T) else np.asarray(given, kind)


def outcome(case):
    try:
        return run(case)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}", False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slice", default="0/1")
    parser.add_argument("--match", default="")
    parser.add_argument("--report")
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args()
    part, parts = map(int, given.slice.split("/"))
    known = cases()
    skipped = collections.Counter(reason for case in known if (reason := left_out(case)))
    chosen = [case for case in known if not left_out(case) and re.search(given.match, case.name)][part::parts]
    begin, failed, folded, slow, done = time.time(), {}, [], [], 0
    for case in chosen:
        if time.time() - begin > given.seconds:
            break
        start = time.time()
        problem, empty = outcome(case)
        done += 1
        if problem:
            failed[case.name] = problem
        elif empty:
            folded.append(case.name)
        slow.append((time.time() - start, case.name))
    for name, problem in failed.items():
        print(f"{name}: {problem}")
    print(f"{done - len(failed)} of {done} standard tests pass, {len(folded)} of them computed at import; "
          f"{sum(skipped.values())} others: {dict(skipped)}; {time.time() - begin:.0f} s; slowest {sorted(slow)[-3:]}")
    if given.report:
        with open(given.report, "w") as file:
            json.dump({"done": done, "failed": failed, "folded": folded, "skipped": skipped}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
