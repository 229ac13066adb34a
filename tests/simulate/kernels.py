"""Kernels in PTX for tests of the simulator, and how they are run."""

import ctypes

import numpy as np

from tedsl.runtime.devices.code import DeviceCode
from tedsl.simulate.device import SimulatedDevice
from tedsl.simulate.loaded import SimulatedCode
from tedsl.simulate.models import MODELS
from tedsl.simulate.reports.log import last_report

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"


def kernel(body, parameters=("A", "B"), name="k", before="", scalars=""):
    """The text of a kernel of pointers; `body` finds them in %rd0, %rd1, ..., and the number of the thread in %r0."""
    listed = ", ".join(f".param .u64 {one}" for one in parameters) + scalars
    loads = "\n    ".join(f"ld.param.u64 %rd{n}, [{one}];" for n, one in enumerate(parameters))
    return f"""{HEAD}{before}
.visible .entry {name}({listed})
{{
    .reg .pred %p<20>;
    .reg .b16 %h<20>;
    .reg .b32 %r<60>;
    .reg .b64 %rd<60>;
    .reg .f32 %f<40>;
    .reg .f64 %d<20>;
    {loads}
    mov.u32 %r0, %tid.x;
    {body}
    ret;
}}"""


def code_of(text):
    return DeviceCode("ptx", text, (), "cuda")


def launch(text, *arrays, grid=(1, 1, 1), block=(32, 1, 1), name="k", shared=0, scalars=()):
    """Runs a kernel on arrays, which get what it writes, and returns the report."""
    device = SimulatedDevice(0, MODELS["8.0"])
    regions = [device.allocate(array.nbytes) for array in arrays]
    for region, array in zip(regions, arrays):
        region.fill(0, array.tobytes())
    try:
        SimulatedCode(device, code_of(text)).launch(name, grid, block, [*[r.base for r in regions], *scalars], shared)
    finally:
        for region, array in zip(regions, arrays):
            ctypes.memmove(array.ctypes.data, region.bytes.ctypes.data, array.nbytes)
    return last_report()


def compute(instruction, result, *operands):
    """The array of type `result` that an instruction gives for arrays of operands, one thread for each element.

    In its text R is the register of the result, and X, Y, Z, W are those of the operands; predicates are arrays of bools.
    """
    count = operands[0].size
    body, names = ["cvt.u64.u32 %rd30, %r0;", "mov.u32 %r40, %ctaid.x;", "mad.wide.u32 %rd30, %r40, 128, %rd30;"], {}
    for number, (letter, values) in enumerate(zip("XYZW", operands)):
        register, loads = _loaded(number, values)
        names[letter] = register
        body += loads
    result = np.dtype(result)
    names["R"] = _register(result, 10)
    text = " ".join(names.get(word.strip(",;"), word.strip(",;")) + "," * word.endswith(",") for word in instruction.split())
    body.append(text + ";")
    size = 1 if result.kind == "b" else result.itemsize
    body.append(f"mad.lo.u64 %rd31, %rd30, {size}, %rd{len(operands)};")
    if result.kind == "b":
        body += ["selp.b16 %h19, 1, 0, %p10;", "st.global.u8 [%rd31], %h19;"]
    else:
        body.append(f"st.global.b{8 * size} [%rd31], {names['R']};")
    padded = -(-count // 128) * 128
    arrays = [np.resize(values, padded) for values in operands] + [np.zeros(padded, result)]
    parameters = "ABCDE"[:len(arrays)]
    report = launch(kernel("\n    ".join(body), tuple(parameters)), *arrays, grid=(padded // 128, 1, 1), block=(128, 1, 1))
    assert report.findings == ()
    return arrays[-1][:count]


def _register(kind, number):
    return f"%p{number}" if kind.kind == "b" else {1: "%h", 2: "%h", 4: "%r", 8: "%rd"}[kind.itemsize] + str(number + 40 * (
        kind.itemsize > 2))


def _loaded(number, values):
    register = _register(values.dtype, number + 1)
    width = values.dtype.itemsize
    body = [f"mad.lo.u64 %rd31, %rd30, {width}, %rd{number};"]
    if values.dtype.kind == "b":
        return register, [*body, "ld.global.u8 %h19, [%rd31];", f"setp.ne.u16 {register}, %h19, 0;"]
    return register, [*body, f"ld.global.{'u' if width == 1 else 'b'}{8 * width} {register}, [%rd31];"]
