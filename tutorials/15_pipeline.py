"""A pipeline of actors: each acts when its inputs are there and its outputs have a free register.

Run it: `python tutorials/15_pipeline.py`. It shows what registers do under a clock that can be calculated, then trains a small
network while the next batches are made.

The design is that of OneFlow's runtime: Yuan et al., OneFlow: Redesign the Distributed Deep Learning Framework from Scratch
(2021).
"""

import time
from pathlib import Path

import numpy as np

import tedsl
from tedsl import autograd, nn, optim
from tedsl.actors import Pipeline, Runtime, Spec, simulate

out = Path(__file__).parent / "out"
out.mkdir(exist_ok=True)


# --- 1. Four tasks, two registers between each -------------------------------------------------------------------------
def four_tasks(count):
    """A chain of tasks that do nothing; `count` registers between each two."""
    p = Pipeline("four")
    batch = p.source("loading", None, Spec((1,)), count=count)
    batch = p.task("preparing", None, [batch], Spec((1,)), count=count)
    batch = p.task("copying", None, [batch], Spec((1,)), count=count)
    p.sink("training", None, [batch])
    return p.plan()


print(f"{four_tasks(2)}\n")

# A clock that nobody has to wait for: training takes 4, the others 1 each.
seconds = {"loading": 1, "preparing": 1, "copying": 1, "training": 4}
run = simulate(four_tasks(2), seconds, batches=12)
for task in seconds:
    row = [" "] * 48
    for span in run.of(task):
        row[int(span.begin):int(span.end)] = [str((span.number + 1) % 10)] * int(span.end - span.begin)
    print(f"{task:>10} {''.join(row)}")
# While batch 3 is trained the copy of batch 4 is made; loading is at batch 8 and waits: no scheduler tells it to, it has no
# register that is free.
assert [(span.begin, span.end) for span in run.of("training")][2] == (11, 15)

# --- 2. How many registers? --------------------------------------------------------------------------------------------
# With one register, a task and the next one take turns; with two, one fills while the other reads. The time from batch to batch
# is the longest of t[i] and (t[i] + t[i + 1]) / count.
print("\nregisters  time between two batches")
for count in (1, 2, 3):
    period = simulate(four_tasks(count), seconds, batches=40).period("training")
    print(f"{count:9}  {period:g}")
    assert period == max(4, 5 / count)

# --- 3. The same with threads ------------------------------------------------------------------------------------------
def sleeping(milliseconds):
    return lambda *arrays: time.sleep(milliseconds / 1000)


p = Pipeline("asleep")
batch = p.source("loading", sleeping(4), Spec((1,)))
batch = p.task("preparing", sleeping(12), [batch], Spec((1,)), count=1)
p.sink("training", sleeping(8), [batch])
report = Runtime(p.plan()).run(batches=40)
print(f"\n{report}")
assert report.bottleneck == "preparing" and "preparing" in report.more_registers()
(out / "pipeline.html").write_text(report._repr_html_())
report.timeline(str(out / "pipeline.json"))

# --- 4. Training while batches are made --------------------------------------------------------------------------------
# Pictures of noise with a bright square in one of four corners. Making them and training go on side by side; the gradient of a
# batch of 64 is the sum of those of four pieces of 16.
rng = np.random.default_rng(0)
nn.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 6 * 6, 4))
optimizer = optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
loss_of, losses = nn.CrossEntropyLoss(), []


def make(images, labels):
    labels[...] = rng.integers(0, 4, len(labels))
    images[...] = rng.random(images.shape) - 0.5
    for image, corner in zip(images[:, 0], labels):
        top, left = 6 * (corner // 2) + 1, 6 * (corner % 2) + 1
        image[top:top + 4, left:left + 4] += 0.5


def learn(images, labels, loss):
    value = loss_of(model(autograd.from_numpy(images.copy())), autograd.from_numpy(labels.copy())) / 4
    value.backward()  # adds to the gradients of the pieces before
    loss[...] = value.item()


def step(loss):
    optimizer.step()
    optimizer.zero_grad()
    losses.append(float(loss[0]))


p = Pipeline("train")
data = p.source("make", make, [Spec((64, 1, 12, 12)), Spec((64,), "int64")])
learned = p.task("learn", learn, [p.unpack("pieces", data, 4)], Spec((1,)))
p.sink("step", step, [p.acc("total", learned, 4)])
p.after("learn", "step", previous=True, steps=4)  # a piece of the next batch is for the changed model
plan = p.plan()
report = Runtime(plan).run(batches=60)
print(f"\n{plan!r}\n\n{report}\n\nloss {losses[0]:.3f} -> {np.mean(losses[-10:]):.3f} after {len(losses)} batches")
assert np.mean(losses[-10:]) < 0.3 < losses[0]

# --- 5. What would stall is refused ------------------------------------------------------------------------------------
p = Pipeline("diamond")
batch = p.source("load", None, Spec((1,)), count=1)
whole = p.pack("whole", batch, 4)
p.sink("end", None, [p.task("piece", None, [batch], Spec((1,)), count=1), p.unpack("again", whole, 4)])
try:
    p.plan()
except tedsl.errors.PlanError as refusal:
    print(f"\n{refusal}")
print("\nThe time line is in tutorials/out/pipeline.html, and for Perfetto in tutorials/out/pipeline.json.")
