"""Six networks on a simulated processor and accelerator: what each method takes, and what the best gains over one device.

    python -m tests.graph.placement.table
"""

from tedsl.graph import placement
from tests.graph.placement.models import network

# An accelerator with three times the arithmetic of the processor and less bandwidth, as one that shares its memory has.
DEVICES = (placement.Simulated("cpu", flops=6e10, bandwidth=1.6e10, launch=1e-6, link_latency=1e-6, link_bandwidth=1e12),
           placement.Simulated("gpu", flops=1.8e11, bandwidth=1.1e10, launch=1.5e-5, link_latency=2e-5, link_bandwidth=1e10))
NAMES = ("alexnet", "vgg16", "resnet18", "squeezenet", "mobilenet_v2", "googlenet")
METHODS = ("single", "fastest", "critical_path", "moves", "heft", "optimal")


def makespans(name):
    """Milliseconds by method, and on the processor alone and the accelerator alone."""
    question = placement.profile(placement.split(network(name)), DEVICES).problem()
    found = {method: placement.place(question, method=method).makespan * 1e3 for method in METHODS}
    alone = [sum(row[at] for row in question.seconds) * 1e3 for at in range(2)]
    return {"cpu": alone[0], "gpu": alone[1], **found}


if __name__ == "__main__":
    print(f"{'':13}" + "".join(f"{method:>15}" for method in ("cpu", "gpu", *METHODS)) + "   gain over cpu, gpu")
    for name in NAMES:
        times = makespans(name)
        best = min(times.values())
        print(f"{name:13}" + "".join(f"{time:12.2f} ms" for time in times.values())
              + f"   {times['cpu'] / best - 1:8.0%} {times['gpu'] / best - 1:6.0%}")
