"""Optimisers against their formulas written in numpy, and against torch where it is installed."""

import numpy as np
import pytest

from tedsl import optim
from tedsl.autograd import Tensor, from_numpy
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError
from tedsl.optim import lr_scheduler

SHAPES = [(), (1,), (0,), (7, 3), (70001,)]
RULES = [("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "weight_decay": 0.01}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
         ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
         ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
         ("Adam", {"lr": 0.01}), ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
         ("AdamW", {"lr": 0.01}), ("AdamW", {"lr": 0.01, "weight_decay": 0.3})]


def by_formula(name, options, param, grads):
    """The parameter after a step for each gradient, computed in float64."""
    p = param.astype("float64")
    m, v = np.zeros_like(p), np.zeros_like(p)
    o = {"momentum": 0, "dampening": 0, "weight_decay": 0.01 * (name == "AdamW"), "nesterov": False, "betas": (0.9, 0.999),
         "eps": 1e-8, **options}
    for step, g in enumerate(grads, 1):
        if name == "AdamW":
            p = p * (1 - o["lr"] * o["weight_decay"])
        else:
            g = g + o["weight_decay"] * p
        if name == "SGD":
            m = g if step == 1 else o["momentum"] * m + (1 - o["dampening"]) * g
            p = p - o["lr"] * (g + o["momentum"] * m if o["nesterov"] else m if o["momentum"] else g)
        else:
            b1, b2 = o["betas"]
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            p = p - o["lr"] * (m / (1 - b1 ** step)) / (np.sqrt(v / (1 - b2 ** step)) + o["eps"])
    return p


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name, options", RULES, ids=str)
def test_steps_follow_the_formula(name, options, shape, dtype):
    rng = np.random.default_rng(0)
    first, grads = rng.standard_normal(shape).astype(dtype), [rng.standard_normal(shape).astype(dtype) for _ in range(5)]
    param = Tensor(first.copy(), requires_grad=True)
    optimizer = getattr(optim, name)([param], **options)
    for grad in grads:
        param.grad = Tensor(grad)
        optimizer.step()
    tight = 2e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(param.detach().numpy(), by_formula(name, options, first, grads), rtol=tight, atol=tight)


@pytest.mark.parametrize("name, options", RULES, ids=str)
def test_steps_are_those_of_torch(name, options):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    first, grads = rng.standard_normal((5, 9)), [rng.standard_normal((5, 9)) for _ in range(8)]
    ours, theirs = Tensor(first.copy(), requires_grad=True), torch.tensor(first, requires_grad=True)
    a, b = getattr(optim, name)([ours], **options), getattr(torch.optim, name)([theirs], **options)
    for grad in grads:
        ours.grad, theirs.grad = Tensor(grad), torch.tensor(grad)
        a.step()
        b.step()
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-12)


def test_a_step_changes_the_array_of_the_parameter_and_counts_as_a_change():
    array = np.ones(3, "float32")
    param = from_numpy(array).requires_grad_()
    before = param.version
    param.grad = Tensor(np.ones(3, "float32"))
    optim.SGD([param], lr=0.5).step()
    assert array.tolist() == [0.5, 0.5, 0.5] and param.version == before + 1


def test_groups_have_options_of_their_own_and_parameters_without_gradients_stay():
    a, b, c = (Tensor(np.ones(2, "float32"), requires_grad=True) for _ in range(3))
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": [b, c]}], lr=0.25)
    a.grad, b.grad = Tensor(np.ones(2, "float32")), Tensor(np.ones(2, "float32"))
    optimizer.step()
    assert [t.detach().numpy()[0] for t in (a, b, c)] == [0.0, 0.75, 1.0]
    optimizer.zero_grad()
    assert a.grad is None and b.grad is None


def test_a_saved_state_goes_on_where_it_was():
    rng = np.random.default_rng(2)
    grads = [rng.standard_normal(4) for _ in range(6)]

    def run(param, optimizer, grads):
        for grad in grads:
            param.grad = Tensor(grad)
            optimizer.step()
        return optimizer

    whole = Tensor(np.ones(4), requires_grad=True)
    run(whole, optim.Adam([whole], lr=0.1), grads)
    first = Tensor(np.ones(4), requires_grad=True)
    saved = run(first, optim.Adam([first], lr=0.1), grads[:3]).state_dict()
    second = Tensor(first.detach().numpy().copy(), requires_grad=True)
    optimizer = optim.Adam([second], lr=0.7)
    optimizer.load_state_dict(saved)
    run(second, optimizer, grads[3:])
    assert (second.detach().numpy() == whole.detach().numpy()).all() and optimizer.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize("make, kind, sentence", [
    (lambda t: optim.SGD([]), ArgumentError, "SGD: there are no parameters"),
    (lambda t: optim.SGD([t, t]), ArgumentError, r"SGD: parameter 1, of shape \(2,\), is there twice"),
    (lambda t: optim.SGD([np.ones(2)]), ArgumentTypeError, "SGD: parameter 0 is an ndarray"),
    (lambda t: optim.SGD([t * 2]), ArgumentError, r"SGD: parameter 0, of shape \(2,\), is computed from others"),
    (lambda t: optim.SGD([Tensor(np.ones(2))]), ArgumentError, r"parameter 0, of shape \(2,\), does not require a gradient"),
    (lambda t: optim.SGD([t], lr=-1), ArgumentError, "SGD: lr is -1, not a number from 0"),
    (lambda t: optim.SGD([t], nesterov=True), ArgumentError, "nesterov needs a momentum above 0"),
    (lambda t: optim.Adam([t], betas=(0.9, 1.0)), ArgumentError, r"betas is \(0.9, 1.0\)"),
    (lambda t: optim.SGD([{"params": t, "rate": 1}]), ArgumentError, "names 'rate'; the options are lr, momentum"),
    (lambda t: optim.SGD([t]).load_state_dict({"state": {}, "param_groups": []}), ArgumentError, "for groups of"),
    (lambda t: optim.SGD(None), ArgumentTypeError, "SGD: expected tensors, not a NoneType"),
    (lambda t: optim.SGD([t], lr="a"), ArgumentError, "lr is 'a', not a number"),
    (lambda t: optim.Adam([t], betas=0.9), ArgumentError, "betas is 0.9"),
    (lambda t: optim.SGD([t]).load_state_dict(3), ArgumentTypeError, "an int is not what state_dict"),
    (lambda t: optim.MultiStepLR(optim.SGD([t]), 3), ArgumentTypeError, "milestones are a list of steps, not an int"),
    (lambda t: optim.StepLR(t, 3), ArgumentTypeError, "StepLR: expected an optimiser"),
    (lambda t: optim.StepLR(optim.SGD([t]), 0), ArgumentError, "step_size is 0"),
    (lambda t: optim.StepLR(optim.SGD([t]), "a"), ArgumentError, "step_size is 'a'"),
    (lambda t: optim.LambdaLR(optim.SGD([t]), 3), ArgumentTypeError, "lr_lambda is an int, not a function"),
    (lambda t: optim.StepLR(optim.SGD([t]), 1).load_state_dict({}), ArgumentError, "a dict is not what state_dict"),
    (lambda t: optim.SGD([t]).step(lambda: 3), ArgumentTypeError, "step"),
])
def test_misuse_is_refused(make, kind, sentence):
    with pytest.raises(kind, match=sentence):
        make(Tensor(np.ones(2), requires_grad=True))


def test_a_parameter_that_cannot_be_changed_in_place_is_refused():
    array = np.ones((4, 4), "float32")
    for given, sentence in ((array[:, ::2], "not contiguous"), (np.broadcast_to(array, (4, 4)), "read-only")):
        param = from_numpy(given).requires_grad_()
        param.grad = Tensor(np.ones(param.shape, "float32"))
        with pytest.raises(ArgumentError, match=sentence):
            optim.SGD([param]).step()


def test_a_grad_that_the_program_set_is_checked():
    param = Tensor(np.ones(2), requires_grad=True)
    for grad, sentence in ((np.ones(2), "set to an ndarray"), (Tensor(np.ones(3)), r"a tensor of shape \(3,\)")):
        param.grad = grad
        with pytest.raises(ArgumentError, match=sentence):
            optim.SGD([param]).step()


def test_parameters_of_float16_are_refused():
    param = Tensor(np.ones(2, "float16"), requires_grad=True)
    param.grad = Tensor(np.ones(2, "float16"))
    with pytest.raises(DTypeError, match="parameters are float32 or float64"):
        optim.SGD([param]).step()


@pytest.mark.parametrize("name, options", [
    ("StepLR", {"step_size": 3, "gamma": 0.5}), ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.1}),
    ("ExponentialLR", {"gamma": 0.9}), ("LinearLR", {"start_factor": 0.25, "total_iters": 4}),
    ("CosineAnnealingLR", {"T_max": 7}), ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.02}),
    ("LambdaLR", {"lr_lambda": lambda k: 1 / (1 + k)})], ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v)))
def test_schedules_are_those_of_torch(name, options):
    torch = pytest.importorskip("torch")
    ours = optim.SGD([Tensor(np.ones(2), requires_grad=True)], lr=0.3)
    theirs = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.3)
    a, b = getattr(optim, name)(ours, **options), getattr(torch.optim.lr_scheduler, name)(theirs, **options)
    rates = [(a.get_last_lr()[0], b.get_last_lr()[0])]
    for _ in range(9):
        theirs.step()
        a.step()
        b.step()
        rates.append((a.get_last_lr()[0], b.get_last_lr()[0]))
    np.testing.assert_allclose(*zip(*rates), rtol=1e-9)


def test_a_schedule_goes_on_where_it_was():
    optimizer = optim.SGD([Tensor(np.ones(2), requires_grad=True)], lr=0.3)
    schedule = optim.ExponentialLR(optimizer, 0.5)
    schedule.step()
    other = optim.ExponentialLR(optim.SGD([Tensor(np.ones(2), requires_grad=True)], lr=9.0), 0.5)
    other.load_state_dict(schedule.state_dict())
    assert other.get_last_lr() == [0.15]


def test_schedules_stand_in_a_module_as_in_pytorch():
    assert lr_scheduler.StepLR is optim.StepLR
    with pytest.raises(AttributeError, match=r"did you mean LRSchedule\?"):
        lr_scheduler.LRScheduler
