"""The entry point of a kernel for Python, in LLVM IR: a METH_FASTCALL | METH_KEYWORDS function that checks numpy arrays and
calls the kernel.

    PyObject *entry(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)

It reads the fields of numpy's arrays at offsets that `runtime/layout.py` has probed. `self` is the checked call in Python
(`runtime/call.py`): any argument that fails a check here goes there, to be converted or refused with a message. So a check here
may be stricter than the rule, never laxer. Beside it stands `i32 f.call(ptr slots)`, by which that checked call and the timer
run the kernel: one 64-bit slot for each argument. Kernels of arrays of constant shapes share those of `shared.py`.
"""

from __future__ import annotations

from tedsl.codegen.kernels.checks import Words
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.entry.checks import EntryChecks
from tedsl.codegen.llvm.entry.disjoint import MOST_PAIRS, SYMBOL
from tedsl.codegen.llvm.entry.symbol import QUICK
from tedsl.codegen.llvm.types import argument_type, global_name
from tedsl.runtime.arguments.array_entry import RELEASE_BYTES
from tedsl.runtime.layout import ALIGNED, C_CONTIGUOUS, NUMBERS, WRITEABLE, Layout
from tedsl.runtime.signature import Binding, ScalarParam, Signature, TensorParam

# What every entry point for numpy arrays uses of CPython, in this process and in extension modules.
CPYTHON = """
@tedsl.fail = private unnamed_addr constant [5 x i8] c"fail\\00"
@tedsl.format = private unnamed_addr constant [2 x i8] c"i\\00"
@tedsl.refuse_names = private unnamed_addr constant [13 x i8] c"refuse_names\\00"
@tedsl.object = private unnamed_addr constant [2 x i8] c"O\\00"
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_CallMethod(ptr, ptr, ptr, ...)
"""
DECLARATIONS = CPYTHON + """
@tedsl_type_ndarray = external global i8
@tedsl_type_NDArray = external global i8
@tedsl_type_int = external global i8
@tedsl_type_float = external global i8
@tedsl_none = external global i8
@tedsl_bfloat16_number = external global i32
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)
"""
_INTRINSICS = ("declare double @llvm.fabs.f64(double)", "declare double @llvm.copysign.f64(double, double)")

# How a number of the type in which it travels becomes a Python object.
_FROM_NUMBER = {"i64": "PyLong_FromLongLong", "u64": "PyLong_FromUnsignedLongLong", "bool": "PyBool_FromLong",
                "double": "PyFloat_FromDouble"}


def declarations(source: str) -> str:
    """Returns the declarations that entry points need beside the module `source`, which may declare intrinsics of LLVM too."""
    return DECLARATIONS + "\n".join(line for line in _INTRINSICS if line not in source) + "\n"


def entry_source(sig: Signature, general: KernelSymbol, compact: KernelSymbol | None, layout: Layout, *, release: bool) -> str:
    """Returns the IR of `@<name>.entry`. compact: the kernel for compact arrays, if there is one.
    release: always without the GIL.
    """
    return NumpyEntry(sig, general, compact, layout, release).text()


class NumpyEntry(EntryChecks):
    """Emits one entry point. What is required in a block is tested at its end: where that fails, the call goes to the checked
    call in Python.

    The names of types and of None are those of this process; a subclass for other places says how they are called there.
    """

    attributes = QUICK

    def __init__(self, sig: Signature, general: KernelSymbol, compact: KernelSymbol | None, layout: Layout,
                 release: bool) -> None:
        super().__init__(sig, general, compact)
        self.layout, self.release = layout, release
        self.conditions: list[str] = []  # of this block, tested at its end
        self.overflow = ""
        self.objects: dict[int, str] = {}
        self.arrays: dict[int, str] = {}
        self.flags: dict[int, str] = {}

    # --- names ---

    def symbol(self) -> str:
        """Returns the symbol of the function."""
        return f"{self.sig.name}.entry"

    def type_address(self, name: str) -> str:
        """Emits the address of the type `name`: int, float or ndarray."""
        return f"@tedsl_type_{name}"

    def none_address(self) -> str:
        return "@tedsl_none"

    def array_place(self, obj: str, type_: str, slot: str) -> str:
        """Emits the address of the pointer to the numpy array in an argument: `slot`, or a field of an NDArray."""
        wrapped = self.assign(f"icmp eq ptr {type_}, @tedsl_type_NDArray")
        inner = self.assign(f"getelementptr i8, ptr {obj}, i64 {self.layout.wrapped}")
        return self.assign(f"select i1 {wrapped}, ptr {inner}, ptr {slot}")

    def bfloat16_number(self) -> str:
        """Emits numpy's number of the dtype bfloat16 of ml_dtypes."""
        return self.assign("load i32, ptr @tedsl_bfloat16_number")

    def checked_call(self) -> list[str]:
        """Returns the lines that call the checked call in Python, `%self`, on the arguments, and return what it returns."""
        return ["  %answer = call ptr @PyObject_VectorcallDict(ptr %self, ptr %args, i64 %count, ptr null)",
                "  ret ptr %answer"]

    # --- blocks ---

    def require(self, condition: str, problem: Words | None = None) -> None:
        self.conditions.append(condition)

    def next_block(self, label: str) -> None:
        """Ends the block: continues at `label` if all conditions collected in it hold, else goes to Python."""
        self.lines.append(f"  br i1 {self.all_of(self.conditions)}, label %{label}, label %slow")
        self.start(label)
        self.conditions = []

    def compare(self, bounds: dict[int, tuple[str, str]], strides: dict[int, list[str]]) -> None:
        outputs = [k for k, param in self.sig.tensors() if param.written]
        if len(outputs) * len(bounds) <= MOST_PAIRS:
            super().compare(bounds, strides)
            return
        table = self.assign(f"alloca [{2 * len(bounds)} x ptr], align 8")
        addresses = [address for k in sorted(bounds, key=lambda k: k not in outputs) for address in bounds[k]]
        for place, address in enumerate(addresses):
            slot = self.assign(f"getelementptr ptr, ptr {table}, i64 {place}")
            self.lines.append(f"  store ptr {address}, ptr {slot}, align 8")
        self.require(self.assign(f"call i1 {SYMBOL}(ptr {table}, i64 {len(outputs)}, i64 {len(bounds)})"))

    # --- the function, top to bottom ---

    def text(self) -> str:
        self.lines += [f"define ptr {global_name(self.symbol())}(ptr %self, ptr %args, i64 %count, ptr %names) "
                       f"{self.attributes} {{", "entry:"]
        self.prepare()
        self.require(self.assign(f"icmp eq i64 %count, {len(self.sig.params)}"))
        self.require(self.assign("icmp eq ptr %names, null"))  # arguments by name: refused in words
        self.next_block("objects")
        self.check_types()
        self.next_block("fields")
        self.check_fields()
        self.next_block("shapes")
        self.load_shapes()
        self.bind_scalars()
        self.bind("shape")
        self.check_shapes()
        self.choose_kernel()
        self.finish()
        return "\n".join(self.lines)

    def prepare(self) -> None:
        """Emits what stands before the checks: memory on the stack."""
        if self.sig.has_scalars():
            self.overflow = self.assign("alloca i32, align 4")
        if self.sig.result is not None:
            self.lines.append("  %result = alloca i64, align 8")

    def check_types(self) -> None:
        for k, param in enumerate(self.sig.params):
            slot = self.assign(f"getelementptr ptr, ptr %args, i64 {k}")
            self.objects[k] = obj = self.assign(f"load ptr, ptr {slot}")
            type_ = self.field(obj, self.layout.type, "ptr")
            if isinstance(param, ScalarParam):
                wanted = "float" if param.dtype.is_float else "int"
                self.require(self.assign(f"icmp eq ptr {type_}, {self.type_address(wanted)}"))
                continue
            self.arrays[k] = array = self.assign(f"load ptr, ptr {self.array_place(obj, type_, slot)}")
            of = self.field(array, self.layout.type, "ptr")
            self.require(self.assign(f"icmp eq ptr {of}, {self.type_address('ndarray')}"))

    def check_fields(self) -> None:
        """Requires the rank, dtype and flags of each array.
        An output must be contiguous here; Python checks others for overlapping elements.
        """
        for k, param in self.sig.tensors():
            array = self.arrays[k]
            self.require(self.assign(f"icmp eq i32 {self.field(array, self.layout.ndim, 'i32')}, {len(param.shape)}"))
            descr = self.field(array, self.layout.descr, "ptr")
            self.require(self.assign(f"icmp ne i8 {self.field(descr, self.layout.byteorder, 'i8')}, {ord('>')}"))
            self.check_number(self.field(descr, self.layout.number, "i32"), k, param)
            self.flags[k] = flags = self.field(array, self.layout.flags, "i32")
            mask = ALIGNED | (WRITEABLE if param.written else 0) | (C_CONTIGUOUS if param.written or not param.strides else 0)
            self.require(self.assign(f"icmp eq i32 {self.assign(f'and i32 {flags}, {mask}')}, {mask}"))

    def check_number(self, number: str, k: int, param: TensorParam) -> None:
        """Requires that numpy's number of a dtype is that of array `k`."""
        tests = [self.assign(f"icmp eq i32 {number}, {n}") for n in NUMBERS[str(param.dtype)]]
        if param.dtype == "bfloat16":
            tests.append(self.assign(f"icmp eq i32 {number}, {self.bfloat16_number()}"))
        self.conditions.append(tests[0] if len(tests) == 1 else self.assign(f"or i1 {tests[0]}, {tests[1]}"))

    def load_shapes(self) -> None:
        for k, param in self.sig.tensors():
            self.data[k] = self.field(self.arrays[k], self.layout.data, "ptr")
            shape = self.field(self.arrays[k], self.layout.shape, "ptr") if param.shape else ""
            self.dims[k] = [self.field(shape, 8 * d, "i64") for d in range(len(param.shape))]

    def scalar(self, binding: Binding) -> str:
        dtype, obj = binding.var.dtype, self.objects[binding.param]
        if dtype.is_float:
            return self.float_scalar(obj, binding)
        value = self.assign(f"call i64 @PyLong_AsLongLongAndOverflow(ptr {obj}, ptr {self.overflow})")
        self.require(self.assign(f"icmp eq i32 {self.assign(f'load i32, ptr {self.overflow}')}, 0"))
        self.require_fit(binding.var, value, str, str)
        return self.assign(f"inttoptr i64 {value} to ptr") if dtype.is_handle else value

    def float_scalar(self, obj: str, binding: Binding) -> str:
        return self.narrowed(self.assign(f"call double @PyFloat_AsDouble(ptr {obj})"), binding.var.dtype, str)

    # --- strides, the call ---

    def is_compact(self, k: int) -> str:
        return self.assign(f"icmp ne i32 {self.assign(f'and i32 {self.flags[k]}, {C_CONTIGUOUS}')}, 0")

    def load_strides(self, k: int) -> list[str]:
        param = self.sig.params[k]
        assert isinstance(param, TensorParam)
        base = self.field(self.arrays[k], self.layout.strides, "ptr")
        strides = []
        for d, dim in enumerate(self.dims[k]):
            value = self.field(base, 8 * d, "i64")
            size = param.dtype.bytes
            if size > 1:
                self.require(self.assign(f"icmp eq i64 {self.assign(f'and i64 {value}, {size - 1}')}, 0"))
                value = self.assign(f"ashr i64 {value}, {size.bit_length() - 1}")
            if param.buffer.buffer_type == "auto_broadcast":
                value = self.assign(f"select i1 {self.assign(f'icmp eq i64 {dim}, 1')}, i64 0, i64 {value}")
            strides.append(value)
        return strides

    def bounds(self, k: int, param: TensorParam, strides: list[str] | None) -> tuple[str, str]:
        return super().bounds(k, param, None if param.written else strides)  # outputs are contiguous: `check_fields`

    def call(self, kernel: KernelSymbol) -> None:
        """Emits the call of the kernel, without the GIL if it may run long, and returns to Python by its status."""
        run = self.run(kernel)
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

    def python_object(self) -> list[str]:
        """Returns the lines that return to Python what the kernel has returned: None, or a number."""
        of = self.sig.result
        if of is None:
            return [f"  call void @Py_IncRef(ptr {self.none_address()})", f"  ret ptr {self.none_address()}"]
        type_ = argument_type(of)
        lines = [f"  %number = load {type_}, ptr %result"]
        if type_ == "float":
            lines.append("  %wide = fpext float %number to double")
        make = _FROM_NUMBER["double" if of.is_float else "bool" if of.is_bool else "i64" if of.is_int else "u64"]
        number = "double %wide" if type_ == "float" else f"{type_} %number"
        return [*lines, f"  %object = call ptr @{make}({number})", "  ret ptr %object"]

    def finish(self) -> None:
        """Emits the exits: a status becomes the result or an exception, and block `slow` calls the checked call in Python."""
        statuses = ", ".join(f"[ {status}, %{block} ]" for status, block in self.ends)
        self.lines += [
            "finish:", f"  %status = phi i32 {statuses}",
            "  %fine = icmp eq i32 %status, 0", "  br i1 %fine, label %done, label %failed",
            "done:", *self.python_object(),
            "failed:", "  %nothing = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %self, ptr @tedsl.fail, "
            "ptr @tedsl.format, i32 %status)", "  ret ptr null",
            "slow:", "  %by_name = icmp ne ptr %names, null", "  br i1 %by_name, label %named, label %checked",
            "named:", "  %refused = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %self, ptr @tedsl.refuse_names, "
            "ptr @tedsl.object, ptr %names)", "  ret ptr %refused",
            "checked:", *self.checked_call(), "}", ""]
