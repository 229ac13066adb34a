"""A blur and an edge filter on a photograph: where to compute a stage, and what that costs.

Run it: `python tutorials/04_image.py`. Needs the tutorials extra (matplotlib brings the photograph).
The blur is separable: first along x, then along y. Three schedules of the same formula are compared.
"""

import pathlib
import statistics
import timeit

import matplotlib.cbook
import matplotlib.image
import numpy as np
import scipy.ndimage

import tedsl
from tedsl import te

with matplotlib.cbook.get_sample_data("grace_hopper.jpg") as photo:
    image = matplotlib.image.imread(photo, format="jpg").astype("float32").mean(axis=2) / 255
# Enlarged four times, so that it does not fit the cache.
image = np.ascontiguousarray(np.kron(image, np.ones((4, 4), "float32")))
H, W = image.shape
print(f"the photograph: {W} x {H}")
KERNEL = [1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16]


OUT = (H - 6, W - 6)  # where the filters have all their neighbours


def filters():
    """Blur (5 x 5 binomial) and edges (gradient magnitude of the blurred image)."""
    source = te.placeholder((H, W), name="source")
    blur_x = te.compute((H, W - 4), lambda y, x: sum(KERNEL[d] * source[y, x + d] for d in range(5)), name="blur_x")
    blur = te.compute((H - 4, W - 4), lambda y, x: sum(KERNEL[d] * blur_x[y + d, x] for d in range(5)), name="blur")
    dx = lambda y, x: blur[y + 1, x + 2] - blur[y + 1, x]
    dy = lambda y, x: blur[y + 2, x + 1] - blur[y, x + 1]
    edges = te.compute(OUT, lambda y, x: te.sqrt(dx(y, x) * dx(y, x) + dy(y, x) * dy(y, x)), name="edges")
    return source, blur_x, blur, edges


def reference():
    blurred = scipy.ndimage.convolve1d(scipy.ndimage.convolve1d(image, KERNEL, 1), KERNEL, 0)[2:-2, 2:-2]
    return np.hypot(blurred[1:-1, 2:] - blurred[1:-1, :-2], blurred[2:, 1:-1] - blurred[:-2, 1:-1])


def measure(title, schedule, arguments):
    """Print the loops, run the kernel, compare with scipy; the median time of a call."""
    print(f"\n{title}:\n")
    tedsl.lower(schedule, arguments, simple_mode=True).show()
    kernel = tedsl.build(schedule, arguments)
    out = np.empty(OUT, "float32")
    kernel(image, out)
    np.testing.assert_allclose(out, expected, atol=2e-6)
    milliseconds = 1e3 * statistics.median(timeit.repeat(lambda: kernel(image, out), number=1, repeat=9))
    print(f"--- {milliseconds:.2f} ms, agrees with scipy")
    return milliseconds, out


expected = reference()

# 1. Every stage on its own: blur_x and blur are whole images in memory.
source, blur_x, blur, edges = filters()
s = te.create_schedule(edges.op)
naive, result = measure("Each stage on its own", s, [source, edges])

# 2. compute_at: the edges are computed in tiles, and the blur that a tile needs just before it, halo included.
source, blur_x, blur, edges = filters()
s = te.create_schedule(edges.op)
yo, xo, yi, xi = s[edges].tile(edges.op.axis[0], edges.op.axis[1], 32, 256)
s[blur].compute_at(s[edges], xo)
s[blur_x].compute_at(s[edges], xo)
tiled, _ = measure("Tiles, producers computed where they are used", s, [source, edges])

# 3. The same with vector instructions along x, and rows of tiles on all cores.
for stage in (blur_x, blur, edges):
    axis = xi if stage is edges else s[stage].op.axis[1]
    _, lanes = s[stage].split(axis, factor=32)
    s[stage].vectorize(lanes)
s[edges].parallel(yo)
fast, result = measure("Tiles, vectors, threads", s, [source, edges])
scipys = 1e3 * min(timeit.repeat(reference, number=1, repeat=3))
print(f"\nscipy and numpy need {scipys:.2f} ms for the same, {scipys / fast:.0f} times as long: they go through the memory")
print("once for each filter and each operation. In tiles, what a stage makes is still in the cache when the")
print("next one reads it; that is paid for with the halo, 38 rows of blur_x for 32 of edges.")

out = pathlib.Path(__file__).parent / "out"
out.mkdir(exist_ok=True)
matplotlib.image.imsave(out / "edges.png", np.minimum(result * 4, 1), cmap="gray")
print("wrote", "out/edges.png")
