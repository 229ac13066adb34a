"""Kernels with one mistake more: a barrier that is missing, a shared buffer that is too small."""

import re

_BARRIER = re.compile(r"^\s*(?:bar|barrier)\.(?:warp\.)?sync[^;]*;$", re.MULTILINE)
_BUFFER = re.compile(r"(\.shared \.align \d+ \.b8 [\w$]+)\[(\d+)\]")


def without_barriers(text):
    """Yields each barrier of a PTX text, and the text without it."""
    for found in _BARRIER.finditer(text):
        yield found.group().strip(), text[:found.start()] + text[found.end():]


def with_smaller_buffers(text, size):
    """Yields each shared array of a PTX text, and the text with it `size` bytes smaller."""
    for found in _BUFFER.finditer(text):
        yield found.group(), f"{text[:found.start()]}{found.group(1)}[{int(found.group(2)) - size}]{text[found.end():]}"
