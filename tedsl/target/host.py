"""The host: the name and features of this machine's processor, queried on first use."""

from __future__ import annotations

import functools
import platform
from typing import Any, NamedTuple

from tedsl.errors import TedslError


class Host(NamedTuple):
    """The name and features of this machine's processor, as LLVM calls them."""

    triple: str
    cpu: str
    features: frozenset[str]
    feature_string: str


def llvm_binding() -> Any:
    """Returns llvmlite's binding of LLVM; TedslError if it is not installed."""
    try:
        import llvmlite.binding as llvm
    except (ImportError, OSError) as error:
        raise TedslError(f"machine code is made by llvmlite, which is missing here: {error}",
                         hint="pip install llvmlite; schedules and tedsl.lower work without it") from error
    return llvm


@functools.lru_cache(maxsize=1)
def host() -> Host:
    """Returns the processor that LLVM detects.
    Its name can be wrong in a virtual machine; the features are read from the processor.
    """
    llvm = llvm_binding()
    try:
        flags = dict(llvm.get_host_cpu_features())
    except RuntimeError:  # an architecture where LLVM cannot tell
        flags = {}
    text = ",".join(("+" if on else "-") + name for name, on in sorted(flags.items()))
    have = {name for name, on in flags.items() if on}
    if platform.machine() in ("aarch64", "arm64"):
        have.add("neon")
    if platform.machine() in ("x86_64", "AMD64"):
        have |= {"sse", "sse2"}
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), frozenset(have), text)
