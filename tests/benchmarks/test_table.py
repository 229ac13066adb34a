"""The harness: names, goals, checks of results, and the lines of the table. No time is asserted."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import reference
from benchmarks.case import Case, Contender, Goal, difference, maker
from benchmarks.goals import ROWS
from benchmarks.networks import Conv
from benchmarks.report.table import geomean, line, summary
from benchmarks.run import Time, measured
from benchmarks.suites import calls
from benchmarks.suites.table import SUITES

A = np.arange(1.0, 5.0)


def case(**contenders):
    made = {name: Contender(lambda: None, lambda value=value: np.array(value, "float32")) for name, value in contenders.items()}
    return Case("conv", made, lambda: A, 1, operations=1e3)


def test_names_of_cases_occur_once():
    names = [made.name for suite in SUITES.values() for made in suite.cases(2, 5, 0)]
    assert len(set(names)) == len(names) > 150


def test_a_goal_is_met_by_all_numbers_or_by_one_of_them():
    both, one = Goal(1.05, 0.9), Goal(1.1, 0.95, either=True)
    assert both.met(1.06, 0.91) and not both.met(1.06, 0.89) and both.met(1.05, None) and both.met(None, None) is None
    assert one.met(0.5, 0.96) and one.met(1.2, 0.1) and not one.met(1.0, 0.9)
    assert str(both) == "1.05, 90 %" and str(one) == "1.1 or 95 %" and not Goal(1.0).met(0.99, None)


def test_a_result_is_right_within_the_rounding_errors_of_its_sums():
    terms = Case("conv", {}, terms=100)
    assert difference(terms, A * (1 + 4e-6), A) == "" and "element" in difference(terms, A * (1 + 4e-5), A)
    assert "element (0,) is nan" in difference(terms, A * [np.nan, 1, 1, 1], A)
    assert "shape" in difference(terms, A[:2], A)
    equal = Case("order", {}, terms=0)
    assert difference(equal, A, A) == "" and "1 of 4" in difference(equal, A + [0, 0, 0, 1], A)


def test_contenders_beside_do_not_count():
    made = case(tedsl=A, numpy=A, torch=A)
    assert measured(replace(made, beside=("numpy",)), "products", 1, rounds=2).best == "torch"


def test_a_wrong_contender_is_named_and_does_not_count_as_the_best():
    result = measured(case(tedsl=A, numpy=A + 1, torch=A), "products", 1, rounds=2)
    assert list(result.wrong) == ["numpy"] and result.best == "torch" and "WRONG numpy: element" in line(result)
    assert measured(case(tedsl=A + 1, numpy=A), "products", 1, rounds=2).met is False


def test_the_best_of_our_forms_counts():
    result = measured(case(**{"tedsl NHWC": A, "tedsl NCHWc": A}), "products", 1, rounds=2)
    assert result.ours in ("tedsl NHWC", "tedsl NCHWc") and result.ratio is None and result.best == ""


def test_a_budget_stands_for_the_best_contender():
    made = measured(Case("region", {"tedsl": Contender(lambda: None)}, budget=1e3), "calls", 1, rounds=2)
    assert made.ratio > 1 and made.met and made.share is None and made.bound == ""


def test_the_spread_is_that_of_the_middle_half():
    time = Time.of([1.0, 1.0, 1.0, 1.0, 9.0])
    assert (time.median, time.least) == (1.0, 1.0) and Time.of([2.0]).spread == 0.0


def test_rows_are_summed_up_by_cases_as_often_as_they_occur():
    results = [measured(case(tedsl=A, torch=A), "convolutions", 1, rounds=2) for _ in range(2)]
    results[0].ratio, results[0].occurs, results[1].ratio = 4.0, 1, 1.0
    assert geomean(results) == pytest.approx(2.0)
    (_, text), title = summary(results), ROWS["conv"].title
    assert text.startswith(title) and "2.00" in text and "1.00" in text and "goal 1.1, met" in text


def test_a_call_is_measured_from_its_name_to_its_line():
    made = calls.cases(1)[0]()
    result = measured(made, "calls", 1, rounds=2)
    assert made.name == "checked call of three arrays" and not result.wrong and result.ratio > 0
    assert line(result).startswith(made.name) and "numpy" in line(result)
    assert maker("x", calls.call, 1)().name == "x"


# --- float64 ---


def test_the_reference_convolution_is_the_sum_over_the_window():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for spec in (Conv(4, 7, 6, 3, 2), Conv(4, 6, 4, 3, 1, groups=4), Conv(4, 5, 6, 1, 1, groups=2)):
        x, w = rng.standard_normal((2, 4, spec.size, spec.size)), rng.standard_normal(
            (spec.filters, 4 // spec.groups, spec.kernel, spec.kernel))
        expected = torch.nn.functional.conv2d(*map(torch.from_numpy, (x, w)), None, spec.stride, spec.pad, 1, spec.groups)
        np.testing.assert_allclose(reference.convolution(x, w, None, spec.stride, spec.pad, spec.groups), expected.numpy())


@pytest.mark.parametrize("method, mode", [("nearest_neighbor", "nearest"), ("linear", "bilinear"), ("cubic", "bicubic")])
def test_the_reference_resize_is_that_of_torch(method, mode):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((1, 2, 6, 8))
    for size in ((12, 16), (3, 4)):
        expected = torch.nn.functional.interpolate(torch.from_numpy(x), size, mode=mode)
        np.testing.assert_allclose(reference.resize(x, size, method, -0.75), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_the_reference_transposed_convolution_is_that_of_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((3, 2, 4, 4))
    expected = torch.nn.functional.conv_transpose2d(torch.from_numpy(x), torch.from_numpy(w), stride=2, padding=1)
    np.testing.assert_allclose(reference.transposed_convolution(x, w, 2, 1), expected.numpy(), atol=1e-12)
