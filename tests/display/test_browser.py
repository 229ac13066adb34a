"""The page in a real browser, where one is installed: it renders, its keys work, and it needs no network."""

import shutil
import struct
import subprocess

import pytest

import tedsl
from tests.test_tracing import HOSTILE, program

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome is installed")

PRESS = """<script>
window.addEventListener("load", function () {
  var seen = [];
  "%s".split("").forEach(function (key) {
    document.dispatchEvent(new KeyboardEvent("keydown", {key: key, bubbles: true, cancelable: true}));
    seen.push(document.body.dataset.step + ":" + document.querySelectorAll("nav a[aria-current]").length +
              ":" + (document.activeElement === document.getElementById(document.body.dataset.step)));
  });
  document.body.setAttribute("data-seen", seen.join(" "));
  document.body.setAttribute("data-height", String(document.querySelector("svg").getBoundingClientRect().height > 50));
});
</script>"""


def browse(path, *options):
    """What the browser prints for the page at `path`; every name resolves to nothing, so nothing can be fetched."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=2000",
               "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={path.parent / 'profile'}", *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


def saved(tmp_path, name="B", extra=""):
    s, args = program(name)
    path = tmp_path / "trace.html"
    tedsl.trace(s, args).save(path)
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", f"{extra}</body>"), encoding="utf-8")
    return path


def test_the_keys_move_through_the_steps(tmp_path):
    shown = browse(saved(tmp_path, extra=PRESS % "jjjkknp"), "--dump-dom").stdout
    assert ('data-seen="step-0:1:true step-1:1:true step-2:1:true step-1:1:true step-0:1:true step-1:1:true step-0:1:true"'
            in shown)
    assert 'data-height="true"' in shown, "the picture has a size"


def test_names_run_nothing(tmp_path):
    """A hostile name is text: had it run, the dialog would be gone from what a reader sees."""
    shown = browse(saved(tmp_path, HOSTILE), "--dump-dom").stdout
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown and "<script>alert" not in shown


def test_it_renders(tmp_path):
    picture = tmp_path / "page.png"
    browse(saved(tmp_path), "--window-size=1200,900", f"--screenshot={picture}")
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1200, 900) and len(data) > 20_000, "more than an empty page"
