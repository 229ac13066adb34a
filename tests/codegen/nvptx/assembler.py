"""NVIDIA's assembler, which accepts or refuses PTX without a device; and what its machine code consists of.

    python -m tests.codegen.nvptx.assembler FOLDER        assembles what tests left in the folder that TEDSL_KEPT_PTX named
"""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ARCHS = ("sm_70", "sm_80", "sm_90", "sm_120")
FEWEST = 200  # texts that the README's tests leave, which are 254: fewer, and they were not kept


def tool(name, *folders):
    """The path of a tool of CUDA: of a package of PyPI, or on PATH; the test is skipped where there is none."""
    for folder in folders:
        path = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / folder / "bin" / name
        if path.exists():
            return str(path)
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: pip install 'tedsl[cuda-test]'")
    return found


@functools.cache
def known_to(assembler):
    """The devices that an assembler knows, by its help."""
    text = subprocess.run([assembler, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    return set(re.findall(r"'(sm_\d+)'", text))


def assembler_for(arch):
    """The path of the assembler; the test is skipped where there is none that knows the device."""
    assembler = tool("ptxas", "cuda_nvcc")
    if arch not in known_to(assembler):
        pytest.skip(f"{assembler} does not know {arch}: pip install 'tedsl[cuda-test]'")
    return assembler


def assemble(ptx, arch, folder):
    """The machine code of `ptx`, which the assembler must accept without spilling a register; and the most registers used."""
    source, image = folder / "kernels.ptx", folder / f"{arch}.cubin"
    source.write_text(ptx)
    command = [assembler_for(arch), "-v", f"-arch={arch}", str(source), "-o", str(image)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{arch}: {done.stderr}\n{ptx}"
    spilled = [int(count) for count in re.findall(r"(\d+) bytes spill", done.stderr)]
    assert spilled and not any(spilled), f"{arch}: {done.stderr}\n{ptx}"
    return image, max(int(count) for count in re.findall(r"Used (\d+) registers", done.stderr))


def complaints(ptx, made_for):
    """What the assembler has against `ptx`, for the device that it was made for and a later one; "" for nothing. Each text is
    assembled for the same two devices whenever it comes.
    """
    later = [arch for arch in ARCHS if int(arch[3:]) > int(made_for[3:])]
    chosen = [later[zlib.crc32(ptx.encode()) % len(later)]] if later else []
    return "\n".join(filter(None, (_complaint(ptx, arch) for arch in (made_for, *chosen))))


@functools.cache
def _complaint(ptx, arch):
    command = [assembler_for(arch), "-v", f"-arch={arch}", "-", "-o", "/dev/null"]
    done = subprocess.run(command, input=ptx, capture_output=True, text=True, timeout=300)
    if done.returncode:
        return f"{arch}: {done.stderr}\n{ptx}"
    spilled = [line for line in done.stderr.splitlines() if re.search(r"[1-9]\d* bytes spill", line)]
    return f"{arch}: {spilled[0].strip()}" if spilled else ""


def instructions(image):
    """How often each instruction stands in the machine code, by its name with its first suffixes: LDG.E.128, SHFL.DOWN."""
    text = subprocess.run([tool("nvdisasm", "cu13", "cuda_nvdisasm"), "-c", str(image)], capture_output=True, text=True,
                          timeout=300, check=True).stdout
    counts = {}
    for name in re.findall(r"/\*[0-9a-f]{4}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_.]+)", text):
        counts[name] = counts.get(name, 0) + 1
    return counts


def count(image, *parts):
    """How many instructions have all of `parts` in their name."""
    return sum(times for name, times in instructions(image).items() if all(part in name.split(".") for part in parts))


def keep(texts, test, folder):
    """Writes the PTX of a test to `folder`, each text once: a dict from texts to the devices that they were made for."""
    for ptx, arch in texts.items():
        digest = hashlib.blake2b(f"{arch}\n{ptx}".encode(), digest_size=16).hexdigest()
        path = Path(folder) / f"{digest}.ptx"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(f".{os.getpid()}")
            unfinished.write_text(f"{test}\n{arch}\n{ptx}")
            unfinished.rename(path)


def main(folder):
    """Assembles what `keep` wrote to `folder`, as many texts at a time as there are processors. Prints the complaints."""
    kept = [path.read_text().split("\n", 2) for path in sorted(Path(folder).glob("*.ptx"))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda one: complaints(one[2], one[1]), kept))
    found = [f"{test}: {words}" for (test, _, _), words in zip(kept, said) if words]
    print(f"{len(kept)} texts of PTX: {len(found)} are refused or spill registers", *found, sep="\n")
    return 1 if found or len(kept) < FEWEST else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
