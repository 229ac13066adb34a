"""`Target`: the machine that code is generated for, from TVM's notation, and what that machine can do."""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError, did_you_mean
from tedsl.ir.dtype import DType
from tedsl.ir.dtype import dtype as as_dtype
from tedsl.ir.node import is_text
from tedsl.target.features import BASELINE, CPUS, FEATURES, MICROCONTROLLERS, UNLISTED, apply_changes
from tedsl.target.host import host
from tedsl.target.kinds import COMMON, COUNTS, TAGS, TargetKind, find_kind, kind_names, names_that_build
from tedsl.target.machine import Machine, as_here, machine_called, machine_of
from tedsl.target.stack import current_target, enter, leave

_SYSTEMS = ("linux", "windows", "darwin", "none", "freebsd")


class Target:
    """The machine to generate code for: `Target("llvm -mcpu=skylake-avx512")`, a dict `{"kind": "llvm", "mcpu": ...}`, or a
    Target.

    Without -mcpu, -mattr and -mtriple, `llvm` means this machine. With -mtriple alone, or another triple, it means the baseline
    processor of that architecture. Targets with equal notations are equal.
    """

    def __init__(self, target: Any = "llvm", host: Any = None) -> None:
        kind, options, inner = _parse(target)
        self.kind = kind
        if options.get("mcpu") == "native" and "mtriple" not in options:
            del options["mcpu"]  # this machine, which is what no processor means
        self.attrs: dict[str, Any] = options
        self.mcpu: str = str(options.get("mcpu", options.get("march", "")))
        self.mattr: tuple[str, ...] = tuple(options.get("mattr", ()))
        self.mtriple: str = str(options.get("mtriple", ""))
        self.model: str = str(options.get("model", "unknown"))
        self.libs: tuple[str, ...] = tuple(options.get("libs", ()))
        device = (str(options["device"]),) if "device" in options else ()
        self.keys: tuple[str, ...] = tuple(dict.fromkeys((*device, *options.pop("keys", ()), *kind.keys)))
        given_host = host if host is not None else options.pop("host", inner)
        is_made = given_host is None or isinstance(given_host, Target)
        self.host: Target | None = given_host if is_made else Target(given_host)
        self._is_cpu = kind.keys[0] == "cpu"
        _check_features(self)

    # --- names ------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [self.kind.name, f"-keys={','.join(self.keys)}"]
        parts += [f"-{name}={_option_text(value)}" for name, value in sorted(self.attrs.items())]
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and str(self) == str(other) and self.host == other.host

    def __hash__(self) -> int:
        return hash(str(self))

    # --- what the machine is -----------------------------------------------------------------------------------------

    @property
    def is_host(self) -> bool:
        """Tells whether the notation names no processor, so that it means the machine it runs on."""
        return self._names_none and not self.kind.portable

    @property
    def _names_none(self) -> bool:
        return self._is_cpu and not (self._processor or self.mattr or self.mtriple)

    @property
    def _processor(self) -> str:
        """What -mcpu says; "" for microcontrollers, for which the code is the portable one unless -mtriple asks for another."""
        portable = self.kind.portable and self.mcpu in MICROCONTROLLERS and not self.mtriple
        return "" if portable else self.mcpu

    @property
    def is_portable(self) -> bool:
        """Tells whether the notation means any processor, so that nothing is known of it."""
        return self._names_none and self.kind.portable

    @functools.cached_property
    def triple(self) -> str:
        """Architecture, vendor, system and environment, with the vendor filled in: LLVM ignores the environment of a triple
        without one, as in arm-linux-gnueabihf. An architecture alone, x86_64, is this machine's if it has it. "unknown" for
        code that runs on any.
        """
        if self.is_portable:
            return "unknown"
        parts = self.mtriple.split("-")
        if self.kind.name == "llvm" and len(parts) == 1 and parts[0] and _arch_of(parts[0]) == _arch_of(host().triple):
            return host().triple
        if len(parts) == 3 and parts[1] in _SYSTEMS:
            parts.insert(1, "unknown")
        return "-".join(parts) or self.kind.triple or host().triple

    @functools.cached_property
    def architecture(self) -> str:
        """x86-64, aarch64, or the first part of the triple."""
        return _arch_of(self.triple)

    @property
    def arch(self) -> str:
        """What -arch says, as "sm_80" of a device; of others the architecture."""
        return str(self.attrs.get("arch", "")) or self.architecture

    @property
    def platform(self) -> str:
        """Architecture and system: "x86-64 linux"."""
        return _platform(self.triple)

    @functools.cached_property
    def cpu(self) -> str:
        """The processor's name for LLVM."""
        if self.is_host:
            return host().cpu
        named = str(self.attrs.get("arch", "")) or self._processor or self.kind.processor
        return named or BASELINE.get(self.architecture, "generic")

    @functools.cached_property
    def features(self) -> frozenset[str]:
        """Names of instruction sets: "avx2", "fma", "avx512f", "neon", ..."""
        if self.is_host:
            return host().features
        return apply_changes(CPUS.get(self.architecture, {}).get(self.cpu, ()), self.mattr)

    @functools.cached_property
    def feature_string(self) -> str:
        """The features in LLVM's notation, which go with the name of the processor."""
        if self.is_host:
            return host().feature_string
        # LLVM's generic-rv64 has no floats, and its newest version of PTX is unknown to older drivers.
        baseline = CPUS[self.architecture].get(self.cpu, ()) if self.architecture in ("riscv64", "nvptx64") else ()
        without = (name for name in UNLISTED.get(self.architecture, ()) if name not in self.features)
        return ",".join([*(f"+{name}" for name in baseline), *(f"-{name}" for name in without), *self.mattr])

    @functools.cached_property
    def vector_bits(self) -> int:
        """Width in bits of the vector registers that generated code uses: the widest, or what -vector-width says.

        SVE's registers have a width that only the processor knows. Without -vector-width the code uses their 128 bits that
        NEON has; with it, it is code for processors of exactly that width.
        """
        return int(self.attrs.get("vector-width", self._widest))

    @property
    def is_device(self) -> bool:
        """Tells whether it is a device beside the processor, whose threads run kernels."""
        return "gpu" in self.kind.keys

    @property
    def _widest(self) -> int:
        if self.is_device:
            return 128
        if self.architecture == "x86-64":
            return 512 if "avx512f" in self.features else 256 if "avx" in self.features else 128
        if self.architecture == "riscv64" and "v" in self.features:
            promised = [int(name[3:-1]) for name in self.features if re.fullmatch("zvl[0-9]+b", name)]
            return min(max([128, *promised]), 1024)
        return 128

    @functools.cached_property
    def machine(self) -> Machine:
        """The caches, registers and speeds that schedules choose their tiles by: of -model, else of the processor; with as
        many cores as -num-cores says.

        Raises ArgumentError if -model names a file that does not describe a machine.
        """
        machine = machine_called(self.model)
        if machine is None:
            row = machine_of(self.architecture, self.cpu, self.vector_bits)
            machine = as_here(row) if self.is_host else row
        cores = self.attrs.get("num-cores")
        return machine if cores is None else dataclasses.replace(machine, cores=cores)

    def vector_lanes(self, dtype: DType | str) -> int:
        """Returns the number of elements of `dtype` in one vector; bool counts as a byte."""
        return max(1, self.vector_bits // max(8, as_dtype(dtype).bits))

    @functools.cached_property
    def has_fma(self) -> bool:
        """Tells whether one instruction computes a * b + c with one rounding, as on every device that -fma=0 does not say to
        have none.
        """
        if "gpu" in self.kind.keys:
            return bool(self.attrs.get("fma", True))
        if self.architecture == "riscv64":
            return "d" in self.features
        return self.architecture in ("aarch64", "nvptx64") or bool(self.features & {"fma", "vfp4"})

    @property
    def has_mask_registers(self) -> bool:
        """Tells whether a load with a mask takes no longer than one without, as with the masks of AVX-512."""
        return not self.is_device and "avx512f" in self.features

    @functools.cached_property
    def has_gather(self) -> bool:
        """Tells whether one gather instruction is faster than one load per lane."""
        return not self.is_device and "avx512f" in self.features

    def dot_terms(self, left: DType | str, right: DType | str) -> int:
        """Returns how many neighbouring products of these narrow dtypes one instruction adds to a 32-bit sum; 1 if there is
        none.
        """
        if self.kind.name != "llvm":
            return 1
        if as_dtype(left).code == as_dtype(right).code == "bfloat":
            return 2 if {"avx512bf16", "avx512bw", "avx512vl"} <= self.features else 1
        bits = {as_dtype(d).bits for d in (left, right)} if as_dtype(left).is_integer and as_dtype(right).is_integer else set()
        if self.architecture == "x86-64" and "sse2" in self.features:
            both_signed = as_dtype(left).is_int and as_dtype(right).is_int
            return 4 if bits == {8} else 2 if bits == {16} and both_signed else 1
        return 4 if bits == {8} and self.architecture == "aarch64" and "dotprod" in self.features else 1

    @property
    def has_vnni(self) -> bool:
        """Tells whether an x86 processor adds up four products of unsigned and signed bytes, in vectors of all its widths."""
        narrow = "avxvnni" in self.features and self.vector_bits < 512
        return self.architecture == "x86-64" and (narrow or {"avx512vnni", "avx512bw", "avx512vl"} <= self.features)

    @property
    def has_byte_products(self) -> bool:
        """Tells whether sums of products of bytes take less time than those of float32."""
        adds_groups = self.dot_terms("uint8", "int8") > 1  # on x86 without VNNI as 16-bit integers
        return adds_groups and (self.architecture == "aarch64" or self.has_vnni or self.multiplies_tiles("uint8", "int8"))

    def multiplies_tiles(self, left: DType | str, right: DType | str) -> bool:
        """Tells whether the processor multiplies matrices of these dtypes in tile registers (AMX), which Linux lets programs
        use.
        """
        pair = as_dtype(left), as_dtype(right)
        bytes_, bfloats = (all(of.is_integer and of.bits == 8 for of in pair), all(of.code == "bfloat" for of in pair))
        needed = "amx-int8" if bytes_ else "amx-bf16" if bfloats else ""
        return self.kind.name == "llvm" and self.architecture == "x86-64" and "linux" in self.triple and bool(needed) and \
            {"amx-tile", needed} <= self.features

    @property
    def has_sve_width(self) -> bool:
        """Tells whether the code uses SVE, for processors whose registers have `vector_bits` bits."""
        return "sve" in self.features and self.architecture == "aarch64" and self.vector_bits > 128

    def can_mask(self, dtype: DType) -> bool:
        """Tells whether loads and stores of vectors of `dtype` can be masked, which decides how masked tails are compiled."""
        bits = max(8, dtype.bits)
        if self.is_device:
            return False
        if self.architecture == "riscv64":
            return "v" in self.features
        if self.has_sve_width:
            return True
        if "avx512f" in self.features:
            return bits >= 32 or "avx512bw" in self.features
        return "avx2" in self.features and bits >= 32

    def compresses(self, vector: DType) -> bool:
        """Tells whether one instruction packs the lanes of a vector where a condition holds (te.compress_lanes)."""
        sizes = (128, 256, 512) if "avx512vl" in self.features else (512,)
        return self.has_mask_registers and self.kind.name == "llvm" and vector.bits in (32, 64) and \
            vector.bits * vector.lanes in sizes

    @functools.cached_property
    def runs_here(self) -> bool:
        """Tells whether this machine can run the code: same architecture, and no feature that it lacks."""
        if not self._is_cpu or self.kind.name not in ("llvm", "c"):
            return False
        if self._names_none:
            return True
        have = host().features | {"sse", "sse2", "neon", "fp-armv8"}
        return self.platform == _platform(host().triple) and self.features <= have

    @property
    def missing_here(self) -> tuple[str, ...]:
        """The features of this target that this machine lacks, sorted."""
        return tuple(sorted(self.features - host().features))

    @property
    def max_num_threads(self) -> int:
        """The largest number of threads in a block of this device."""
        return self._limit("max_num_threads")

    @property
    def thread_warp_size(self) -> int:
        """The number of threads of this device that run in lockstep."""
        return self._limit("thread_warp_size")

    def _limit(self, name: str) -> int:
        limit = self.attrs.get(name, getattr(self.kind, name))
        if limit is None:
            raise OptionError(f"target {self} has no {name}: threads of a block are those of a GPU",
                              hint=f'Target("cuda").{name}')
        return int(limit)

    @property
    def device_name(self) -> str:
        """The device that -device names, "" for none."""
        return str(self.attrs.get("device", ""))

    def with_host(self, host: Any = None) -> Target:
        """Returns this target with another host."""
        return Target(self, host)

    @staticmethod
    def check_and_update_host_consist(target: Any, host: Any = None, target_is_dict_key: bool = True) \
            -> tuple[Any, Target | None]:
        """Returns a target, or a dict that has targets for keys (else for values), as Targets with `host`, and the host."""
        if isinstance(target, Mapping) and "kind" not in target:
            with_hosts = {Target(one, host) if target_is_dict_key else one: other if target_is_dict_key else Target(other, host)
                          for one, other in target.items()}
            return with_hosts, None if host is None else Target(host)
        given = None if target is None else Target(target, host)
        return given, None if given is None else given.host

    @staticmethod
    def list_kinds() -> list[str]:
        """Returns the names of all kinds."""
        return kind_names()

    # --- the current target --------------------------------------------------------------------------------------------

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """Returns the target of the innermost `with` block; without one None, or raises if that is not allowed."""
        target = current_target()
        if target is None and not allow_none:
            raise ArgumentError("there is no current target", hint='write: with tedsl.target.Target("llvm"): ...')
        return target

    def __enter__(self) -> Target:
        enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        leave()

    def export(self) -> dict[str, Any]:
        """Returns the dict that `Target` turns into an equal target."""
        notation = {"kind": self.kind.name, "keys": list(self.keys), **self.attrs}
        return {**notation, "host": self.host.export()} if self.host is not None else notation


def _arch_of(triple: str) -> str:
    first = triple.split("-")[0]
    known = {"x86_64": "x86-64", "amd64": "x86-64", "arm64": "aarch64"}.get(first)
    if known is None and re.fullmatch("(arm|thumb)(v[0-9].*)?", first):
        return "arm"
    return known or first


def _platform(triple: str) -> str:
    """Returns architecture and system: code for another platform cannot be linked here."""
    system = next((name for name in ("linux", "windows", "darwin", "macos") if name in triple), "")
    return f"{_arch_of(triple)} {system.replace('macos', 'darwin')}".strip()


def _parse(target: Any) -> tuple[TargetKind, dict[str, Any], Target | None]:
    """Returns the kind, options and host of any notation."""
    if isinstance(target, Target):
        return target.kind, {**target.attrs, "keys": target.keys}, target.host
    if isinstance(target, str):
        stripped = target.strip()
        if stripped in TAGS:
            return _parse(TAGS[stripped])
        if stripped.startswith("{"):
            import json

            try:
                return _parse(json.loads(stripped))
            except json.JSONDecodeError as error:
                raise ArgumentError(f"the target {target!r} begins like JSON but is not valid JSON: {error}",
                                    hint='write {"kind": "llvm", "mcpu": "haswell"}, or the same as a dict') from None
        try:
            words = shlex.split(stripped)
        except ValueError:
            raise ArgumentError(f"the target {target!r} has a quote that is not closed, or ends with a backslash",
                                hint='for example "llvm -mcpu=haswell"') from None
        options: dict[str, Any] = dict(_split_option(word, target) for word in _with_values(words[1:]))
        name = words[0] if words else ""
    elif isinstance(target, Mapping):
        if "kind" not in target:
            raise ArgumentError(f"a dict of a target has no \"kind\": {dict(target)!r}",
                                hint='write {"kind": "llvm", "mcpu": "haswell"}, with the options beside the kind')
        options = {str(k): v for k, v in target.items() if k != "kind"}
        name = str(target.get("kind", ""))
    else:
        raise ArgumentTypeError(f"a target is a str, a dict or a Target, not {target!r}",
                                hint='for example "llvm -mcpu=haswell"')
    kind = find_kind(name)
    if kind is None and name == "composite":
        raise ArgumentError("a target is one kind of machine, and a composite one names several",
                            hint='Target("cuda", host="llvm") has a host; build({"llvm": a, "cuda": b}) builds several')
    if kind is None:
        raise _no_kind(name)
    return kind, {key: _option_value(key, value) for key, value in options.items() if _known(kind, key)}, None


def _no_kind(name: str) -> ArgumentError:
    """Returns the error for a name that is no kind of target, as one of a tag is that has options beside it."""
    from difflib import get_close_matches  # few programs ask

    if name in TAGS:
        return ArgumentError(f"the tag {name!r} stands for a whole target: there are no options beside it",
                             hint=f'write its target with them: "{Target(name)}"')
    tags = get_close_matches(name, TAGS) if "/" in name else []
    if tags:
        return ArgumentError(f"there is no tag {name!r} of a target", hint=f"did you mean {' or '.join(tags)}?")
    build = names_that_build()
    rest = [other for other in kind_names() if other not in build]
    return ArgumentError(f"there is no target kind {name!r}",
                         hint=f"code is made for {', '.join(build)}; schedules are also lowered for {', '.join(rest)}")


def _with_values(words: Sequence[str]) -> list[str]:
    """Returns the options of a notation, each with its value: `-num-cores 4` of older programs is `-num-cores=4`."""
    options: list[str] = []
    for word in words:
        if options and not word.startswith("-") and options[-1].startswith("-") and "=" not in options[-1]:
            options[-1] += f"={word}"
        else:
            options.append(word)
    return options


def _split_option(word: str, whole: str) -> tuple[str, str]:
    if not word.startswith("-"):
        raise ArgumentError(f"{word!r} in target {whole!r} is not an option", hint="options are written -name=value")
    name, equals, value = word.lstrip("-").partition("=")
    name = "mtriple" if name == "target" else name  # its name in TVM before 0.7
    if not equals and name in ("mcpu", "march", "mattr", "mtriple", "keys", "libs", "model", "device", "arch", *COUNTS):
        raise ArgumentError(f"{word!r} in target {whole!r} has no value", hint=f"write -{name}=value")
    return name, value if equals else "1"


def _known(kind: TargetKind, option: str) -> bool:
    if option in kind.options or option in COMMON:
        return True
    raise ArgumentError(f"target kind {kind.name!r} has no option {option!r}",
                        hint=did_you_mean(f"-{option}", [f"-{one}" for one in sorted({*kind.options, *COMMON})],
                                          "its options:"))


_EXAMPLES = {"mcpu": "haswell", "mattr": "+avx2,+fma", "mtriple": "aarch64-linux-gnu", "keys": "cpu", "libs": "cblas"}


def _option_value(name: str, value: Any) -> Any:
    """Returns the value of an option: a tuple for lists of names, an int for whole numbers, any other value unchanged."""
    words = value if isinstance(value, (list, tuple)) else (value,)
    if any(isinstance(word, str) and not is_text(word) for word in words):
        raise ArgumentError(f"the option {name} of a target is {value!r}, which has a lone surrogate",
                            hint="write text that can be encoded as UTF-8")
    lists = name in ("mattr", "keys", "libs")
    if isinstance(value, str) and name not in COUNTS and (value == "" or (lists and "" in value.split(","))):
        raise ArgumentError(f"the option {name} of a target is {value!r}, which {'has an empty name' if value else 'is empty'}",
                            hint=f"leave it out, or write -{name}={_EXAMPLES.get(name, 'value')}")
    if lists:
        words = value.split(",") if isinstance(value, str) else value
        if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
            raise ArgumentTypeError(f"the option {name} of a target is a list of names, not {value!r}",
                                    hint=f'for example {{"kind": "llvm", "{name}": ["..."]}}')
        if "" in words:
            raise ArgumentError(f"the option {name} of a target has an empty name: {list(words)}",
                                hint=f"leave it out, or write -{name}={_EXAMPLES[name]}")
        return tuple(words)
    if isinstance(value, str) and re.fullmatch("-?[0-9]{1,18}", value) and name not in ("mcpu", "arch", "model"):
        value = int(value)
    if name in COUNTS and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ArgumentError(f"the option {name} of a target is a whole number from 1 on, not {value!r}",
                            hint=f"for example -{name}=4")
    return value


def _option_text(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return ",".join(map(str, value))
    return str(int(value) if isinstance(value, bool) else value)


def _keep_features_of_here(target: Target, names: frozenset[str]) -> None:
    """Leaves out of a target without a triple features of other processors, with a warning: LLVM does so too."""
    foreign = [f for f in target.mattr if f[1:] not in names and any(f[1:] in others for others in FEATURES.values())]
    if foreign:
        warnings.warn(f"-mattr={','.join(target.mattr)}: {target.architecture} has no feature {foreign[0][1:]!r}, left out;"
                      " another processor has a triple: -mtriple=aarch64-linux-gnu", stacklevel=5)
        target.mattr = tuple([f for f in target.mattr if f not in foreign])
        rest = {key: value for key, value in target.attrs.items() if key != "mattr"}
        target.attrs = {**rest, "mattr": target.mattr} if target.mattr else rest


def _check_features(target: Target) -> None:
    """Refuses names of features that LLVM would silently ignore."""
    if target.kind.name not in ("llvm", "c") or target.is_portable:
        return
    wrong = [f for f in target.mattr if f[:1] not in ("+", "-")]
    if wrong:
        raise ArgumentError(f"-mattr={','.join(target.mattr)}: {wrong[0]!r} has no sign",
                            hint=f"write +{wrong[0]} or -{wrong[0]}")
    names = FEATURES.get(target.architecture)
    if names is not None and not target.mtriple:
        _keep_features_of_here(target, names)
    unknown = [] if names is None else [f for f in target.mattr if f[1:] not in names]
    if names is not None and unknown:
        from difflib import get_close_matches  # the import of tedsl does without it

        near = get_close_matches(unknown[0][1:], names)
        some = {"x86-64": "avx2, fma, avx512bw", "aarch64": "neon, fullfp16, sve", "riscv64": "m, a, f, d, c, v"}
        raise ArgumentError(f"-mattr={','.join(target.mattr)}: {target.architecture} has no feature {unknown[0][1:]!r}",
                            hint=f"did you mean {' or '.join(near)}?" if near else
                            f"names are LLVM's: {some.get(target.architecture, 'neon, vfp4')}, ...")
    _check_width(target)
    if not target.mcpu:
        return
    known = CPUS.get(target.architecture)
    if known is not None and target.mcpu not in known:
        others = [f"-mtriple={_TRIPLES[arch]}" for arch, table in CPUS.items() if target.mcpu in table and arch in _TRIPLES]
        raise ArgumentError(f"there is no processor {target.mcpu!r} for {target.architecture}",
                            hint=f"choose one of {', '.join(sorted(known))}" +
                            (f"; or add {others[0]}, where {target.mcpu} is" if others else ""))


_TRIPLES = {"x86-64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu (on macOS arm64-apple-macos)",
            "riscv64": "riscv64-unknown-linux-gnu"}


def _check_width(target: Target) -> None:
    """Refuses a -vector-width that no register of the target has."""
    if "vector-width" not in target.attrs:
        return
    bits = target.vector_bits
    most = 2048 if target.architecture == "aarch64" and "sve" in target.features else target._widest
    if bits < 64 or bits & (bits - 1) or bits > most:
        raise ArgumentError(f"-vector-width={bits}: vectors of {target.architecture} with these features have "
                            + " or ".join(str(64 << k) for k in range(6) if 64 << k <= most) + " bits",
                            hint="leave it out: the widest are used" if most < 2048 else
                            "give the width of the processor's SVE")
