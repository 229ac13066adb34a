"""The programs on the pages about devices run: every block of Python that begins with an import."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devices.opencl_device import needs_opencl

ROOT = Path(__file__).parents[1]
PAGES = ["devices", "simulator", "gpu_schedules", pytest.param("opencl", marks=needs_opencl)]


@pytest.mark.parametrize("page", PAGES)
def test_programs_of_a_page_run(page, tmp_path):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if block.startswith("import ")]
    assert blocks
    for block in blocks:
        ran = subprocess.run([sys.executable, "-c", block], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
                             env={**os.environ, "PYTHONPATH": str(ROOT), "TEDSL_CACHE_DIR": "off",
                                  "POCL_CACHE_DIR": str(tmp_path)})
        assert ran.returncode == 0, block + ran.stderr
