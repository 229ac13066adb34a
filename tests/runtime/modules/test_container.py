"""Files that tell when they are damaged."""

import random

import pytest

from tedsl.cache.flat import pack_flat, unpack_flat
from tedsl.errors import ModuleError
from tedsl.runtime.modules.container import pack, unpack

PIECES = {"manifest.json": b'{"format": 1}', "code.o": bytes(range(256)) * 9, "empty": b"", "source.ll": b"define" * 100}
FORMS = pytest.mark.parametrize("write, read", [(pack, unpack), (pack_flat, unpack_flat)], ids=["zip", "flat"])


@FORMS
def test_pieces_come_back_in_order(write, read):
    assert list(read(write(PIECES), "f").items()) == list(PIECES.items())
    assert write(PIECES) == write(PIECES)


@FORMS
def test_every_truncation_and_every_changed_bit_is_found(write, read):
    data = write(PIECES)
    draw = random.Random(1)
    damaged = [data[:draw.randrange(len(data))] for _ in range(500)]
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 1, 2, 9))):
            changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        if changed != data:
            damaged.append(bytes(changed))
    damaged += [data + b"\0", b"", b"PK\x03\x04", data[1:], bytes(len(data)), b"PK\x03\x04" + bytes(100)]
    for other in damaged:
        with pytest.raises(ModuleError, match=r"^m\.tedsl (is|cannot)"):
            read(other, "m.tedsl")


def test_an_archive_of_others_is_refused(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("manifest.json", "{}")
    with pytest.raises(ModuleError, match="an archive that tedsl did not write"):
        unpack((tmp_path / "other.zip").read_bytes(), "other.zip")


def test_the_archive_opens_in_other_programs(tmp_path):
    import zipfile

    (tmp_path / "m.tedsl").write_bytes(pack(PIECES))
    with zipfile.ZipFile(tmp_path / "m.tedsl") as archive:
        assert archive.testzip() is None and archive.read("code.o") == PIECES["code.o"]
