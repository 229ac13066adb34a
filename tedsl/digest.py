"""The digest of bytes, for keys of caches."""

from __future__ import annotations

try:
    from _blake2 import blake2b  # what hashlib has of it, without OpenSSL, which takes milliseconds to load
except ImportError:
    from hashlib import blake2b

_BYTES = 24


def digest(data: bytes) -> str:
    """Returns the digest of `data` in hexadecimal digits."""
    return blake2b(data, digest_size=_BYTES).hexdigest()
