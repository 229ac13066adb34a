"""The stream on which a thread of the program works, by device: copies, launches and waits go to it. It is 0, the default one,
until `Device.set_raw_stream` sets another.
"""

from __future__ import annotations

import threading

_current = threading.local()


def current_stream(kind: str, number: int) -> int:
    """Returns the stream of this thread on the device `number` of `kind`."""
    streams: dict[tuple[str, int], int] = getattr(_current, "streams", {})
    return streams.get((kind, number), 0)


def set_stream(kind: str, number: int, stream: int) -> None:
    """Makes `stream` that of this thread on the device `number` of `kind`."""
    if not hasattr(_current, "streams"):
        _current.streams = {}
    _current.streams[kind, number] = stream
