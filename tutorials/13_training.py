"""Networks that learn: a recorded graph and its gradients, LeNet on handwritten digits, and a transformer that sorts.

Run it: `python tutorials/13_training.py`. Needs the tutorials extra: scikit-learn brings the digits, matplotlib draws the
curves, tqdm shows how far training is. docs/autodiff.md is the page behind it.
"""

import pathlib
import textwrap
import time

import matplotlib.figure
import numpy as np
from sklearn.datasets import load_digits
from tqdm import trange

import tedsl
import topi
from tedsl import autograd, nn, optim, te
from tedsl.errors import TedslError

tedsl.set_num_threads(1)  # kernels of a few microseconds
out = pathlib.Path(__file__).parent / "out"
out.mkdir(exist_ok=True)

# --- 1. Derivatives of formulas ---------------------------------------------------------------------------------------
# te.gradient takes formulas and returns formulas: tensors to schedule and build like any other.
A, B = te.placeholder((3, 4), name="A"), te.placeholder((4, 5), name="B")
C = topi.sum(topi.tanh(topi.matmul(A, B)))
(dA,) = te.gradient(C, [A], topi.full((), "float32", 1.0))
derivative = tedsl.build(topi.schedules.schedule(dA, "llvm"), [A, B, dA])
rng = np.random.default_rng(0)
a, b, da = rng.standard_normal((3, 4), "float32"), rng.standard_normal((4, 5), "float32"), np.empty((3, 4), "float32")
derivative(a, b, da)
np.testing.assert_allclose(da, (1 - np.tanh(a @ b) ** 2) @ b.T, rtol=1e-4, atol=1e-5)
print("te.gradient of sum(tanh(A @ B)) by A is (1 - tanh(A @ B)**2) @ B.T, as it should be\n")

# --- 2. Derivatives of programs ---------------------------------------------------------------------------------------
# Tensors of tedsl.autograd hold values. What is computed from one that requires a gradient is recorded while it runs.
x, y = autograd.tensor(2.0, requires_grad=True), autograd.tensor(6.0, requires_grad=True)
z = 3 * x**3 - y**2
print("The graph of 3 x**3 - y**2, from the result to the leaves:\n")
print(z.grad_fn.graph())
z.backward()
print(f"\nz = {z.item()}, dz/dx = {x.grad.item()}, dz/dy = {y.grad.item()}")
assert (x.grad.item(), y.grad.item()) == (36.0, -12.0)
try:
    z.backward()
except TedslError as error:
    print("\nA second time:")
    print(textwrap.fill(str(error).replace(__file__, "13_training.py"), 108, initial_indent="  ", subsequent_indent="  "))

# --- 3. LeNet ---------------------------------------------------------------------------------------------------------
# 1797 images of 8 x 8 grey values. A quarter is kept to test what was learned.
digits = load_digits()
images, labels = (digits.images / 16).astype("float32")[:, None], digits.target.astype("int32")
order = np.random.default_rng(0).permutation(len(images))
images, labels, train = images[order], labels[order], len(images) * 3 // 4


def lenet():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def trained(seed, epochs=20, batch=32):
    """The accuracy on the images that were kept, the mean loss of each epoch, and the milliseconds of a step."""
    nn.manual_seed(seed)
    shuffle = np.random.default_rng(seed)
    model, loss_of = lenet(), nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses, times = [], []
    for _ in trange(epochs, desc=f"LeNet, seed {seed}", leave=False, disable=None):
        total, places = 0.0, shuffle.permutation(train)
        for start in range(0, train - batch + 1, batch):
            chosen = places[start:start + batch]
            before = time.perf_counter()
            optimizer.zero_grad()
            loss = loss_of(model(autograd.from_numpy(images[chosen])), autograd.from_numpy(labels[chosen]))
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - before)
            total += loss.item()
        losses.append(total / (train // batch))
    with autograd.no_grad():
        guess = model.eval()(autograd.from_numpy(images[train:])).numpy().argmax(1)
    return (guess == labels[train:]).mean(), losses, 1000 * np.median(times)


print(f"\n{lenet()}\n")
runs = [trained(seed) for seed in range(3)]
for seed, (accuracy, losses, step) in enumerate(runs):
    print(f"seed {seed}: loss {losses[0]:.3f} -> {losses[-1]:.3f}, {accuracy:.1%} of {len(images) - train} test images right, "
          f"{step:.2f} ms a step")
assert np.median([accuracy for accuracy, _, _ in runs]) > 0.97

# --- 4. A transformer that sorts --------------------------------------------------------------------------------------
# It sees six digits and says which stands at each place when they are in order. Attention compares them all.
LENGTH, WIDTH = 6, 32


class Block(nn.Module):
    """Attention among the places, then a small network at each place."""

    def __init__(self):
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.mixed = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.inner = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        y = self.before(x)
        x = x + self.mixed(nn.functional.attention(self.query(y), self.key(y), self.value(y)))
        return x + self.inner(self.between(x))


class Sorter(nn.Module):
    def __init__(self):
        self.digits, self.places = nn.Embedding(10, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = [Block(), Block()]
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = self.digits(x) + self.places(autograd.from_numpy(np.arange(LENGTH)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


nn.manual_seed(0)
model, steps = Sorter(), 300
optimizer = optim.AdamW(model.parameters(), lr=3e-3)
schedule = optim.CosineAnnealingLR(optimizer, steps)
sorting = []
for _ in trange(steps, desc="sorting", leave=False, disable=None):
    x = rng.integers(0, 10, (64, LENGTH), dtype="int32")
    optimizer.zero_grad()
    scores = model(autograd.from_numpy(x))
    loss = nn.functional.cross_entropy(scores.transpose(0, 2, 1), autograd.from_numpy(np.sort(x, 1)))
    loss.backward()
    optimizer.step()
    schedule.step()
    sorting.append(loss.item())
x = rng.integers(0, 10, (512, LENGTH), dtype="int32")
with autograd.no_grad():
    guess = model(autograd.from_numpy(x)).numpy().argmax(2)
right = (guess == np.sort(x, 1)).all(1).mean()
print(f"\nA transformer of {sum(p.size for p in model.parameters())} parameters after {steps} steps: loss {sorting[-1]:.3f}, "
      f"{right:.1%} of 512 new rows sorted\n  {x[0].tolist()} -> {guess[0].tolist()}")
assert right > 0.95

# --- 5. Saved, and loaded again ---------------------------------------------------------------------------------------
model.save(out / "sorter.npz")
again = Sorter()
again.load(out / "sorter.npz")
with autograd.no_grad():
    np.testing.assert_array_equal(again(autograd.from_numpy(x)).numpy().argmax(2), guess)

figure = matplotlib.figure.Figure(figsize=(9, 3), layout="constrained")
left, right_side = figure.subplots(1, 2)
for seed, (_, losses, _) in enumerate(runs):
    left.semilogy(range(1, len(losses) + 1), losses, label=f"seed {seed}")
left.set(title="LeNet on digits", xlabel="epoch", ylabel="loss")
left.legend()
right_side.semilogy(sorting)
right_side.set(title="a transformer learns to sort", xlabel="step")
figure.savefig(out / "training.png", dpi=120)
print("\nThe curves are in tutorials/out/training.png, the parameters in tutorials/out/sorter.npz.")
