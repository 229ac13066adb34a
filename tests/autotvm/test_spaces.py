"""Spaces: how many points, in which order, and what a point does to a schedule."""

import time

import numpy as np
import pytest

import tedsl
import topi
from tedsl import autotvm, te
from tedsl.autotvm.task import AnnotateEntity, ConfigEntity, ConfigSpace, FallbackConfigEntity, ReorderEntity, SplitEntity
from tedsl.autotvm.task.space import get_factors, get_pow2s
from tedsl.errors import ArgumentError, ArgumentTypeError


def stage(*shape):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A(*i) + 1.0, name="B")
    return te.create_schedule(B.op), B


def test_the_sizes_of_the_spaces_of_the_tutorials():
    knobs, splits, convolution = ConfigSpace(), ConfigSpace(), ConfigSpace()
    for name in ("tile_y", "tile_x"):
        knobs.define_knob(name, [1, 2, 4, 8, 16])
        splits.define_split(name, 512, num_outputs=2)
    tiles = {"tile_f": (512, 4), "tile_y": (7, 4), "tile_x": (7, 4), "tile_rc": (512, 3), "tile_ry": (3, 3), "tile_rx": (3, 3)}
    for name, (extent, outputs) in tiles.items():
        convolution.define_split(name, convolution.axis(extent), num_outputs=outputs)
    convolution.define_knob("auto_unroll_max_step", [0, 512, 1500])
    convolution.define_knob("unroll_explicit", [0, 1])
    assert (len(knobs), len(splits), len(convolution)) == (25, 100, 10_454_400)


def test_the_first_knob_changes_fastest():
    space = ConfigSpace()
    space.define_split("a", 6, num_outputs=2)
    space.define_knob("b", ["x", "y"])
    said = [(config["a"].size, config["b"].val) for config in space.points()]
    assert said[:5] == [((-1, 1), "x"), ((-1, 2), "x"), ((-1, 3), "x"), ((-1, 6), "x"), ((-1, 1), "y")]
    assert len(said) == len(space) == 8 and space.get(5).index == 5 and space.dims == [4, 2]


@pytest.mark.parametrize("policy, expected", [
    ("factors", [1, 2, 3, 4, 6, 12]), ("power2", [1, 2, 4, 8]), ("verbose", [1, 2, 3, 4, 6, 8, 12])])
def test_policies_of_splits(policy, expected):
    space = ConfigSpace()
    space.define_split("a", 12, policy, num_outputs=2)
    assert [config["a"].size[1] for config in space.points()] == expected
    assert all(config["a"].size[0] == -1 for config in space.points()) and f"Split(policy={policy}, product=12" in repr(space)


def test_filters_and_candidates():
    space = ConfigSpace()
    space.define_split("few", 64, num_outputs=3, max_factor=4, filter=lambda e: e.size[2] == 4)
    space.define_split("given", 64, "candidate", num_outputs=2, candidate=[[-1, 8], [-1, 16]])
    space.define_split("one", 5, num_outputs=1)
    assert [e.size for e in space.space_map["few"]] == [(-1, 1, 4), (-1, 2, 4), (-1, 4, 4)]
    assert [e.size for e in space.space_map["given"]] == [(-1, 8), (-1, 16)] and space.dims[2] == 1


@pytest.mark.parametrize("policy, options, count", [
    ("identity", {}, 1), ("all", {}, 6), ("interval_all", {"interval": (1, 3)}, 2),
    ("candidate", {"candidate": [[2, 1, 0]]}, 1), ("interleave", {"spatial": [[0, 1]], "reduce": [[2]]}, 1)])
def test_policies_of_orders(policy, options, count):
    space = ConfigSpace()
    s, B = stage(2, 3, 4)
    options = {key: [[B.op.axis[at] for at in one] for one in value] if key != "interval" else value
               for key, value in options.items()}
    space.define_reorder("order", list(B.op.axis), policy, **options)
    assert len(space) == count and all(sorted(e.perm) == [0, 1, 2] for e in space.space_map["order"])
    last = space.get(count - 1)["order"].apply(s, B, list(B.op.axis))
    assert [loop.name for loop in s[B].leaf_iter_vars] == [loop.name for loop in last]


def test_chains_are_interleaved():
    axes = list("abcdefg")
    space = ConfigSpace()
    for name in ("interleave", "interleave_cuda"):
        space.define_reorder(name, axes, name, spatial=[list("abc"), list("de")], reduce=[list("fg")])
    assert ["".join(axes[at] for at in space[name].perm) for name in space] == ["abdfceg", "abdfgce"]


@pytest.mark.parametrize("policy, count", [
    ("try_vec", 3), ("try_unroll", 4), ("try_unroll_vec", 8), ("unroll", 1), ("bind_gpu", 1)])
def test_policies_of_annotations(policy, count):
    space = ConfigSpace()
    s, B = stage(4, 8)
    space.define_annotate("ann", list(B.op.axis), policy)
    assert len(space) == count
    space.get(count - 1)["ann"].apply(s, B, list(B.op.axis), axis_lens=[4, 8], max_unroll=16, vec_size=[4, 8], cfg=space)
    assert s[B].leaf_iter_vars and space.valid()
    text = str(s)
    assert {"try_vec": "vectorize", "try_unroll": "unroll", "try_unroll_vec": "vectorize", "unroll": "unroll",
            "bind_gpu": "threadIdx.x"}[policy] in text.replace("vectorized", "vectorize").replace("unrolled", "unroll")


def test_loops_before_the_bound_ones_are_fused():
    s, B = stage(2, 3, 4)
    space = ConfigSpace()
    space.define_annotate("ann", list(B.op.axis), "bind_gpu")
    assert space["ann"].anns == ("fuse", "blockIdx.x", "threadIdx.x")
    loops = space["ann"].apply(s, B, list(B.op.axis))
    assert len(s[B].leaf_iter_vars) == 2 and loops[1] is s[B].leaf_iter_vars[0]


def test_annotations_that_are_too_long_are_errors():
    s, B = stage(4, 8)
    config = ConfigEntity(0, None, {})
    AnnotateEntity(("unroll",)).apply(s, B, [B.op.axis[0]], axis_lens=[4], max_unroll=2, cfg=config)
    assert not config.valid() and "a loop of 4 iterations is unrolled" in config.errors[0]


def test_a_split_is_applied_from_the_inside_out():
    s, B = stage(64)
    loops = SplitEntity((-1, 4, 8)).apply(s, B, B.op.axis[0])
    assert [loop.name for loop in s[B].leaf_iter_vars] == [loop.name for loop in loops] and len(loops) == 3
    assert str(s.journal).splitlines()[0].endswith("factor=8)") and ReorderEntity((1, 0)).data == [1, 0]


def test_points_by_numbers_of_numpy_and_knobs_that_are_defined_again():
    space = ConfigSpace()
    space.define_knob("a", [1, 2])
    space.define_knob("b", [1])
    space.define_knob("a", [5, 6, 7])
    assert space.get(np.int64(2))["a"].val == 7 and list(space) == ["a", "b"]


def test_points_as_json():
    space = ConfigSpace()
    space.define_split("a", 8, num_outputs=2)
    space.define_reorder("b", [1, 2], "all")
    space.define_annotate("c", [1, 2], "try_unroll")
    space.define_knob("d", [True, "x", 1.5])
    for config in space.points():
        again = ConfigEntity.from_json_dict(config.to_json_dict())
        assert again == config and again.to_json_dict() == config.to_json_dict()
        assert len(again.get_flatten_feature()) == 2 + 2 + 2 + 1 and again.get_other_option() == {"d": config["d"].val}


def test_a_default_configuration():
    config = FallbackConfigEntity()
    config.define_split("a", 48, num_outputs=3)
    config.define_knob("b", [3, 4])
    assert config.is_fallback and config["a"].size[2] in (4, 8, 16) and config["b"].val == 3
    config.fallback_split("a", [-1, 4, 6])
    assert config["a"].size == (-1, 4, 6)
    config["b"] = SplitEntity((-1, 2))
    assert config["b"].size == (-1, 2)
    with pytest.raises(ArgumentError, match="at most"):
        config.fallback_split("a", [-1, 0, 0, 0])


@pytest.mark.parametrize("outputs, count", [(10, 5005), (15, 38_760)])
def test_splits_into_many_loops_take_the_time_of_those_there_are(outputs, count):
    """Inner parts that do not fit are not gone into: all products of the factors of 64 were tried, 40 million for 10 loops."""
    begin = time.process_time()
    space = ConfigSpace()
    space.define_split("a", 64, num_outputs=outputs)
    assert len(space) == count and time.process_time() - begin < 5


@pytest.mark.parametrize("policy", ["factors", "power2", "verbose"])
@pytest.mark.parametrize("options", [{}, {"max_factor": 4}, {"no_tail": True}, {"no_tail": False}])
def test_splits_are_numbered_as_in_v08(policy, options):
    """All products of the factors in their order, the innermost loop changing slowest, without those that do not fit."""
    for extent in (1, 7, 12, 64):
        space = ConfigSpace()
        space.define_split("a", extent, policy, num_outputs=3, **options)
        few = {*get_factors(extent), *get_pow2s(extent)} if policy == "verbose" else \
            {"factors": get_factors, "power2": get_pow2s}[policy](extent)
        factors = [one for one in sorted(few) if one <= options.get("max_factor", extent)]
        even = options.get("no_tail", policy == "factors")
        assert [e.size for e in space.space_map["a"]] == [
            (-1, mid, last) for last in factors for mid in factors
            if (extent % (mid * last) == 0 if even else mid * last <= extent)]


@pytest.mark.parametrize("make, words", [
    (lambda c: c.define_split("a", 8, max_factor="8"), "max_factor is an int of at least 1, not '8'"),
    (lambda c: c.define_split("a", 8, max_factor=None), "max_factor is an int of at least 1, not None"),
    (lambda c: c.define_split("a", 8, max_factor=0), "max_factor is an int of at least 1, not 0"),
    (lambda c: c.define_split("a", 8, filter=3), "filter is a function of an entity, not 3"),
    (lambda c: c.define_split("a", 8, "candidate", candidate=["ab"]), "candidates are lists of 2 extents, not 'ab'"),
    (lambda c: c.define_split("a", 8, "candidate", candidate=[["a", "b"]]), "candidates are lists of 2 extents"),
    (lambda c: c.define_split("a", 8, "candidate", candidate=3), "candidate is a list of lists"),
    (lambda c: c.define_split("a", 8, "candidate", candidate=[[-1, 0]]), "no loops of at least 1 iteration"),
    (lambda c: c.define_split("a", 8, "candidate", candidate=[[-1, -1]]), "no loops of at least 1 iteration"),
    (lambda c: c.define_split("a", 1 << 20, num_outputs=20), "has 68923264410 choices"),
    (lambda c: c.define_reorder("a", list("abcd"), "candidate", candidate=[[0, 1]]), "each of the 4 loops once.*has 2 of them"),
    (lambda c: c.define_reorder("a", list("ab"), "candidate", candidate=[[0, 0]]), "each of the 2 loops once"),
    (lambda c: c.define_reorder("a", list("ab"), "candidate", candidate=[3]), "an order is a list of loops, not 3"),
    (lambda c: c.define_reorder("a", list("ab"), "interval_all", interval=(1, 9)), r"interval is .* not \(1, 9\)"),
    (lambda c: c.define_reorder("a", list("ab"), "interval_all", interval=3), "interval is .* not 3"),
    (lambda c: c.define_reorder("a", list("ab"), "interleave", spatial=3), "lists of chains of loops, not 3"),
    (lambda c: c.define_reorder("a", list(range(14)), "all"), "has 87178291200 choices"),
    (lambda c: c.define_reorder("a", list("ab"), "all", order=3), "no argument named 'order'"),
    (lambda c: c.define_annotate("a", [1, 2], "vec"), "'vec' vectorizes each of 2 loops"),
    (lambda c: c.define_annotate("a", [1, 2], "candidate", candidate=[3]), "a list of annotations, one for each loop, not 3"),
    (lambda c: c.define_annotate("a", [1, 2], "locate_cache", num_anchor=0), "num_anchor is how many caches"),
    (lambda c: c.define_annotate("a", [1, 2], "try_vec", lanes=3), "no argument named 'lanes'"),
    (lambda c: c.define_annotate("a", list(range(18)), "try_unroll_vec"), "has 387420489 choices"),
    (lambda c: c.define_split("a", 0), "a known number of iterations"),
    (lambda c: c.define_split("a", te.var("n")), "a known number of iterations"),
    (lambda c: c.define_split("a", 8, "best"), "there is no policy 'best'"),
    (lambda c: c.define_split("a", 8, num_outputs=0), "num_outputs is an int"),
    (lambda c: c.define_split("a", 8, filter=lambda e: False), "no split of 8 iterations is left"),
    (lambda c: c.define_split("a", 8, "candidate", candidate=[[1, 2, 3]]), "candidates are lists of 2"),
    (lambda c: c.define_knob("a", 3), "candidate is a list of values"),
    (lambda c: c.define_knob(3, [1]), "a knob has a name"),
    (lambda c: c.define_reorder("a", [1], "x"), "there is no policy 'x'"),
    (lambda c: c.define_annotate("a", [1], "x"), "there is no policy 'x'"),
    (lambda c: c.define_annotate("a", [1], "bind_gpu"), "too few to be bound"),
    (lambda c: c.define_reorder("a", [1], "candidate", candidate=[["z"]]), "z is none of the loops"),
    (lambda c: c["z"], "has no knob 'z'"), (lambda c: c.get(7), "has points 0 to 0, and no 7"),
    (lambda c: ConfigEntity.from_json_dict({}), "this is no configuration"),
    (lambda c: ConfigEntity.from_json_dict({"index": 0, "entity": [["a", "zz", 1]]}), "kind 'zz'"),
    (lambda c: autotvm.ApplyConfig(3), "takes a configuration")])
def test_misuse(make, words):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=words):
        make(ConfigSpace())


def test_points_as_tvm_06_wrote_them():
    made = autotvm.task.space.ConfigEntity.from_json_dict(
        {"i": 7, "t": "direct", "c": None, "e": [["tile_x", "sp", [-1, 4]], ["unroll", "ot", True]]})
    assert made.index == 7 and made["tile_x"].size[-1] == 4 and made["unroll"].val is True


@pytest.mark.parametrize("name, shape, tiles", [
    ("pack", (64, 192, 10), {"tile_y": [4, 2, 8], "tile_x": [3, 4, 16], "tile_k": [10, 1], "tile_inner": [8, 8]}),
    ("pack", (6, 7, te.var("k")), {"tile_y": [3, 1, 2], "tile_x": [1, 1, 7], "tile_k": [16, 1], "tile_inner": [3, 2]}),
    ("nopack", (6, 7, 40), {"tile_y": [1, 6], "tile_x": [7, 1], "tile_k": [4, 10]})])
def test_default_tiles_of_dense_templates(name, shape, tiles):
    from tedsl.topi.x86 import dense

    config = FallbackConfigEntity()
    with tedsl.target.Target("llvm -mcpu=haswell"):
        getattr(dense, f"_default_dense_{name}_config")(config, *shape)
    assert {knob: list(config[knob].size) for knob in tiles} == tiles
    s, B = stage(*(t for t in shape if isinstance(t, int)))
    assert len(config["tile_y"].apply(s, B, B.op.axis[0])) == len(tiles["tile_y"])


def convolution(window, depthwise=False):
    data = te.placeholder((1, 24, 17, 14), name="data")
    return data, te.placeholder((24, 1, *window) if depthwise else (48, 24, *window), name="kernel")


@pytest.mark.parametrize("window, depthwise, tiles", [
    ((3, 3), False, {"tile_ic": [2, 12], "tile_oc": [3, 16], "tile_ow": [1, 7]}),
    ((1, 1), False, {"tile_ic": [2, 12], "tile_oc": [3, 16], "tile_ow": [1, 8], "tile_oh": [5, 2]}),
    ((3, 3), True, {"tile_ic": [2, 12], "tile_oc": [2, 12], "tile_ow": [1, 7]})])
def test_default_tiles_of_convolution_templates(window, depthwise, tiles):
    from tedsl.topi.x86.conv2d import _get_default_config

    config, (data, kernel) = FallbackConfigEntity(), convolution(window, depthwise)
    with tedsl.target.Target("llvm -mcpu=skylake-avx512"):
        _get_default_config(config, data, kernel, (2, 2), (1, 1), (1, 1), "float32", depthwise)
    assert {knob: list(config[knob].size) for knob in tiles} == tiles
    assert window == (1, 1) or config["unroll_kw"].val is False


def test_packed_data_of_convolution_templates():
    config, (data, kernel) = FallbackConfigEntity(), convolution((3, 3))
    config["tile_ic"], config["tile_oc"] = [3, 8], [3, 16]
    packed, weights = topi.x86.conv2d._pack_data(config, data, kernel)
    assert packed.shape == (1, 3, 17, 14, 8) and weights.shape == (3, 3, 3, 3, 8, 16)
    out = topi.nn.conv2d_NCHWc(packed, weights, 1, 0, 1, "NCHW8c", "NCHW16c", "float32")
    plain = topi.nn.conv2d_nchw(data, kernel, 1, 0, 1)
    given = [np.random.default_rng(0).standard_normal([int(n) for n in t.shape]).astype("float32") for t in (data, kernel)]
    results = []
    for made in (topi.nn.unpack_NCHWc_to_nchw(out, "float32"), plain):
        results.append(np.empty([int(n) for n in made.shape], "float32"))
        tedsl.build(topi.generic.schedule_extern([made]), [data, kernel, made])(*given, results[-1])
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)
