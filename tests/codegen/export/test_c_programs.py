"""Programs in C and C++ that include the header of a library and are linked with it."""

import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

from tedsl.contrib import cc
from tests.codegen.export import programs

SOURCE = pathlib.Path(__file__).with_name("kernels.c")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
C99, CPP = ["-std=c99", "-D_POSIX_C_SOURCE=200112L"], ["-x", "c++"]
PRINTED = """\
threads set: 0, refused: 4, now 3
scale: 0 no message 1918902 4617804
refused: 4 scale: argument 3 (k) is 200, which does not fit int8 (-128 to 127)
refused: 4 scale: argument 4 (C) is an output and overlaps argument 1 (A)
launched: 0 1000 6536706
child: 0 4617804 of 3
ended: 0
raw: 0 2 14
halves: 0 3800
first: 0 3, asserted: 1
"""
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the libraries `one` and `two` in every form, and their headers."""
    here = tmp_path_factory.mktemp("c")
    for name, module in (("one", programs.module("symbolic", "halves", "first_above")), ("two", programs.module("add"))):
        for form in (f"{name}.h", f"lib{name}.so", f"{name}.o", f"{name}.s", f"{name}.tar"):
            module.export_library(here / form)
    with tarfile.open(here / "two.tar") as archive:
        archive.extractall(here / "of_tar")
    return here


def compiled_and_run(folder, name, *options):
    cc.create_executable(folder / name, [], [*STRICT, f"-I{folder}", *options], cc="cc")
    return subprocess.run([folder / name], capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("name, options", [
    ("shared", [*C99, str(SOURCE), "-L.", "-lone", "-ltwo", "-Wl,-rpath,$ORIGIN"]),
    ("objects", [*C99, str(SOURCE), "one.o", "of_tar/two.o"]),
    ("assembly", [*C99, str(SOURCE), "one.s", "two.s"]),
    ("cpp", [*CPP, str(SOURCE), "-x", "none", "one.o", "-L.", "-ltwo", "-Wl,-rpath,$ORIGIN"])])
def test_programs_print_the_right_numbers(folder, name, options, monkeypatch):
    monkeypatch.chdir(folder)
    linked = ["-pthread", "-lm"]
    assert compiled_and_run(folder, name, *options, *linked) == PRINTED


# What dlpack.h of DLPack's repository declares, by the same guard; a version later than that of our headers.
DLPACK = """
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#include <stddef.h>
#include <stdint.h>
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 9
typedef enum { kDLCPU = 1 } DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape; int64_t *strides; uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor; void *manager_ctx; void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
#endif
"""
BESIDE = """
#include <stdio.h>
int main(void) {
    DLManagedTensor t;
    t.dl_tensor.device.device_type = kDLCPU;
    const DLTensor *args[3] = {&t.dl_tensor, NULL, NULL};
    printf("%d of 1.%d\\n", (int)two_add(args, 2, NULL, 0), DLPACK_MINOR_VERSION);
    return 0;
}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("language", [C99, CPP], ids=["c", "c++"])
@pytest.mark.parametrize("place, first, version", [
    ("dlpack.h", "dlpack", 9), ("dlpack.h", "kernels", 9), ("include/dlpack/dlpack.h", "dlpack", 9),
    ("include/dlpack/dlpack.h", "kernels", 9), ("elsewhere/dlpack.h", "dlpack", 9), ("elsewhere/dlpack.h", "kernels", 0),
    ("", "kernels", 0)])
def test_the_header_stands_beside_that_of_dlpack(folder, tmp_path, monkeypatch, language, place, first, version):
    """In any order: theirs is taken where it comes first or is found, and where it is not, it adds nothing later."""
    for name in ("one.h", "two.h", "two.o"):
        shutil.copy(folder / name, tmp_path)
    theirs = []
    if place:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(DLPACK)
        theirs = [f'#include "{place.removeprefix("include/")}"']
    ours = ['#include "one.h"', '#include "two.h"']
    (tmp_path / "beside.c").write_text("\n".join([*theirs, *ours] if first == "dlpack" else [*ours, *theirs]) + BESIDE)
    monkeypatch.chdir(tmp_path)
    options = [*language, "-Iinclude", "beside.c", *(["-x", "none"] if language is CPP else []), "two.o", "-lm"]
    assert compiled_and_run(tmp_path, "beside", *options) == f"2 of 1.{version}\n"


def test_prefixes_may_differ_in_case_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for prefix in ("sums", "Sums"):
        programs.module("add").export_library(f"{prefix}_of.h", prefix=prefix)
        programs.module("add").export_library(f"{prefix}_of.o", prefix=prefix)
    (tmp_path / "both.c").write_text("""
#include "sums_of.h"
#include "Sums_of.h"
int main(void) { return sums_add(NULL, 0, NULL, 0) == SUMS_BAD_TYPE && Sums_add(NULL, 0, NULL, 0) == SUMS_BAD_TYPE ? 0 : 1; }
""")
    assert compiled_and_run(tmp_path, "both", *C99, "both.c", "sums_of.o", "Sums_of.o", "-lm") == ""


def test_numbers_of_threads_come_from_the_environment(folder, monkeypatch):
    (folder / "threads.c").write_text("""
#include <stdio.h>
#include "one.h"
int main(void) { printf("%d\\n", (int)one_get_num_threads()); return 0; }
""")
    monkeypatch.chdir(folder)
    for given, expected in (("5", "5"), ("0", None), ("7 threads", None), ("", None), ("256", None)):
        monkeypatch.setenv("TEDSL_NUM_THREADS", given)
        printed = compiled_and_run(folder, "threads", *C99, "threads.c", "one.o", "-pthread", "-lm").strip()
        assert printed == expected if expected else printed not in ("0", "7", "256")


def test_the_program_of_the_page_prints_sums(tmp_path, monkeypatch):
    """docs/shipping.md: its Python writes the files that its C is compiled with."""
    page = (pathlib.Path(__file__).parents[3] / "docs" / "shipping.md").read_text()
    python, c = (re.search(f"```{language}\n(.*?)```", page, re.S)[1] for language in ("python", "c"))
    monkeypatch.chdir(tmp_path)
    exec(python, {})
    (tmp_path / "main.c").write_text(c)
    options = ["-std=c99", "main.c", "-L.", "-lkernels", "-lm", "-pthread", "-Wl,-rpath,$ORIGIN"]
    assert compiled_and_run(tmp_path, "main", *options) == "11 22 33\n"
