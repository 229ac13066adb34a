"""Convolutions of several images take no longer for each than one image does: what is read again is in the caches."""

import re

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from tests.topi.schedules.test_winograd import winograd
from topi import nn, testing
from topi.schedules.packing import panels_in

pytestmark = pytest.mark.sampled(3)

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -model=znver5"
AVX2 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver3 -model=znver3"


def loops(shape, filters, window, stride, target):
    """The loops of a convolution, parallel ones with a star."""
    a, w = te.placeholder(shape, name="a"), te.placeholder((filters, shape[1], window, window), name="w")
    made = nn.relu(nn.conv2d_nchw(a, w, stride, window // 2, 1))
    text = str(tedsl.lower(topi.schedules.schedule(made, Target(target)), [a, w, made], simple_mode=True))
    return [(len(space), name, int(extent), bool(parallel)) for space, name, extent, parallel in
            re.findall(r"^( *)for \((\S+): int32, 0, (\d+)\)( \"parallel\")?", text, re.MULTILINE)]


@pytest.mark.parametrize("target", [f"{AVX512} -num-cores=1", f"{AVX512} -num-cores=2", f"{AVX2} -num-cores=2"])
@pytest.mark.parametrize("images, channels, filters, size, window", [
    (2, 128, 128, 56, 3), (8, 128, 128, 56, 3), (2, 256, 512, 56, 1), (8, 64, 128, 56, 1)])
def test_copies_of_the_data_are_made_image_by_image(images, channels, filters, size, window, target):
    """With a border, or without what the stride skips: the tiles of an image follow its copy."""
    found = loops((images, channels, size, size), filters, window, 2, target)
    around = next(at for at, loop in enumerate(found) if loop[1:] == ("ax0", images, False))
    parallel = [loop for loop in found[around + 1:] if loop[3]]
    assert len(parallel) == 2 and all(loop[0] > found[around][0] for loop in parallel), found


@pytest.mark.parametrize("images, channels, size, cores", [
    (1, 128, 56, 1),  # one image
    (2, 16, 8, 1),  # copies that stay in the caches
    (4, 16, 8, 4),
])
def test_other_copies_are_made_at_once(images, channels, size, cores):
    found = loops((images, channels, size, size), 128, 3, 2, f"{AVX512} -num-cores={cores}")
    assert not any(loop[1] == "ax0" for loop in found), found


@pytest.mark.parametrize("shape, filters, window, stride", [
    ((2, 67, 57, 55), 130, 3, 2), ((3, 130, 57, 56), 129, 1, 2), ((2, 64, 43, 45), 96, 5, 1), ((2, 70, 41, 80), 65, 3, (2, 1))])
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3", "llvm -num-cores=3"])
def test_images_one_after_the_other(shape, filters, window, stride, target):
    rng = np.random.default_rng(3)
    x, z = (rng.standard_normal(one).astype("float32") for one in (shape, (filters, shape[1], window, window)))
    check_convolution(x, z, stride, window // 2, target)


def check_convolution(x, z, stride, pad, target):
    a, w = te.placeholder(x.shape, name="a"), te.placeholder(z.shape, name="w")
    with Target(target):
        made = nn.relu(nn.conv2d_nchw(a, w, stride, pad, 1))
        s = topi.schedules.schedule(made)
        out = np.full([int(extent) for extent in made.shape], np.nan, "float32")
        tedsl.build(s, [a, w, made])(x, z, out)
    np.testing.assert_allclose(out, np.maximum(testing.conv2d_nchw_python(x, z, stride, pad), 0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("target, shape, filters", [
    (f"{AVX512} -num-cores=1", (2, 128, 28, 28), 512), (f"{AVX512} -num-cores=2", (2, 100, 27, 27), 200),
    (f"{AVX2} -num-cores=2", (4, 1024, 14, 14), 256)])
def test_the_last_tile_of_an_image_is_code_of_its_own(target, shape, filters):
    """Fused with the images, the loop over pixels would have a condition around every term, for the last tile is smaller."""
    outermost = next(loop for loop in loops(shape, filters, 1, 1, target) if loop[3])
    assert outermost[2] == shape[0], outermost


@pytest.mark.parametrize("shape, filters", [
    ((3, 67, 13, 13), 130), ((2, 33, 27, 27), 65), ((2, 320, 7, 7), 100), ((5, 65, 9, 9), 70)])
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3", "llvm -num-cores=2"])
def test_pixels_of_several_images(shape, filters, target):
    rng = np.random.default_rng(4)
    x, z = (rng.standard_normal(one).astype("float32") for one in (shape, (filters, shape[1], 1, 1)))
    check_convolution(x, z, 1, 0, target)


@pytest.mark.parametrize("images", [1, 2, 8])
def test_pixels_that_leave_most_of_a_vector_are_computed_by_channels_for_several_images(images):
    """A copy of all weights, which stay in the second cache, pays for two images, and programs may pack them once."""
    a, w = te.placeholder((images, 256, 7, 7), name="a"), te.placeholder((512, 256, 1, 1), name="w")
    assert w in panels_in(nn.conv2d_nchw(a, w, 1, 0, 1), Target(AVX512))


def test_tasks_of_two_images_with_few_pixels_are_images():
    """Tiles of six of a hundred channels leave a rest, which would be a condition around every term."""
    outermost = next(loop for loop in loops((2, 320, 7, 7), 100, 1, 1, f"{AVX512} -num-cores=1") if loop[3])
    assert outermost[2] == 2, outermost


@pytest.mark.parametrize("images, channels, size, lines", [
    (1, 64, 56, 196 * 4 + 1), (4, 64, 56, 784 * 4 + 1), (8, 256, 28, 392 * 16 + 1), (1, 16, 28, 49)])
def test_planes_of_transformed_tiles_begin_in_different_sets(images, channels, size, lines):
    """Of 36 planes 49 pages apart, which 784 tiles of 64 channels are, L1 holds twelve lines at a time."""
    data, weights, made = winograd((images, channels, size, size), 512)
    s = topi.schedules.schedule(made, Target(AVX512))
    text = str(tedsl.lower(s, [data, weights, made], simple_mode=True))
    stores = [line.split(" = ")[0] for line in text.splitlines() if line.strip().startswith("data_pack[ramp((")]
    assert any(store.endswith(f"+ {lines * 16}), 1, 16)]") for store in stores), stores[:3]
