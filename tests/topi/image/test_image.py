"""Images resized, cropped, sampled and dilated, against plain numpy and torch."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tests.topi.checking import check
from tests.topi.run import run
from topi import image, nn, testing
from topi.testing.image import MODES, ROUNDINGS, resize_python

pytestmark = pytest.mark.sampled(2)

rng = np.random.default_rng(6)
SCHEDULES = {"plain": None, "x86": topi.x86.schedule_injective}
ROI = (0.0,) * 4


def feed(shape, dtype="float32", name="a"):
    return te.placeholder(shape, dtype, name=name), (rng.random(shape) * 100).astype(dtype)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("mode", MODES)
def test_resize2d(mode, schedule):
    a, x = feed((2, 2, 3, 5))
    cases = [(method, size) for method in ("nearest_neighbor", "linear", "cubic") for size in ((6, 7), (2, 3), (1, 5))]
    check([image.resize2d(a, ROI, size, "NCHW", method, mode) for method, size in cases], {a: x},
          [resize_python(x, size, method, mode) for method, size in cases], 1e-4, 1e-3, SCHEDULES[schedule])


def test_roundings_and_cubic_options():
    a, x = feed((1, 1, 4, 6))
    roundings = [one for one in ROUNDINGS if one != "even"]
    check([*[image.resize2d(a, ROI, (7, 9), "NCHW", "nearest_neighbor", "half_pixel", one) for one in roundings],
           image.resize2d(a, ROI, (7, 9), "NCHW", "cubic", "half_pixel", "", -0.75, 1)], {a: x},
          [*[resize_python(x, (7, 9), "nearest_neighbor", "half_pixel", one) for one in roundings],
           resize_python(x, (7, 9), "cubic", "half_pixel", "", -0.75, True)], 1e-4, 1e-3)


def test_other_ranks_layouts_and_dtypes():
    (a, x), (b, y), (c, z) = feed((1, 2, 5)), feed((1, 2, 2, 3, 4), name="b"), feed((1, 4, 5, 3), "uint8", "c")
    d, w = feed((1, 1, 3, 4, 2), "float64", "d")
    blocks = w.transpose(0, 1, 4, 2, 3).reshape(1, 2, 3, 4)
    made = [image.resize1d(a, (0.0, 0.0), (8,)), image.resize3d(b, (0.0,) * 6, (3, 3, 6), method="linear"),
            image.resize2d(c, ROI, (8, 7), "NHWC", "nearest_neighbor", "asymmetric"),
            image.resize2d(c, ROI, (8, 7), "NHWC", "linear", out_dtype="float32"),
            image.resize2d(d, ROI, (5, 5), "NCHW2c", "cubic")]
    last = np.moveaxis(z, -1, 1)
    check(made, {a: x, b: y, c: z, d: w},
          [resize_python(x, (8,), "linear", "half_pixel"), resize_python(y, (3, 3, 6), "linear", "half_pixel"),
           np.moveaxis(resize_python(last, (8, 7), "nearest_neighbor", "asymmetric"), 1, -1),
           np.moveaxis(resize_python(last.astype("float32"), (8, 7), "linear", "half_pixel"), 1, -1),
           resize_python(blocks, (5, 5), "cubic", "half_pixel").reshape(1, 1, 2, 5, 5).transpose(0, 1, 3, 4, 2)], 1e-4, 1e-3)


def test_upsampling():
    (a, x), (b, y) = feed((1, 2, 3, 4)), feed((1, 2, 2, 3, 2), name="b")
    n = te.size_var("n")
    c, z = te.placeholder((1, 1, n, 2), name="c"), rng.random((1, 1, 3, 2), "float32")
    check([nn.upsampling(a, 2, 2), nn.upsampling(a, 1.5, 2.0, method="bilinear", align_corners=True),
           nn.upsampling(a, 2, 3, method="bicubic"), nn.upsampling3d(b, 2, 2, 3), nn.upsampling(c, 2, 2)], {a: x, b: y, c: z},
          [x.repeat(2, 2).repeat(2, 3), testing.resize2d_python(x, (1.5, 2), method="linear"),
           testing.resize2d_python(x, (2, 3), method="cubic", coordinate_transformation_mode="asymmetric"),
           resize_python(y, (4, 6, 6), "nearest_neighbor", "half_pixel"), z.repeat(2, 2).repeat(2, 3)], 1e-4, 1e-3)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_crop_and_resize(schedule):
    (a, x), (b, y) = feed((2, 3, 6, 5)), feed((2, 6, 5, 3), name="b")
    boxes, places = te.placeholder((3, 4), name="boxes"), te.placeholder((3,), "int32", name="places")
    corners = np.array([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [-0.3, 0.5, 0.75, 1.4]], "float32")
    numbers = np.array([1, 0, 1], "int32")
    roi = (0.1, 0.2, 0.9, 0.7)
    check([image.crop_and_resize(a, boxes, places, (4, 3)),
           image.crop_and_resize(b, boxes, places, (3, 1), "NHWC", "nearest_neighbor", 9.0),
           image.resize2d(a, roi, (4, 4), "NCHW", "linear", "tf_crop_and_resize")],
          {a: x, b: y, boxes: corners, places: numbers},
          [testing.crop_and_resize_python(x, corners, numbers, (4, 3), "NCHW"),
           testing.crop_and_resize_python(y, corners, numbers, (3, 1), "NHWC", "nearest_neighbor", 9.0),
           testing.crop_and_resize_python(x, np.array([roi, roi]), np.array([0, 1]), (4, 4), "NCHW")], 1e-4, 1e-3,
          SCHEDULES[schedule])


@pytest.mark.parametrize("align", [True, False])
def test_resize_against_torch(align):
    torch = pytest.importorskip("torch")
    x = rng.random((1, 2, 5, 6))
    mode = "align_corners" if align else "half_pixel"
    for method, theirs, alpha in (("linear", "bilinear", -0.5), ("cubic", "bicubic", -0.75)):
        expected = torch.nn.functional.interpolate(torch.from_numpy(x), (7, 4), mode=theirs, align_corners=align)
        np.testing.assert_allclose(resize_python(x, (7, 4), method, mode, alpha=alpha), expected.numpy(), rtol=1e-6)


def test_affine_grid():
    a, x = feed((2, 2, 3))
    check([image.affine_grid(a, (3, 4)), image.affine_grid(a, (2, 5), False)], {a: x},
          [testing.affine_grid_python(x, (3, 4)), testing.affine_grid_python(x, (2, 5), False)], 1e-4, 1e-4)


@pytest.mark.parametrize("method, rank", [("nearest", 2), ("bilinear", 2), ("bicubic", 2), ("nearest", 3), ("bilinear", 3)])
def test_grid_sample_against_torch(method, rank):
    torch = pytest.importorskip("torch")
    shape, results = ((2, 2, 5, 4), (3, 6)) if rank == 2 else ((1, 2, 3, 4, 5), (2, 3, 4))
    (a, x), grid = feed(shape), te.placeholder((shape[0], rank, *results), name="grid")
    places = rng.uniform(-1.9, 1.9, (shape[0], rank, *results)).astype("float32")
    made, wanted = [], []
    for padding in ("zeros", "border", "reflection"):
        for align in (True, False):
            made.append(image.grid_sample(a, grid, method, "NCHW" if rank == 2 else "NCDHW", padding, align))
            moved = torch.from_numpy(np.moveaxis(places, 1, -1).copy())
            wanted.append(torch.nn.functional.grid_sample(torch.from_numpy(x), moved, method, padding, align).numpy())
    check(made, {a: x, grid: places}, wanted, 1e-3, 1e-2)


@pytest.mark.parametrize("method, layout", [("nearest_neighbor", "NCHW"), ("bilinear", "NCHW"), ("bilinear", "NHWC")])
def test_upsampling_is_its_reference(method, layout):
    (a, x), (b, y) = feed((1, 3, 4, 2)), feed((1, 2, 3, 2, 2), name="b")
    cubic = "trilinear" if method == "bilinear" else method
    made = [nn.upsampling(a, 2, 3, layout, method, align) for align in (False, True)]
    check([*made, nn.upsampling3d(b, 2, 1, 2, method=cubic)], {a: x, b: y},
          [testing.upsampling_python(x, (2, 3), layout, method, align) for align in (False, True)]
          + [testing.upsampling3d_python(y, (2, 1, 2), method=cubic)], 1e-4, 1e-4)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_elements_that_stand_several_times_are_found_without_floats(schedule):
    (a, x), (b, y) = feed((1, 2, 7, 1)), feed((2, 5, 16), name="b")
    made = [nn.upsampling(a, 3, 50), image.resize1d(b, (0.0, 0.0), 64, "NCW", "nearest_neighbor", "asymmetric")]
    check(made, {a: x, b: y}, [x.repeat(3, 2).repeat(50, 3), y.repeat(4, 2)], 0, 0, SCHEDULES[schedule])
    assert all("floor(" not in str(out.op.body) for out in made)


@pytest.mark.parametrize("method", ["nearest", "bilinear"])
def test_grid_sample_is_its_reference(method):
    (a, x), grid = feed((2, 2, 5, 4)), te.placeholder((2, 2, 3, 6), name="grid")
    places = rng.uniform(-1.5, 1.5, (2, 2, 3, 6)).astype("float32")
    check([image.grid_sample(a, grid, method, align_corners=align) for align in (True, False)], {a: x, grid: places},
          [testing.grid_sample_nchw_python(x, places, method, align) for align in (True, False)], 1e-3, 1e-3)


def test_affine_grid_reference_against_torch():
    torch = pytest.importorskip("torch")
    x = rng.random((2, 2, 3))
    for align in (True, False):
        expected = torch.nn.functional.affine_grid(torch.from_numpy(x), [2, 1, 3, 4], align_corners=align).numpy()
        np.testing.assert_allclose(testing.affine_grid_python(x, (3, 4), align), np.moveaxis(expected, -1, 1))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_dilation2d(schedule):
    (a, x), (w, k) = feed((1, 3, 6, 7)), feed((3, 2, 3), name="w")
    b, v = te.placeholder((1, 6, 7, 3), name="b"), te.placeholder((2, 3, 3), name="v")
    expected = testing.dilation2d_python(x, k, (1, 2), (1, 0, 0, 1), (2, 1))
    around = (1, 2), (1, 0, 0, 1), (2, 1)
    check([image.dilation2d_nchw(a, w, *around), image.dilation2d_nhwc(b, v, *around)],
          {a: x, w: k, b: np.moveaxis(x, 1, -1).copy(), v: np.moveaxis(k, 0, -1).copy()},
          [expected, np.moveaxis(expected, 1, -1)], schedule=SCHEDULES[schedule])


A = te.placeholder((1, 2, 4, 4), name="a")


@pytest.mark.parametrize("call, error, words", [
    (lambda: image.resize2d(A, ROI, (4,)), ShapeError, r"resize2d of a: size is \(4,\) for 2 spatial dimensions"),
    (lambda: image.resize2d(A, ROI, (4, 0)), ShapeError, r"size is \(4, 0\)"),
    (lambda: image.resize2d(A, ROI, 4, "NCHW", "lanczos"), ArgumentError, 'method is "lanczos"'),
    (lambda: image.resize2d(A, ROI, 4, "NCHW", "linear", "middle"), ArgumentError, 'transformation_mode is "middle"'),
    (lambda: image.resize2d(A, ROI, 4, "NCW"), ArgumentError, 'layout is "NCW"'),
    (lambda: image.crop_and_resize(A, A, A, 4), ShapeError, "boxes are"),
    (lambda: image.affine_grid(A, (3, 3)), ShapeError, "affine_grid of a"),
    (lambda: image.affine_grid(te.placeholder((1, 2, 3)), (1, 3)), ShapeError, r"target_shape is \(1, 3\)"),
    (lambda: image.grid_sample(A, A, padding_mode="wrap"), ArgumentError, 'padding_mode "wrap"'),
    (lambda: image.grid_sample(A, te.placeholder((1, 3, 4, 4), name="g")), ShapeError, r"\(1, 2, 4, 4\) and \(1, 3, 4, 4\)"),
    (lambda: image.dilation2d_nchw(A, te.placeholder((3, 2, 2), name="w"), 1, 0, 1), ShapeError, "has 2 channels, w .* 3"),
    (lambda: nn.upsampling(te.placeholder((1, 1, te.size_var("n"), 2)), 1.5, 1), ShapeError, "known only at the call"),
])
def test_what_does_not_fit_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("rows, out", [(480, 224), (224, 480), (640, 224), (7, 3), (1000, 333), (1, 9), (9, 1)])
def test_the_nearest_row_is_that_of_the_exact_position(rows, out):
    x = te.placeholder((1, 1, rows, 1), name="x")
    data = np.arange(rows, dtype="float32").reshape(1, 1, rows, 1)
    resized = run(image.resize2d(x, ROI, (out, 1), "NCHW", "nearest_neighbor", "asymmetric", "floor"), {x: data})
    assert resized.ravel().tolist() == [i * rows // out for i in range(out)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [(5, 10), (10, 5), (7, 3), (1, 4), (4, 1)], ids=str)
def test_constant_and_symbolic_extents_agree(mode, sizes):
    n, out = sizes
    data = rng.random((1, n, 3, 18), "float32")
    for method in ("nearest_neighbor", "linear", "cubic"):
        for rounding in ROUNDINGS if method == "nearest_neighbor" else ("",):
            results = []
            for extent in (n, te.var("n")):
                x = te.placeholder((1, extent, 3, 18), name="x")
                resized = image.resize2d(x, (0.1, 0.0, 0.9, 1.0), (out, 2), "NHWC", method, mode, rounding)
                results.append(run(resized, {x: data}))
            np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("align_corners", [True, False])
def test_references_of_older_versions(align_corners):
    a, x = feed((1, 2, 3, 4))
    b, y = feed((1, 2, 3, 2, 2), name="b")
    mode = "align_corners" if align_corners else "asymmetric"
    check([image.resize(a, (5, 7), "NCHW", align_corners=align_corners, method="bilinear"),
           image.resize3d(b, (0.0,) * 6, (4, 5, 3), "NDHWC", "linear", mode)], {a: x, b: y},
          [testing.bilinear_resize_python(x, (5, 7), "NCHW", align_corners),
           testing.trilinear_resize3d_python(y, (4, 5, 3), "NDHWC", mode)], 1e-4, 1e-3)
    assert topi.nn.winograd_util.winograd_transform_matrices is topi.nn.winograd_transform_matrices


@pytest.mark.parametrize("method, wide", [("nearest_neighbor", 50), ("linear", 50), ("cubic", 50), ("linear", 19)])
def test_larger_images_are_not_gathered(method, wide):
    """Places that are clamped at the ends of a row are constants: its vectors are written one after the other."""
    x = te.placeholder((1, 2, 5, wide), name="x")
    y = image.resize2d(x, ROI, (10, 2 * wide), "NCHW", method, "half_pixel")
    with tedsl.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4"):
        s = topi.schedules.schedule(y)
    module = tedsl.build(s, [x, y], "llvm -mtriple=x86_64-linux-gnu -mcpu=znver4")
    assert "gather" not in module.get_source("asm")


@pytest.mark.parametrize("scale, wide", [(3, 61), (5, 50), (6, 33), (2, 200)])
def test_rows_of_repeated_elements(scale, wide):
    """Vectors begin at whole elements, so that the places of their lanes are known."""
    x, data = feed((1, 2, 4, wide))
    rows = [image.resize2d(x, ROI, (8, scale * wide), "NCHW", "nearest_neighbor", mode, "floor")
            for mode in ("asymmetric", "tf_half_pixel_for_nn")]
    check([*rows, topi.repeat(x, scale, 3)], {x: data},
          [data.repeat(2, 2).repeat(scale, 3), data.repeat(2, 2).repeat(scale, 3), data.repeat(scale, 3)])
