"""The entry points of a kernel for C, in LLVM IR.

    int32_t PREFIX_NAME(const DLTensor *const *args, int32_t count, char *message, size_t size)
    int32_t PREFIX_NAME_raw(void *A, ..., int64_t n, ...)

The first checks every argument as a call from Python is checked, and says in `message` what does not fit; the second takes the
kernel's own arguments and checks nothing. Both return a status: 0, NO_MEMORY, or 16 and more for an assertion; the first also
BAD_TYPE and BAD_VALUE. A kernel that returns a number stores it through one argument more, the last: a tensor of rank 0, or
the address of an int64_t, float or double.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tedsl.codegen.kernels.abi import FIRST_ASSERTION, NO_MEMORY
from tedsl.codegen.kernels.checks import Words
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.entry.checks import EntryChecks
from tedsl.codegen.llvm.entry.disjoint import MOST_PAIRS
from tedsl.codegen.llvm.entry.symbol import QUICK
from tedsl.codegen.llvm.export import tensors
from tedsl.codegen.llvm.types import argument_type, global_name
from tedsl.ir.dtype import FLOAT32, DType
from tedsl.ir.expr import IntImm, SizeVar
from tedsl.runtime.arguments import words
from tedsl.runtime.signature import Binding, ScalarParam, Signature, TensorParam

BAD_TYPE = 2  # too few or too many arguments, or one of another kind, device or dtype
BAD_VALUE = 4  # an argument whose shape, strides, memory or value does not fit
_CPU = 1  # DLPack's kDLCPU
_PRINTED = {"d": "i64", "u": "i64", "s": "ptr", "g": "double"}  # kinds of values in messages
_VALUE = re.compile("\x01([0-9]{1,9})\x02")


def kernel_types(kernel: KernelSymbol, pointers: int) -> list[str]:
    """Lists the LLVM types of a kernel's arguments, of which the first are `pointers` arrays."""
    result = [] if kernel.result is None else ["ptr"]
    return ["ptr"] * pointers + [argument_type(v.dtype) for v in kernel.scalars] + result


def stored_result(of: DType) -> DType:
    """Returns the dtype in which a kernel's number reaches C: its own, but float32 for floats of 16 bits."""
    return FLOAT32 if of.is_float and of.bits == 16 else of


def raw_source(symbol: str, kernel: KernelSymbol, pointers: int) -> str:
    """Returns the IR of `symbol`, the kernel under a name for C."""
    types = kernel_types(kernel, pointers)
    takes = ", ".join(f"{t} %a{k}" for k, t in enumerate(types))
    return "\n".join([f"define i32 {global_name(symbol)}({takes}) nounwind {{",
                      f"  %status = call i32 {global_name(kernel.symbol)}({takes}) noinline", "  ret i32 %status", "}", ""])


def c_entry_source(symbol: str, sig: Signature, general: KernelSymbol, compact: KernelSymbol | None, messages: Sequence[str],
                   size_type: str) -> str:
    """Returns the IR of the checked entry point `symbol`. messages: of the assertions; size_type: of C's size_t.

    It calls the functions of `tensors.tensor_functions`.
    """
    return _CEntry(symbol, sig, general, compact, messages, size_type).text()


class _CEntry(EntryChecks):
    """Emits one entry point. Where a requirement fails, the message is written at once and the function returns."""

    def __init__(self, symbol: str, sig: Signature, general: KernelSymbol, compact: KernelSymbol | None,
                 messages: Sequence[str], size_type: str) -> None:
        super().__init__(sig, general, compact)
        self.symbol, self.messages, self.size_type = symbol, messages, size_type
        self.tensors: dict[int, str] = {}
        self.printable: list[tuple[str, str]] = []  # the values that messages show, with their kinds
        self.memory: list[str] = []  # on the stack
        self.constants: list[str] = []
        self.requirements = 0

    # --- refusals ---

    def require(self, condition: str, problem: Words, status: int = BAD_VALUE) -> None:
        self.requirements += 1
        fine, refused = f"fine{self.requirements}", f"refused{self.requirements}"
        self.lines.append(f"  br i1 {condition}, label %{fine}, label %{refused}")
        self.start(refused)
        shown_before = len(self.printable)
        self.say(problem(), shown_before)
        self.lines.append(f"  ret i32 {status}")
        self.start(fine)

    def shown(self, value: str) -> str:
        return self.printed("d", value)

    def printed(self, kind: str, value: str) -> str:
        """Returns what stands for `value` in words: d, u, a number of 64 bits, signed or not; s, a text; g, a double."""
        self.printable.append((kind, value))
        return f"\x01{len(self.printable) - 1}\x02"

    def say(self, text: str, first: int) -> None:
        """Emits the writing of a message, in which marks of `printed` stand for values: those from number `first` on, for names
        and messages of the program may contain what looks like one.
        """
        values: list[str] = []

        def placed(mark: re.Match[str]) -> str:
            if not first <= int(mark[1]) < len(self.printable):
                return mark[0]
            kind, value = self.printable[int(mark[1])]
            values.append(f", {_PRINTED[kind]} {value}")
            return {"d": "%lld", "u": "%llu", "s": "%s", "g": "%g"}[kind]

        spelled = _VALUE.sub(placed, text.replace("%", "%%"))
        self.assign(f"call i32 (ptr, {self.size_type}, ptr, ...) @snprintf(ptr %message, {self.size_type} %room, "
                    f"ptr {self.constant(spelled)}{''.join(values)})")

    def constant(self, text: str) -> str:
        """Returns the name of a constant with `text` for C."""
        data = text.encode(errors="replace") + b"\0"
        spelled = "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in data)
        name = global_name(f"{self.symbol}.text{len(self.constants)}")
        self.constants.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{spelled}"')
        return name

    def reserve(self, type_: str) -> str:
        """Returns memory on the stack for the whole function."""
        name = f"%m{len(self.memory)}"
        self.memory.append(f"  {name} = alloca {type_}, align 8")
        return name

    def next_block(self, label: str) -> None:
        """Goes on in a block of this name: what was required before has been tested already."""
        self.lines.append(f"  br label %{label}")
        self.start(label)

    # --- the function, top to bottom ---

    def text(self) -> str:
        head = (f"define i32 {global_name(self.symbol)}(ptr %args, i32 %count, ptr %message, {self.size_type} %size) "
                f"{QUICK} {{")
        self.lines += ["  %unheard = icmp eq ptr %message, null",
                       f"  %room = select i1 %unheard, {self.size_type} 0, {self.size_type} %size"]
        self.check_count()
        for k, param in enumerate(self.sig.params):
            self.check_tensor(k, words.argument(self.sig, k))
            if isinstance(param, TensorParam):
                self.check_array(k, param)
        for k, param in self.sig.tensors():
            self.load_shape(k, param)
        if self.sig.result is not None:
            self.check_result(self.sig.result)
        self.bind_scalars()
        self.bind("shape")
        self.check_shapes()
        self.choose_kernel()
        self.finish()
        return "\n".join([*self.constants, head, "entry:", *self.memory, *self.lines])

    def check_count(self) -> None:
        more = ["result"] if self.sig.result is not None else []
        count = len(self.sig.params) + len(more)
        wide = self.assign("sext i32 %count to i64")
        self.require(self.assign(f"icmp eq i64 {wide}, {count}"),
                     lambda: words.wrong_count(self.sig, self.shown(wide), more), BAD_TYPE)
        if count:
            self.require(self.assign("icmp ne ptr %args, null"), lambda: f"{self.sig.name}: the arguments are NULL", BAD_TYPE)

    def check_result(self, of: DType) -> None:
        """Requires a tensor of rank 0 for the number that the kernel returns."""
        k, wanted = len(self.sig.params), stored_result(of)
        where = f"{self.sig.name}: argument {k + 1} (result)"
        self.check_tensor(k, where)
        fits = self.has_dtype(k, *_encodings(wanted)[0])
        self.require(fits, lambda: f"{where} has dtype {self.dtype_text(k)}, it needs {wanted}", BAD_TYPE)
        rank = self.tensor_field(k, tensors.RANK, "i32")
        self.require(self.assign(f"icmp eq i32 {rank}, 0"),
                     lambda: f"{where} has {self.rank_text(rank)} dimensions; it needs 0")
        self.require(self.assign(f"icmp ne ptr {self.tensor_field(k, tensors.DATA, 'ptr')}, null"),
                     lambda: f"{where} has no data: its pointer is NULL")
        self.memory.append("  %result = alloca i64, align 8")

    def tensor_field(self, k: int, field: int, type_: str) -> str:
        """Emits the field number `field`, of LLVM's type `type_`, of tensor `k`."""
        return self.assign(f"load {type_}, ptr "
                           + self.assign(f"getelementptr %tedsl.tensor, ptr {self.tensors[k]}, i32 0, i32 {field}"))

    def widened(self, value: str, type_: str) -> str:
        """Returns what stands in words for an unsigned number of fewer than 64 bits."""
        return self.printed("u", self.assign(f"zext {type_} {value} to i64"))

    def check_tensor(self, k: int, where: str) -> None:
        """Loads argument `k` and requires that it is a tensor in memory of the CPU. where: how messages about it begin."""
        self.tensors[k] = tensor = self.assign(f"load ptr, ptr {self.assign(f'getelementptr ptr, ptr %args, i32 {k}')}")
        self.require(self.assign(f"icmp ne ptr {tensor}, null"), lambda: f"{where} is NULL", BAD_TYPE)
        device = self.tensor_field(k, tensors.DEVICE, "i32")
        self.require(self.assign(f"icmp eq i32 {device}, {_CPU}"),
                     lambda: f"{where} lives on another device (DLPack kind {self.widened(device, 'i32')})", BAD_TYPE)

    def check_array(self, k: int, param: TensorParam) -> None:
        """Requires the dtype and rank of array `k`, that its shape is there, and that its elements are aligned."""
        dtypes = [self.has_dtype(k, *of) for of in _encodings(param.dtype)]
        fits = dtypes[0] if len(dtypes) == 1 else self.assign(f"or i1 {dtypes[0]}, {dtypes[1]}")
        self.require(fits, lambda: words.wrong_dtype(self.sig, k, self.dtype_text(k)), BAD_TYPE)
        rank, given = len(param.shape), self.tensor_field(k, tensors.RANK, "i32")
        shape = self.tensor_field(k, tensors.SHAPE, "ptr")
        absent = self.assign(f"icmp eq ptr {shape}, null")
        some = self.assign(f"icmp sgt i32 {given}, 0")
        missing = self.assign(f"and i1 {absent}, {some}")
        self.require(self.assign(f"xor i1 {missing}, true"),
                     lambda: f"{words.argument(self.sig, k)} has {self.rank_text(given)} dimensions and no shape")
        self.require(self.assign(f"icmp eq i32 {given}, {rank}"), lambda: words.wrong_rank(
            self.sig, k, param, self.rank_text(given), self.shape_text(shape, given)))
        self.data[k] = data = self.assign(f"call ptr @tedsl.data(ptr {self.tensors[k]})")
        alignment = param.dtype.element.bytes
        if alignment > 1:
            address = self.assign(f"ptrtoint ptr {data} to i64")
            self.require(self.assign(f"icmp eq i64 {self.assign(f'and i64 {address}, {alignment - 1}')}, 0"),
                         lambda: words.misaligned(self.sig, k, alignment))

    def has_dtype(self, k: int, code: int, bits: int, lanes: int) -> str:
        """Emits an i1: whether tensor `k` has this dtype of DLPack."""
        equal = [self.assign(f"icmp eq {type_} {self.tensor_field(k, field, type_)}, {wanted}") for field, type_, wanted in
                 ((tensors.CODE, "i8", code), (tensors.BITS, "i8", bits), (tensors.LANES, "i16", lanes))]
        return self.all_of(equal)

    def dtype_text(self, k: int) -> str:
        """Returns what stands in words for the dtype of tensor `k`."""
        memory = self.reserve(f"[{tensors.TEXT_BYTES} x i8]")
        return self.printed("s", self.assign(f"call ptr @tedsl.dtype_text(ptr {memory}, ptr {self.tensors[k]})"))

    def rank_text(self, rank: str) -> str:
        """Returns what stands in words for a number of dimensions, which is below 0 in tensors that are not filled in."""
        return self.shown(self.assign(f"sext i32 {rank} to i64"))

    def shape_text(self, shape: str, rank: str) -> str:
        """Returns what stands in words for an array of `rank` numbers in memory."""
        memory = self.reserve(f"[{tensors.TEXT_BYTES} x i8]")
        return self.printed("s", self.assign(f"call ptr @tedsl.tuple_text(ptr {memory}, ptr {shape}, i32 {rank})"))

    def load_shape(self, k: int, param: TensorParam) -> None:
        """Loads the extents of array `k`; requires that they are at least 0, and memory where there are elements."""
        shape = self.tensor_field(k, tensors.SHAPE, "ptr")
        self.dims[k] = [self.assign(f"load i64, ptr {self.assign(f'getelementptr i64, ptr {shape}, i32 {d}')}, align 8")
                        for d in range(len(param.shape))]
        where = words.argument(self.sig, k)
        for dim, expr in zip(self.dims[k], param.shape):
            if not isinstance(expr, IntImm):
                self.require(self.assign(f"icmp sge i64 {dim}, 0"), lambda: (
                    f"{where} has shape {self.tuple_text(self.dims[k])}, and an extent is at least 0"))
        present = self.assign(f"icmp ne ptr {self.tensor_field(k, tensors.DATA, 'ptr')}, null")
        self.require(self.assign(f"or i1 {present}, {self.is_empty(k)}"), lambda: f"{where} has no data: its pointer is NULL")

    def is_empty(self, k: int) -> str:
        """Emits an i1: whether array `k` has no elements."""
        result = "false"
        for dim in self.dims[k]:
            none = self.assign(f"icmp eq i64 {dim}, 0")
            result = none if result == "false" else self.assign(f"or i1 {result}, {none}")
        return result

    # --- numbers ---

    def scalar(self, binding: Binding) -> str:
        k, of = binding.param, binding.var.dtype
        param, where = self.sig.params[k], words.argument(self.sig, k)
        assert isinstance(param, ScalarParam)
        self.require(self.assign(f"icmp eq i32 {self.tensor_field(k, tensors.RANK, 'i32')}, 0"), lambda: (
            f"{where} is a number of dtype {of}, a tensor of {self.rank_text(self.tensor_field(k, tensors.RANK, 'i32'))} "
            "dimensions was given"), BAD_TYPE)
        self.require(self.assign(f"icmp ne ptr {self.tensor_field(k, tensors.DATA, 'ptr')}, null"),
                     lambda: f"{where} has no data: its pointer is NULL")
        no_number: Words = lambda: f"{where} is a number of dtype {of}, a tensor of dtype {self.dtype_text(k)} was given"
        memory = self.reserve("i64")
        if of.is_float:
            is_real = self.assign(f"call i1 @tedsl.real(ptr {self.tensors[k]}, ptr {memory})")
            self.require(is_real, no_number, BAD_TYPE)
            value = self.assign(f"load double, ptr {memory}")
            return self.narrowed(value, of, lambda: words.too_large(self.sig, k, of, self.printed("g", value)))
        if of.is_handle:
            self.require(self.has_dtype(k, *_encodings(of)[0]), no_number, BAD_TYPE)
            return self.assign(f"load ptr, ptr {self.assign(f'call ptr @tedsl.data(ptr {self.tensors[k]})')}, align 1")
        kind = self.assign(f"call i32 @tedsl.integer(ptr {self.tensors[k]}, ptr {memory})")
        self.require(self.assign(f"icmp ne i32 {kind}, 0"), no_number, BAD_TYPE)
        value = self.assign(f"load i64, ptr {memory}")
        return self.integer(binding, kind, value)

    def integer(self, binding: Binding, kind: str, value: str) -> str:
        """Requires that an integer fits its dtype. kind: 2 for a value of uint64 above the range of int64."""
        k, of = binding.param, binding.var.dtype
        natural = self.assign(f"icmp eq i32 {kind}, 2")
        if of == "uint64":
            low = self.assign(f"icmp sge i64 {value}, 0")
            self.require(self.assign(f"or i1 {natural}, {low}"), lambda: words.too_large(self.sig, k, of, self.shown(value)))
            return value
        self.require(self.assign(f"xor i1 {natural}, true"), lambda: words.too_large(self.sig, k, of, self.printed("u", value)))
        beyond: Words = lambda: words.too_large(self.sig, k, of, self.shown(value))
        if isinstance(binding.var, SizeVar) and of.min_value is not None and of.min_value > -2**63:  # said first, as in Python
            self.require(self.assign(f"icmp sge i64 {value}, {of.min_value}"), beyond)
        self.require_fit(binding.var, value, lambda: words.negative_size(self.sig, k, self.shown(value)), beyond)
        return value

    # --- strides ---

    def is_compact(self, k: int) -> str:
        return self.assign(f"call i1 @tedsl.is_compact(ptr {self.tensors[k]}, i32 {len(self.dims[k])})")

    def element_strides(self, k: int, param: TensorParam) -> str:
        """Emits the strides of array `k`, those of dimensions of extent 1 as in a compact one; returns where they are."""
        rank = len(param.shape)
        memory = self.reserve(f"[{max(rank, 1)} x i64]")
        broadcast = "true" if param.buffer.buffer_type == "auto_broadcast" else "false"
        self.lines.append(f"  call void @tedsl.strides(ptr {self.tensors[k]}, i32 {rank}, ptr {memory}, i1 {broadcast})")
        return memory

    def load_strides(self, k: int) -> list[str]:
        param = self.sig.params[k]
        assert isinstance(param, TensorParam)
        memory, rank = self.element_strides(k, param), len(param.shape)
        values = [self.assign(f"load i64, ptr {self.assign(f'getelementptr i64, ptr {memory}, i32 {d}')}, align 8")
                  for d in range(rank)]
        if param.written:
            shape = self.tensor_field(k, tensors.SHAPE, "ptr")
            shared = self.assign(f"call i32 @tedsl.shared(ptr {shape}, ptr {memory}, i32 {rank})")
            for answer, surely in ((2, True), (1, False)):
                self.require(self.assign(f"icmp ne i32 {shared}, {answer}"), self.shared_words(k, values, surely))
        return values

    def shared_words(self, k: int, strides: list[str], surely: bool) -> Words:
        return lambda: words.shared_elements(self.sig, k, f"{self.tuple_text(strides)} in elements",
                                             self.tuple_text(self.dims[k]), surely=surely)

    def is_stride(self, dim: str, given: str, wanted: str) -> str:
        return self.either(super().is_stride(dim, given, wanted), self.assign(f"icmp sle i64 {dim}, 1"))

    def choose_kernel(self) -> None:
        for k, param in self.sig.tensors():
            if not param.strides:
                self.require(self.is_compact(k), self.contiguous_words(k, param))
        super().choose_kernel()

    def contiguous_words(self, k: int, param: TensorParam) -> Words:
        def say() -> str:
            memory = self.element_strides(k, param)
            rank = str(len(param.shape))
            return words.not_contiguous(self.sig, k, f"{self.shape_text(memory, rank)} in elements",
                                        self.tuple_text(self.dims[k]))
        return say

    def bounds(self, k: int, param: TensorParam, strides: list[str] | None) -> tuple[str, str]:
        low, high = super().bounds(k, param, strides)
        none = self.is_empty(k)
        if none == "false":
            return low, high
        return (self.assign(f"select i1 {none}, ptr {self.data[k]}, ptr {low}"),
                self.assign(f"select i1 {none}, ptr {self.data[k]}, ptr {high}"))

    def compare(self, bounds: dict[int, tuple[str, str]], strides: dict[int, list[str]]) -> None:
        outputs = [k for k, param in self.sig.tensors() if param.written]
        if len(outputs) * len(bounds) <= MOST_PAIRS:
            super().compare(bounds, strides)
            return
        order = sorted(bounds, key=lambda k: k not in outputs)
        memory = self.reserve(f"[{2 * len(order)} x ptr]")
        for place, address in enumerate(address for k in order for address in bounds[k]):
            self.lines.append(f"  store ptr {address}, ptr {self.assign(f'getelementptr ptr, ptr {memory}, i64 {place}')}")
        names = self.table([words.position(self.sig, k) for k in order])
        for place, k in enumerate(outputs):
            other = self.assign(f"call i64 @tedsl.meeting(ptr {memory}, i64 {place}, i64 {len(order)})")
            self.require(self.assign(f"icmp slt i64 {other}, 0"), self.meeting_words(k, names, other, compact=not strides))

    def meeting_words(self, k: int, names: str, other: str, *, compact: bool) -> Words:
        """names: a table of the positions of arguments; other: a place in it."""
        def say() -> str:
            name = self.assign(f"load ptr, ptr {self.assign(f'getelementptr ptr, ptr {names}, i64 {other}')}")
            return self.overlap_text(k, self.printed("s", name), compact)
        return say

    def table(self, texts: Sequence[str]) -> str:
        """Returns the name of a constant array of pointers to texts."""
        pointers = ", ".join(f"ptr {self.constant(text)}" for text in texts)
        name = global_name(f"{self.symbol}.table{len(self.constants)}")
        self.constants.append(f"{name} = private unnamed_addr constant [{len(texts)} x ptr] [{pointers}]")
        return name

    def apart(self, first: tuple[str, str], second: tuple[str, str]) -> str:
        beside = super().apart(first, second)
        for low, high in (first, second):
            beside = self.either(beside, self.assign(f"icmp eq ptr {low}, {high}"))
        return beside

    # --- the call ---

    def call(self, kernel: KernelSymbol) -> None:
        self.leave(self.assign(self.run(kernel)), kernel)

    def finish(self) -> None:
        """Emits what follows the kernel: the message that its status stands for."""
        statuses = ", ".join(f"[ {status}, %{block} ]" for status, block in self.ends)
        known = {NO_MEMORY: words.no_memory(self.sig)} | {
            FIRST_ASSERTION + k: f"{self.sig.name}: {message}" for k, message in enumerate(self.messages)}
        cases = "  ".join(f"i32 {status}, label %status{status}" for status in (0, *known))
        self.lines += ["finish:", f"  %status = phi i32 {statuses}", f"  switch i32 %status, label %done [ {cases} ]"]
        self.start("status0")
        self.store_result()
        self.lines.append("  br label %done")
        for status, text in known.items():
            self.start(f"status{status}")
            self.say(text, len(self.printable))
            self.lines.append("  br label %done")
        self.lines += ["done:", "  ret i32 %status", "}", ""]


    def store_result(self) -> None:
        """Emits the store of the number that the kernel returned into the last tensor."""
        of = self.sig.result
        if of is None:
            return
        number = self.assign(f"load {argument_type(of)}, ptr %result")
        if not of.is_float and not of.is_handle and of.bytes < 8:
            number = self.assign(f"trunc i64 {number} to i{8 * of.bytes}")
        type_ = argument_type(of) if of.is_float or of.is_handle else f"i{8 * of.bytes}"
        place = self.assign(f"call ptr @tedsl.data(ptr {self.tensors[len(self.sig.params)]})")
        self.lines.append(f"  store {type_} {number}, ptr {place}, align 1")


def _encodings(of: DType) -> list[tuple[int, int, int]]:
    """Lists the code, bits and lanes that DLPack has for a dtype; bfloat16 may come as uint16, as from Python."""
    bits = 8 if of.is_bool else of.bits
    return [(tensors.CODES[of.code], bits, of.lanes)] + ([(tensors.CODES["uint"], 16, of.lanes)] if of.code == "bfloat" else [])
