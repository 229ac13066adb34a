"""Golden files: what a test compares with stands in tests/golden/<test file>/<test name>.txt, reviewed as text."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"


class Golden:
    """The golden file of one test. Call it with the text that must stand there; with `update` it is written instead."""

    def __init__(self, test, update):
        self.path = FOLDER / test.path.relative_to(FOLDER.parent).with_suffix("") / f"{_file_name(test.name)}.txt"
        self.folder = f"{test.path.parent}/"
        self.update = update

    def __call__(self, text):
        text = text.replace(self.folder, "").rstrip("\n") + "\n"  # places in the test itself: alike on every machine
        if self.update:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(text)
        if not self.path.exists():
            pytest.fail(f"no golden file {self.path}: write it with pytest --update-golden, and review it", pytrace=False)
        assert text == self.path.read_text(), f"differs from {self.path}; if it is meant to, write it with --update-golden"

    def sections(self, **texts):
        """One file of several texts, each under its name: `sections(before=..., after=...)`."""
        self("\n".join(f"--- {name}\n{text.rstrip()}\n" for name, text in texts.items()))


def _file_name(test_name):
    return test_name.removeprefix("test_").replace("[", "-").rstrip("]").replace("/", "_").replace(" ", "_")
