"""Files of what was measured: written, joined, drawn."""

import functools
import json
import time

import numpy as np
import pytest

from benchmarks.case import Case, Contender
from benchmarks.report.joining import joined, print_session, scaling
from benchmarks.report.page import page
from benchmarks.run import Result, measured


@functools.cache
def measurement(threads):
    """What a file says of a case that was measured, as text."""
    idle = Contender(lambda: time.sleep(1e-3))  # slower than any limit: none is measured again
    case = Case("conv", {"tedsl": idle, "torch": idle}, operations=1e6, read=1e5, written=1e5, name="a")
    return json.dumps(measured(case, "convolutions", threads, rounds=2).as_json())


def result(name, seconds, threads=1):
    fields = json.loads(measurement(threads))
    fields["name"] = name
    fields["times"]["tedsl"]["median"], fields["bound"], fields["met"] = seconds, "FMA", True
    return fields


def session(threads, *results, peak=1e11):
    rates = {"FMA": peak * threads, "read L1": 2e11, "read memory": 3e10}
    return {"processor": "a processor", "threads": threads, "limits": rates, "caches": {}, "versions": {"numpy": "2"},
            "problems": {"some case": "failed"}, "results": list(results)}


def test_a_result_survives_a_file():
    fields = result("a", 1.0)
    assert Result.of_json(fields).as_json() == fields


def test_sittings_are_joined_and_later_ones_replace_earlier(capsys):
    files = [{"sessions": [session(1, result("a", 1.0), result("b", 2.0), peak=1e11)]},
             {"sessions": [session(1, result("b", 3.0), peak=2e11), session(2, result("a", 0.5, 2))]}]
    one, two = joined(files)
    assert [(r["name"], r["times"]["tedsl"]["median"]) for r in one["results"]] == [("a", 1.0), ("b", 3.0)]
    assert one["limits"]["FMA"] == 2e11 and two["threads"] == 2
    print_session(one)
    assert "some case: failed" in capsys.readouterr().out


def test_two_threads_are_compared_with_one_and_with_the_probes():
    (text,) = scaling([session(1, result("a", 1.0), result("b", 1.0)), session(2, result("a", 0.5, 2), result("b", 0.625, 2))])
    assert "2 threads over 1: probes 2.00, 2 cases of multiply-adds 1.79, 1 of them" in text and "least 1.60: b" in text
    assert scaling([session(1, result("a", 1.0))]) == []


def test_a_page_has_a_bar_for_each_case_and_a_roofline():
    pytest.importorskip("matplotlib")
    text = page([session(1, result("64->64 <3x3>", 0.02))])
    assert text.count("<svg") == 1 and "64-&gt;64 &lt;3x3&gt;" in text and "class=yes" in text and "failed" in text
    assert "multiply-adds: 100 GFLOP/s" in text and "read memory: 30 GB/s" in text
    assert np.all([part in text for part in ("a processor, 1 thread", "numpy 2")])
