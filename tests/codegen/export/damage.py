"""python -m tests.codegen.export.damage [--count 1000] [--seed 1]: loads damaged files of every format that is loaded.

Half of them are cut off, in the others bits are changed. Each has to be refused by an error, or, in the cache on disk, to be
missing: nothing of it may reach the loader of programs. A wheel is opened as pip opens it; where a change of what does not
count, such as a date, leaves it whole, it has to hold what it held.
"""

import argparse
import io
import random
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path

from tedsl.cache.store import KINDS, Store
from tedsl.errors import ModuleError
from tedsl.runtime import load_module
from tests.codegen.export import programs

FUNCTIONS = ("add", "symbolic")


def damaged(content, count, seed):
    """`count` contents, of which every second one is cut off; in the others up to 20 bits are changed."""
    draw = random.Random(seed)
    while count:
        data = bytearray(content)
        if count % 2:
            del data[draw.randrange(len(data)):]
        else:
            for _ in range(draw.choice((1, 1, 1, 2, 20))):
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        if data != content:
            count -= 1
            yield bytes(data)


class Files:
    """Modules in files with a suffix, which `load_module` loads."""

    def __init__(self, folder, suffix):
        self.path = Path(folder, f"kernels.{suffix}")
        programs.module(*FUNCTIONS).export_library(self.path)
        assert load_module(self.path).function_names == ("add", "scale")
        self.content = self.path.read_bytes()
        self.path = self.path.with_stem("damaged")  # what is loaded may not be written over

    def refuses(self, data):
        self.path.write_bytes(data)
        try:
            load_module(self.path)
        except ModuleError as error:
            return self.path.name in str(error)
        return False


class Entries:
    """Entries of the cache on disk of one kind."""

    KEY = "5" * 48

    def __init__(self, folder, kind):
        self.store, self.kind = Store(str(Path(folder, "cache")), 1 << 30), kind
        self.pieces = {"manifest.json": b"{}", "code.o": programs.module(*FUNCTIONS).save_to_bytes()}
        self.store.save(self.KEY, kind, self.pieces)
        self.path = Path(self.store.folder, f"{self.KEY}.{kind}")
        assert self.store.load(self.KEY, kind) == self.pieces
        self.content = self.path.read_bytes()

    def refuses(self, data):
        self.path.write_bytes(data)
        return self.store.load(self.KEY, self.kind) is None and not self.path.exists()


class Wheels:
    """Wheels, as installers of packages open them."""

    def __init__(self, folder, suffix):
        path = Path(folder, "kernels-1.0.whl")
        programs.module(*FUNCTIONS).export_library(path)
        written = path if path.exists() else next(Path(folder).glob("kernels-1.0-*.whl"))
        self.content = written.read_bytes()
        self.files = self.opened(self.content)

    def opened(self, data):
        """The content of each file of the archive, whose CRC is compared."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {info.filename: archive.read(info) for info in archive.infolist()}

    def refuses(self, data):
        try:
            files = self.opened(data)
        except (zipfile.BadZipFile, zlib.error, struct.error, ValueError, OSError, EOFError, RuntimeError, NotImplementedError):
            return True
        return all(self.files.get(name, content) == content for name, content in files.items())


FORMATS = {"tedsl": Files, "so": Files, "o": Files, "tar": Files, "whl": Wheels, **dict.fromkeys(KINDS, Entries)}


def accepted(form, count, seed, folder):
    """The numbers of those among `count` damaged files of a format that were not refused."""
    files = FORMATS[form](folder, form)
    return [k for k, data in enumerate(damaged(files.content, count, seed)) if not files.refuses(data)]


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.codegen.export.damage", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    for form in FORMATS:
        with tempfile.TemporaryDirectory(prefix="tedsl-") as folder:
            found = accepted(form, options.count, options.seed, folder)
        wrong += len(found)
        print(f"{form:9} {options.count} damaged files, {len(found)} not refused {found[:5] or ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
