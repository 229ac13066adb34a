"""The entry point of a kernel for Python, in LLVM IR: a METH_FASTCALL | METH_KEYWORDS function that checks numpy arrays and
calls the kernel.

    PyObject *entry(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)

It reads the fields of numpy's arrays at offsets that `runtime/layout.py` has probed. `self` is the checked call in Python
(`runtime/call.py`): any argument that fails a check here goes there, to be converted or refused with a message. So a check here
may be stricter than the rule, never laxer. Beside it stands `i32 f.call(ptr slots)`, by which that checked call and the timer
run the kernel: one 64-bit slot for each argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tedsl.codegen.llvm.abi import FIRST_ASSERTION, argument_type
from tedsl.codegen.llvm.types import global_name
from tedsl.ir.expr import Add, Cast, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, SizeVar, Sub, Var
from tedsl.ir.walk.visitor import post_order
from tedsl.runtime.layout import ALIGNED, C_CONTIGUOUS, NUMBERS, WRITEABLE, Layout
from tedsl.runtime.signature import Binding, ScalarParam, Signature, TensorParam

# Kernels that touch this much memory run without the GIL; releasing it costs about 40 ns, such a kernel takes microseconds.
RELEASE_BYTES = 64 * 1024

DECLARATIONS = """
@tedsl_type_ndarray = external global i8
@tedsl_type_NDArray = external global i8
@tedsl_type_int = external global i8
@tedsl_type_float = external global i8
@tedsl_none = external global i8
@tedsl_bfloat16_number = external global i32
@tedsl.fail = private unnamed_addr constant [5 x i8] c"fail\\00"
@tedsl.format = private unnamed_addr constant [2 x i8] c"i\\00"
@tedsl.refuse_names = private unnamed_addr constant [13 x i8] c"refuse_names\\00"
@tedsl.object = private unnamed_addr constant [2 x i8] c"O\\00"
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)
declare ptr @PyObject_CallMethod(ptr, ptr, ptr, ...)
"""

# Straight checks gain nothing from optimisation (a few nanoseconds a call), and it would take longer than that of the kernel.
_QUICK = "noinline optnone nounwind"
_OPERATORS: dict[type[Expr], str] = {Add: "add", Sub: "sub", Mul: "mul"}
_SELECTED: dict[type[Expr], str] = {Min: "slt", Max: "sgt"}


@dataclass(frozen=True)
class KernelSymbol:
    """The symbol of a compiled kernel, and the variables that it takes after the data pointers, in order.

    messages_before: messages of the function's other versions, which stand before its own in the list for the caller.
    """

    symbol: str
    scalars: tuple[Var, ...]
    messages_before: int = 0


def call_source(name: str, kernel: KernelSymbol, tensors: int) -> str:
    """Returns the IR of `i32 @name.call(ptr slots)`, which runs the kernel on arguments from an array of 64-bit slots."""
    lines, values = [f"define i32 {global_name(name + '.call')}(ptr %slots) {_QUICK} {{"], []
    types = ["ptr"] * tensors + [argument_type(v.dtype) for v in kernel.scalars]
    for k, type_ in enumerate(types):
        lines += [f"  %at{k} = getelementptr i64, ptr %slots, i64 {k}", f"  %v{k} = load {type_}, ptr %at{k}, align 8"]
        values.append(f"{type_} %v{k}")
    lines += [f"  %r = call i32 {global_name(kernel.symbol)}({', '.join(values)}) noinline"]
    result = "%r"
    if kernel.messages_before:
        lines += ["  %assertion = icmp sge i32 %r, " + str(FIRST_ASSERTION), f"  %moved = add i32 %r, {kernel.messages_before}",
                  "  %status = select i1 %assertion, i32 %moved, i32 %r"]
        result = "%status"
    lines += [f"  ret i32 {result}", "}", ""]
    return "\n".join(lines)


def entry_source(sig: Signature, general: KernelSymbol, compact: KernelSymbol | None, layout: Layout, *, release: bool) -> str:
    """Returns the IR of `@<name>.entry`. compact: the kernel for compact arrays, if there is one.
    release: always without the GIL.
    """
    return _Entry(sig, general, compact, layout, release).text()


class _Entry:
    """Emits one entry point.
    Where a condition in `conditions` fails at run time, the call goes to the checked call in Python.
    """

    def __init__(self, sig: Signature, general: KernelSymbol, compact: KernelSymbol | None, layout: Layout,
                 release: bool) -> None:
        self.sig, self.general, self.compact, self.layout, self.release = sig, general, compact, layout, release
        self.lines: list[str] = []
        self.conditions: list[str] = []
        self.count = 0
        self.block = "entry"
        self.ends: list[tuple[str, str]] = []  # statuses and the blocks they come from
        self.values: dict[Var, str] = {}  # of variables, i64 or their float type
        self.objects: dict[int, str] = {}
        self.arrays: dict[int, str] = {}
        self.flags: dict[int, str] = {}
        self.data: dict[int, str] = {}
        self.dims: dict[int, list[str]] = {}

    # --- writing ---

    def assign(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}")
        return f"%v{self.count}"

    def field(self, base: str, offset: int, type_: str) -> str:
        return self.assign(f"load {type_}, ptr {self.assign(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def require(self, instruction: str) -> None:
        self.conditions.append(self.assign(instruction))

    def all_of(self, conditions: list[str]) -> str:
        """Emits one i1 that tells whether all `conditions` hold."""
        result = conditions[0] if conditions else "true"
        for other in conditions[1:]:
            result = self.assign(f"and i1 {result}, {other}")
        return result

    def next_block(self, label: str) -> None:
        """Ends the block: continues at `label` if all conditions collected in it hold, else goes to Python."""
        self.lines.append(f"  br i1 {self.all_of(self.conditions)}, label %{label}, label %slow")
        self.start(label)

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block, self.conditions = label, []

    # --- the function, top to bottom ---

    def text(self) -> str:
        self.lines += [f"define ptr {global_name(self.sig.name + '.entry')}(ptr %self, ptr %args, i64 %count, ptr %names) "
                       f"{_QUICK} {{", "entry:"]
        overflow = self.assign("alloca i32, align 4") if self.sig.has_scalars() else ""
        self.require(f"icmp eq i64 %count, {len(self.sig.params)}")
        self.require("icmp eq ptr %names, null")  # arguments by name: refused in words
        self.next_block("objects")
        self.check_types()
        self.next_block("fields")
        self.check_fields()
        self.next_block("shapes")
        self.load_shapes()
        self.bind_scalars(overflow)
        self.bind("shape")
        self.check_shapes()
        self.choose_kernel()
        self.finish()
        return "\n".join(self.lines)

    def check_types(self) -> None:
        for k, param in enumerate(self.sig.params):
            slot = self.assign(f"getelementptr ptr, ptr %args, i64 {k}")
            self.objects[k] = obj = self.assign(f"load ptr, ptr {slot}")
            type_ = self.field(obj, self.layout.type, "ptr")
            if isinstance(param, ScalarParam):
                wanted = "float" if param.dtype.is_float else "int"
                self.require(f"icmp eq ptr {type_}, @tedsl_type_{wanted}")
                continue
            wrapped = self.assign(f"icmp eq ptr {type_}, @tedsl_type_NDArray")
            inner = self.assign(f"getelementptr i8, ptr {obj}, i64 {self.layout.wrapped}")
            place = self.assign(f"select i1 {wrapped}, ptr {inner}, ptr {slot}")
            self.arrays[k] = array = self.assign(f"load ptr, ptr {place}")
            self.require(f"icmp eq ptr {self.field(array, self.layout.type, 'ptr')}, @tedsl_type_ndarray")

    def check_fields(self) -> None:
        """Requires the rank, dtype and flags of each array.
        An output must be contiguous here; Python checks others for overlapping elements.
        """
        for k, param in self.sig.tensors():
            array = self.arrays[k]
            self.require(f"icmp eq i32 {self.field(array, self.layout.ndim, 'i32')}, {len(param.shape)}")
            descr = self.field(array, self.layout.descr, "ptr")
            self.require(f"icmp ne i8 {self.field(descr, self.layout.byteorder, 'i8')}, {ord('>')}")
            self.check_number(self.field(descr, self.layout.number, "i32"), param)
            self.flags[k] = flags = self.field(array, self.layout.flags, "i32")
            mask = ALIGNED | (WRITEABLE if param.written else 0) | (C_CONTIGUOUS if param.written or not param.strides else 0)
            self.require(f"icmp eq i32 {self.assign(f'and i32 {flags}, {mask}')}, {mask}")

    def check_number(self, number: str, param: TensorParam) -> None:
        tests = [self.assign(f"icmp eq i32 {number}, {n}") for n in NUMBERS[str(param.dtype)]]
        if param.dtype == "bfloat16":
            own = self.assign("load i32, ptr @tedsl_bfloat16_number")
            tests.append(self.assign(f"icmp eq i32 {number}, {own}"))
        self.conditions.append(tests[0] if len(tests) == 1 else self.assign(f"or i1 {tests[0]}, {tests[1]}"))

    def load_shapes(self) -> None:
        for k, param in self.sig.tensors():
            self.data[k] = self.field(self.arrays[k], self.layout.data, "ptr")
            shape = self.field(self.arrays[k], self.layout.shape, "ptr") if param.shape else ""
            self.dims[k] = [self.field(shape, 8 * d, "i64") for d in range(len(param.shape))]

    def bind_scalars(self, overflow: str) -> None:
        for binding in self.sig.bindings:
            if binding.kind == "offset":
                self.values[binding.var] = "0"
            elif binding.kind == "scalar":
                self.values[binding.var] = self.scalar(binding, overflow)

    def scalar(self, binding: Binding, overflow: str) -> str:
        dtype, obj = binding.var.dtype, self.objects[binding.param]
        if dtype.is_float:
            return self.float_scalar(obj, binding)
        value = self.assign(f"call i64 @PyLong_AsLongLongAndOverflow(ptr {obj}, ptr {overflow})")
        self.require(f"icmp eq i32 {self.assign(f'load i32, ptr {overflow}')}, 0")
        self.require_fit(binding.var, value)
        return self.assign(f"inttoptr i64 {value} to ptr") if dtype.is_handle else value

    def float_scalar(self, obj: str, binding: Binding) -> str:
        value = self.assign(f"call double @PyFloat_AsDouble(ptr {obj})")
        if binding.var.dtype.bits == 64:
            return value
        if binding.var.dtype.bits == 16:  # rounding to 16 bits is done in Python
            self.conditions.append("false")
        narrow = self.assign(f"fptrunc double {value} to float")
        back = self.assign(f"fpext float {narrow} to double")
        error = self.assign(f"fsub double {value}, {back}")  # infinite where a finite value became infinite
        for infinity in ("0x7FF0000000000000", "0xFFF0000000000000"):
            self.require(f"fcmp une double {error}, {infinity}")
        return narrow

    def require_fit(self, var: Var, value: str) -> None:
        low, high = (0 if isinstance(var, SizeVar) else var.dtype.min_value), var.dtype.max_value
        if low is not None and low > -2**63:
            self.require(f"icmp sge i64 {value}, {low}")
        if high is not None and high < 2**63 - 1:
            self.require(f"icmp sle i64 {value}, {high}")

    def bind(self, kind: str, given: dict[int, list[str]] | None = None) -> None:
        """Computes the variables that dimensions (or strides) of the arguments determine, and requires that they fit their
        dtypes.
        """
        for binding in self.sig.bindings:
            if binding.kind != kind or binding.expr is None:
                continue
            value = (given or self.dims)[binding.param][binding.dim]
            if binding.expr is not binding.var:
                self.values[binding.var] = "0"
                value = self.assign(f"sub i64 {value}, {self.expression(binding.expr)}")
            if binding.scale != 1:
                left = self.assign(f"srem i64 {value}, {binding.scale}")
                self.require(f"icmp eq i64 {left}, 0")
                value = self.assign(f"sdiv i64 {value}, {binding.scale}")
            self.values[binding.var] = value
            self.require_fit(binding.var, value)

    def check_shapes(self) -> None:
        for k, param in self.sig.tensors():
            for dim, expr in zip(self.dims[k], param.shape):
                self.require_equal(dim, expr)

    def require_equal(self, given: str, expr: Expr) -> None:
        if not (isinstance(expr, Var) and self.values.get(expr) == given):
            self.require(f"icmp eq i64 {given}, {self.expression(expr)}")

    def expression(self, expr: Expr) -> str:
        """Emits an integer expression as i64. An operator that is not supported here sends the whole call to Python."""
        done: dict[Expr, str] = {}
        for node in post_order(expr):
            match node:
                case IntImm(value=value):
                    done[node] = str(value)
                case Var() if node in self.values:
                    done[node] = self.values[node]
                case Cast(value=inner):
                    done[node] = done[inner]
                case Add(a=a, b=b) | Sub(a=a, b=b) | Mul(a=a, b=b):
                    done[node] = self.assign(f"{_OPERATORS[type(node)]} i64 {done[a]}, {done[b]}")
                case Min(a=a, b=b) | Max(a=a, b=b):
                    first = self.assign(f"icmp {_SELECTED[type(node)]} i64 {done[a]}, {done[b]}")
                    done[node] = self.assign(f"select i1 {first}, i64 {done[a]}, i64 {done[b]}")
                case FloorDiv(a=a, b=IntImm(value=d)) | FloorMod(a=a, b=IntImm(value=d)) if d > 0:
                    done[node] = self.floor(isinstance(node, FloorDiv), done[a], d)
                case Expr():
                    self.conditions.append("false")
                    done[node] = "0"
        return done[expr]

    def floor(self, quotient: bool, value: str, divisor: int) -> str:
        rest = self.assign(f"srem i64 {value}, {divisor}")
        below = self.assign(f"icmp slt i64 {rest}, 0")
        if not quotient:
            return self.assign(f"select i1 {below}, i64 {self.assign(f'add i64 {rest}, {divisor}')}, i64 {rest}")
        towards_zero = self.assign(f"sdiv i64 {value}, {divisor}")
        return self.assign(f"add i64 {towards_zero}, {self.assign(f'sext i1 {below} to i64')}")

    # --- strides, overlap, the call ---

    def choose_kernel(self) -> None:
        strided = [k for k, p in self.sig.tensors() if p.strides]
        self.next_block("choose")
        if self.compact is not None:
            bits = [self.assign(f"icmp ne i32 {self.assign(f'and i32 {self.flags[k]}, {C_CONTIGUOUS}')}, 0") for k in strided]
            self.lines.append(f"  br i1 {self.all_of(bits)}, label %compact, label %strided")
            self.start("compact")
            with self.restored():
                self.check_overlap({})
                self.next_block("compact.run")
                self.call(self.compact)
            self.start("strided")
        strides = {k: self.load_strides(k) for k in strided}
        self.bind("stride", strides)
        for k, param in self.sig.tensors():
            for given, expr in zip(strides.get(k, []), param.strides):
                self.require_equal(given, expr)
        self.check_overlap(strides)
        self.next_block("run")
        self.call(self.general)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Context in which values may be computed and are forgotten afterwards: its blocks do not dominate what follows."""
        values = dict(self.values)
        yield
        self.values = values

    def load_strides(self, k: int) -> list[str]:
        """Loads the strides of array k, in elements. A stride that is not a multiple of the element size goes to Python."""
        param = self.sig.params[k]
        assert isinstance(param, TensorParam)
        base = self.field(self.arrays[k], self.layout.strides, "ptr")
        strides = []
        for d, dim in enumerate(self.dims[k]):
            value = self.field(base, 8 * d, "i64")
            size = param.dtype.bytes
            if size > 1:
                self.require(f"icmp eq i64 {self.assign(f'and i64 {value}, {size - 1}')}, 0")
                value = self.assign(f"ashr i64 {value}, {size.bit_length() - 1}")
            if param.buffer.buffer_type == "auto_broadcast":
                value = self.assign(f"select i1 {self.assign(f'icmp eq i64 {dim}, 1')}, i64 0, i64 {value}")
            strides.append(value)
        return strides

    def check_overlap(self, strides: dict[int, list[str]]) -> None:
        """Requires that the bounds of no output overlap those of another array; where they do, Python decides exactly, by
        numpy.
        """
        if not self.sig.noalias:
            return
        tensors = dict(self.sig.tensors())
        if len(tensors) < 2 or not any(p.written for p in tensors.values()):
            return
        bounds = {k: self.bounds(k, p, strides.get(k)) for k, p in tensors.items()}
        for k, param in tensors.items():
            for other, beside in tensors.items():
                if param.written and other != k and (other > k or not beside.written):
                    below = self.assign(f"icmp ule ptr {bounds[k][1]}, {bounds[other][0]}")
                    above = self.assign(f"icmp ule ptr {bounds[other][1]}, {bounds[k][0]}")
                    self.require(f"or i1 {below}, {above}")

    def bounds(self, k: int, param: TensorParam, strides: list[str] | None) -> tuple[str, str]:
        """Returns the address of the first byte of an array and that of the first byte behind it."""
        if param.written or not strides:
            return self.data[k], self.assign(f"getelementptr i8, ptr {self.data[k]}, i64 {self.bytes_of(k, param)}")
        low, high = "0", "1"
        for dim, step in zip(self.dims[k], strides):
            reach = self.assign(f"mul i64 {self.assign(f'sub i64 {dim}, 1')}, {step}")
            negative = self.assign(f"icmp slt i64 {reach}, 0")
            low = self.assign(f"add i64 {low}, {self.assign(f'select i1 {negative}, i64 {reach}, i64 0')}")
            high = self.assign(f"add i64 {high}, {self.assign(f'select i1 {negative}, i64 0, i64 {reach}')}")
        element = f"[{param.dtype.bytes} x i8]"
        return (self.assign(f"getelementptr {element}, ptr {self.data[k]}, i64 {low}"),
                self.assign(f"getelementptr {element}, ptr {self.data[k]}, i64 {high}"))

    def bytes_of(self, k: int, param: TensorParam) -> str:
        constant, total = param.dtype.bytes, ""
        for dim, expr in zip(self.dims[k], param.shape):
            if isinstance(expr, IntImm):
                constant *= expr.value
            else:
                total = self.assign(f"mul i64 {total}, {dim}") if total else dim
        if not total:
            return str(constant)
        return total if constant == 1 else self.assign(f"mul i64 {total}, {constant}")

    def call(self, kernel: KernelSymbol) -> None:
        """Emits the call of the kernel, without the GIL if it may run long, and returns to Python by its status."""
        values = [f"ptr {self.data[k]}" for k, _ in self.sig.tensors()]
        values += [f"{argument_type(v.dtype)} {self.values[v]}" for v in kernel.scalars]
        run = f"call i32 {global_name(kernel.symbol)}({', '.join(values)}) noinline"
        always, decision = self.decide_release()
        if always is None:
            with_gil, without = f"{self.block}.with", f"{self.block}.without"
            self.lines += [f"  br i1 {decision}, label %{without}, label %{with_gil}", f"{with_gil}:"]
            self.block = with_gil
            self.leave(self.assign(run), kernel)
            self.start(without)
        if always is False:
            self.leave(self.assign(run), kernel)
            return
        state = self.assign("call ptr @PyEval_SaveThread()")
        status = self.assign(run)
        self.lines.append(f"  call void @PyEval_RestoreThread(ptr {state})")
        self.leave(status, kernel)

    def decide_release(self) -> tuple[bool | None, str]:
        """Decides whether to release the GIL: a bool if that is known now, else an i1 computed from the bytes of the arrays."""
        if self.release:
            return True, ""
        sizes = [self.bytes_of(k, p) for k, p in self.sig.tensors()]
        known = sum(int(size) for size in sizes if size.isdecimal())
        symbolic = [size for size in sizes if not size.isdecimal()]
        if known >= RELEASE_BYTES or not symbolic:
            return known >= RELEASE_BYTES, ""
        total = str(known)
        for size in symbolic:
            total = self.assign(f"add i64 {total}, {size}")
        return None, self.assign(f"icmp ugt i64 {total}, {RELEASE_BYTES}")

    def leave(self, status: str, kernel: KernelSymbol) -> None:
        if kernel.messages_before:
            assertion = self.assign(f"icmp sge i32 {status}, {FIRST_ASSERTION}")
            moved = self.assign(f"add i32 {status}, {kernel.messages_before}")
            status = self.assign(f"select i1 {assertion}, i32 {moved}, i32 {status}")
        self.ends.append((status, self.block))
        self.lines.append("  br label %finish")

    def finish(self) -> None:
        """Emits the exits: a status becomes None or an exception, and block `slow` calls the checked call in Python."""
        statuses = ", ".join(f"[ {status}, %{block} ]" for status, block in self.ends)
        self.lines += [
            "finish:", f"  %status = phi i32 {statuses}",
            "  %fine = icmp eq i32 %status, 0", "  br i1 %fine, label %done, label %failed",
            "done:", "  call void @Py_IncRef(ptr @tedsl_none)", "  ret ptr @tedsl_none",
            "failed:", "  %nothing = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %self, ptr @tedsl.fail, "
            "ptr @tedsl.format, i32 %status)", "  ret ptr null",
            "slow:", "  %by_name = icmp ne ptr %names, null", "  br i1 %by_name, label %named, label %checked",
            "named:", "  %refused = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %self, ptr @tedsl.refuse_names, "
            "ptr @tedsl.object, ptr %names)", "  ret ptr %refused",
            "checked:", "  %answer = call ptr @PyObject_VectorcallDict(ptr %self, ptr %args, i64 %count, ptr null)",
            "  ret ptr %answer", "}", ""]
