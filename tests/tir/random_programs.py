"""Random functions, for the question whether a pass by itself keeps what a function does.

    python -m tests.tir.random_programs 60 NarrowDataType16 StorageRewrite     # seconds, passes (default: all)
"""

import random
import sys
import time

from tedsl import tir, transform
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.dtype import DType
from tedsl.ir.expr import BufferLoad, IntImm, Let, Load, Select, SizeVar, Var, pointer_var
from tedsl.ir.func import IRModule
from tedsl.ir.iters import IterType, IterVar, Range
from tedsl.ir.stmt import AttrStmt, BufferRealize, BufferStore, ForKind, LetStmt, Store, While
from tests.passes.programs import Function, allocate, check, loop, seq, when

T = tir.transform
SIZE, ROW = 64, 8  # elements of each array, in buffers of rows
SCOPES = ("global", "global", "local", "shared", "local.L0", "global:tag")


def with_options(step, **config):
    """A pass of modules, under options, as a function of functions."""
    def run_pass(func):
        with transform.PassContext(config=config):
            return step(IRModule({"main": func}))["main"]
    return run_pass


PASSES = {name: with_options(getattr(T, name)()) for name in (
    "VectorizeLoop", "StorageRewrite", "LoopPartition", "UnrollLoop", "RemoveNoOp", "Simplify", "RewriteUnsafeSelect")} | {
    "NarrowDataType32": with_options(T.NarrowDataType(32)), "NarrowDataType16": with_options(T.NarrowDataType(16)),
    "HoistIfThenElse": with_options(T.HoistIfThenElse()), "HoistIfThenElseBasic": with_options(T.HoistIfThenElse("basic")),
    "HoistIfThenElseOfBlocks": with_options(
        T.HoistIfThenElse(), **{"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}),
    "SerialLoop": with_options(T.VectorizeLoop(False)), "StorageFlatten": with_options(T.StorageFlatten(64))} | {
    f"InjectDoubleBuffer{split}": with_options(
        T.InjectDoubleBuffer(), **{"tir.InjectDoubleBuffer": {"split_loop": split}}) for split in (0, 1, 2, 4)}


class Memory:
    """An array of the caller or an allocation, of `size` elements from element `first` on."""

    def __init__(self, dtype, size, data=None, buffer=None, first=0):
        self.dtype, self.size, self.data, self.buffer, self.first = DType(dtype), size, data, buffer, first

    def place(self, index):
        index = index + self.first
        return (index // ROW, index % ROW) if len(self.buffer.shape) == 2 else (index,)

    def load(self, index):
        return Load(self.dtype, self.data, index) if self.buffer is None else BufferLoad(self.buffer, self.place(index))

    def store(self, index, value):
        return Store(self.data, value, index) if self.buffer is None else BufferStore(self.buffer, value, self.place(index))


class Program:
    """A function drawn by the numbers of a seed: loops, branches, lets, while loops and memory over three arrays.

    flat: of flat memory, else of buffers. function: the function; n: the value of its scalar.
    """

    def __init__(self, seed, flat=True):
        self.draw, self.flat = random.Random(seed), flat
        self.of = self.draw.choice(["int32", "int32", "int64"])
        self.n, self.given = SizeVar("n", self.of), self.draw.choice([0, 1, 3, 6])
        self.made = 0
        shape = (SIZE,) if flat else (ROW, SIZE // ROW)
        f = Function(A=shape, B=shape, D=(*shape, "int32"))
        self.arrays = [Memory(b.dtype, SIZE, b.data, None if flat else b) for b in f.buffers.values()]
        self.around, self.memory, self.values = [], [], []  # loop variables with their largest values; temporaries; lets
        self.block = None
        self.function = f.func(self.launch() if self.draw.random() < 0.2 else self.several(0), self.n)

    def name(self, letter):
        self.made += 1
        return f"{letter}{self.made}"

    def const(self, value):
        return IntImm(DType(self.of), value)

    # --- expressions ---------------------------------------------------------------------------------------------------

    def affine(self):
        """A sum of multiples of loop variables, and its largest value; None where the scalar is in it."""
        start = self.draw.choice([0, 0, 1, 2])
        total, most = self.const(start), start
        for var, high in self.draw.sample(self.around, min(len(self.around), self.draw.choice([1, 2, 3]))):
            factor = self.draw.choice([1, 1, 1, 2, 4, ROW])
            total, most = build.add(total, build.mul(var, factor)), most + factor * high
        return (build.add(total, self.n), None) if self.draw.random() < 0.08 else (total, most)

    def index(self, memory):
        """An index into `memory`; of an array of the caller one that belongs to the block."""
        size = memory.size if self.block is None or memory not in self.arrays else SIZE // 2
        total, most = self.affine()
        if most is None or most >= size or self.draw.random() < 0.1:
            total = build.floormod(total, size)
        if size != memory.size:
            total = build.add(total, build.mul(build.cast(self.of, self.block), size))
        return total

    def loaded(self, dtype=None):
        memory = self.draw.choice([m for m in self.arrays + self.memory * 2 if dtype is None or m.dtype == dtype])
        return memory.load(self.index(memory))

    def condition(self, depth=0):
        kind = self.draw.choice(["var", "var", "var", "size", "loaded", "both", "either", "likely"])
        compare = self.draw.choice([build.less, build.less_equal, build.greater, build.greater_equal, build.equal,
                                    build.not_equal])
        if depth < 2 and kind in ("both", "either"):
            join = build.logical_and if kind == "both" else build.logical_or
            return join(self.condition(depth + 1), self.condition(depth + 1))
        if kind == "size":
            return compare(self.n, self.draw.choice([0, 2, 5]))
        if kind == "loaded":
            return compare(self.loaded("int32"), self.draw.choice([0, 2, 3]))
        made = compare(self.affine()[0], self.draw.choice([0, 1, 3, 7, 12]))
        return tir.likely(made) if kind == "likely" else made

    def value(self, dtype, depth=0):
        kind = self.draw.choice(["load", "load", "var", "const", "sum", "product", "most", "select", "choice", "let", "other"])
        nested = depth < 3
        one = (lambda: self.value(dtype, depth + 1)) if nested else (lambda: self.loaded(dtype))
        lets = [v for v in self.values if v.dtype == dtype]
        match kind:
            case "var":
                return build.cast(dtype, self.affine()[0])
            case "const":
                return build.const(self.draw.choice([1, 2, 5]), dtype)
            case "sum":
                return build.add(one(), one())
            case "product":
                return build.mul(one(), build.const(self.draw.choice([2, 3]), dtype))
            case "most":
                return build.maximum(one(), one())
            case "select" if nested:
                return Select(self.condition(), one(), one())
            case "choice" if nested:
                return build.if_then_else(self.condition(), one(), one())
            case "let" if lets:
                return self.draw.choice(lets)
            case "let" if nested:
                x = Var(self.name("y"), dtype)
                return Let(x, one(), build.add(x, x))
            case "other" if dtype == "float32":
                return build.cast(dtype, self.loaded("int32"))
            case _:
                return self.loaded(dtype)

    # --- statements ----------------------------------------------------------------------------------------------------

    def several(self, depth):
        return seq(*(self.statement(depth) for _ in range(self.draw.choice([1, 1, 2, 3] if depth else [2, 3, 4]))))

    def statement(self, depth):
        if depth > 4:
            return self.store()
        kind = self.draw.choice([self.store, self.loop, self.loop, self.loop, self.branch, self.branch, self.let,
                                 self.temporary, self.temporary, self.counted, self.ahead])
        return self.store() if kind == self.store else kind(depth + 1)

    def store(self):
        memory = self.draw.choice(self.arrays + self.memory * 3)
        value = self.value(str(memory.dtype))
        if memory.dtype.is_float:  # small integers, which are exact in any dtype
            value = build.minimum(build.maximum(value, build.const(-99, memory.dtype)), build.const(99, memory.dtype))
        return memory.store(self.index(memory), value)

    def inside(self, names, new, body):
        """What `body` draws, where `new` is among `names`."""
        names.append(new)
        made = body()
        names.pop()
        return made

    def loop(self, depth):
        kind = self.draw.choice([ForKind.SERIAL, ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTORIZED])
        extent, low = self.draw.choice([1, 2, 3, 4, 8]), self.draw.choice([0, 0, 0, 2])
        var, end = Var(self.name("i"), self.of), self.const(extent)
        if kind is ForKind.SERIAL and self.draw.random() < 0.2:
            end, extent = self.n, 6
        return loop(var, end, self.inside(self.around, (var, low + extent - 1), lambda: self.several(depth)), kind, low)

    def branch(self, depth):
        other = self.several(depth) if self.draw.random() < 0.4 else None
        return when(self.condition(), self.several(depth), other)

    def let(self, depth):
        if self.around and self.draw.random() < 0.5:
            total, most = self.affine()
            if most is not None:
                var = Var(self.name("x"), self.of)
                return LetStmt(var, total, self.inside(self.around, (var, most), lambda: self.several(depth)))
        var = Var(self.name("x"), self.draw.choice(["float32", "int32"]))
        value = self.value(str(var.dtype))
        return LetStmt(var, value, self.inside(self.values, var, lambda: self.several(depth)))

    def allocated(self, memory, body, scope):
        """A statement in memory of its own."""
        if memory.buffer is None:
            return allocate(memory.data, memory.size, body, str(memory.dtype))
        bounds = [Range.from_min_extent(memory.first, memory.size)]
        if len(memory.buffer.shape) == 2:
            bounds = [Range.from_min_extent(memory.first // ROW, memory.size // ROW), Range.from_min_extent(0, ROW)]
        return BufferRealize(memory.buffer, tuple(bounds), build.true(), body)

    def fresh(self, dtypes=("float32", "int32", "float32", "int16", "float64"), sizes=(1, 2, 8, 8, 16)):
        dtype, size, scope, name = (self.draw.choice(dtypes), self.draw.choice(sizes), self.draw.choice(SCOPES), self.name("T"))
        if self.flat:
            return Memory(dtype, size, pointer_var(name, DType(dtype), scope)), scope
        first = self.draw.choice([0, 8])
        shape = (4, ROW) if size % ROW == 0 and self.draw.random() < 0.5 else (32,)
        return Memory(dtype, size, None, decl_buffer(shape, dtype, name, scope=scope), first), scope

    def filled(self, memory):
        var = Var(self.name("f"), self.of)
        value = self.inside(self.around, (var, memory.size - 1), lambda: self.value(str(memory.dtype)) if str(memory.dtype) in (
            "float32", "int32") else build.cast(memory.dtype, var))
        return loop(var, self.const(memory.size), memory.store(var, value))

    def temporary(self, depth):
        memory, scope = self.fresh()
        fill = self.filled(memory)
        return self.allocated(memory, seq(fill, self.inside(self.memory, memory, lambda: self.several(depth))), scope)

    def counted(self, depth):
        """A while loop that counts in memory of its own."""
        memory, scope = self.fresh(("int32",), (1,))
        zero = self.const(0)
        up = memory.store(zero, build.add(memory.load(zero), 1))
        turn = While(build.less(memory.load(zero), self.draw.choice([0, 1, 3])), seq(self.several(depth), up))
        return self.allocated(memory, seq(memory.store(zero, build.const(0, "int32")), turn), scope)

    def ahead(self, depth):
        """A loop with memory that is marked to be filled one iteration ahead."""
        var, extent = Var(self.name("i"), self.of), self.draw.choice([1, 2, 3, 5])
        end = self.const(extent) if self.draw.random() < 0.7 else self.n

        def body():
            memory, scope = self.fresh()
            mark = memory.data if memory.buffer is None else memory.buffer
            fill = AttrStmt(mark, "double_buffer_scope", build.const(1, "int32"), self.filled(memory))
            return self.allocated(memory, seq(fill, self.inside(self.memory, memory, lambda: self.several(depth))), scope)

        return loop(var, end, self.inside(self.around, (var, max(extent, 6) - 1), body))

    def launch(self):
        """All of it by two blocks, each on its half of the arrays."""
        self.block = Var("blockIdx.x", "int32")
        self.around.append((build.cast(self.of, self.block), 1))
        axis = IterVar(None, self.block, IterType.THREAD_INDEX, "blockIdx.x")
        return AttrStmt(axis, "thread_extent", build.const(2, "int32"), self.several(0))


def keeps(name, seed):
    """Fails unless the pass keeps what the function of a seed does; tells whether it changed it."""
    program = Program(seed, flat=name != "StorageFlatten")
    return check(PASSES[name], program.function, scalars=(program.given,)) is not program.function


def main(seconds, names):
    end, runs, changed, seed = time.time() + seconds, 0, 0, int(time.time())
    while time.time() < end:
        for name in names:
            try:
                changed += keeps(name, seed)
            except Exception as error:
                if "while loop inside of the vectorized" not in str(error):
                    print(f"{name} of seed {seed}: {type(error).__name__} {str(error)[:300]}", flush=True)
            runs += 1
        seed += 1
    print(f"{runs} runs, {changed} functions changed")


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:] or sorted(PASSES))
