"""Laid-out objects as named pieces of bytes, as the cache on disk keeps them beside the objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tedsl.codegen.llvm.linking.loader import LaidOut, NotUnderstood, lay_out

_PLACES, _FILLED = "laid.json", "laid.bin"


def laid_out_pieces(image: bytes, exports: Iterable[str]) -> dict[str, bytes]:
    """Returns the pieces of an object that is laid out; none if it is for LLVM's linker."""
    try:
        laid = lay_out(image, exports)
    except NotUnderstood:
        return {}
    places = (laid.size, laid.constants, laid.variables, [(at, len(content)) for at, content in laid.filled], laid.exports,
              laid.inside, laid.outside)
    return {_PLACES: json.dumps(places, separators=(",", ":")).encode(), _FILLED: b"".join([part for _, part in laid.filled])}


def laid_out_of(pieces: Mapping[str, bytes]) -> LaidOut | None:
    """Returns the laid-out object among `pieces`; None if there is none."""
    if _PLACES not in pieces or _FILLED not in pieces:
        return None
    size, constants, variables, parts, exports, inside, outside = json.loads(pieces[_PLACES])
    filled, at, content = [], 0, pieces[_FILLED]
    for place, length in parts:
        filled.append((place, content[at:at + length]))
        at += length
    return LaidOut(size, constants, variables, tuple(filled), exports, inside, outside)
