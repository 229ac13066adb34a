"""Ten networks as models of ONNX, with random weights from a seed and statistics that keep values of order 1.

    python -m tests.graph.onnx.networks [--size 224] [--only resnet18 ...] [--compiled]

compares each with onnxruntime. size: of the images; the networks are those of the papers and of torchvision.
"""

import argparse
import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Builder:
    """A model that grows node by node. Values are names; `channels` and `sizes` say what is known of them."""

    def __init__(self, name, seed=0):
        self.name, self.random = name, np.random.default_rng(seed)
        self.nodes, self.stored, self.channels, self.sizes = [], [], {}, {}

    def node(self, operator, *inputs, outputs=1, **attributes):
        names = [f"{operator.lower()}_{len(self.nodes)}" + (f"_{at}" if at else "") for at in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, names[0], **attributes))
        self.channels[names[0]], self.sizes[names[0]] = self.channels.get(inputs[0]), self.sizes.get(inputs[0])
        return names[0]

    def constant(self, array):
        name = f"w{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, *shape, fan_in):
        return self.constant(self.random.standard_normal(shape, "float32") * np.float32((2 / fan_in) ** 0.5))

    def conv(self, x, out, kernel, stride=1, pad=None, groups=1, norm=True, act="Relu"):
        """A convolution, then batch normalization (or a bias), then an activation."""
        kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        ph, pw = pad if isinstance(pad, tuple) else (pad, pad) if pad is not None else (kh // 2, kw // 2)
        per_group = self.channels[x] // groups
        inputs = [x, self.weights(out, per_group, kh, kw, fan_in=per_group * kh * kw)]
        if not norm:
            inputs.append(self.constant(self.random.standard_normal(out, "float32") * np.float32(0.1)))
        y = self.node("Conv", *inputs, kernel_shape=[kh, kw], strides=[stride] * 2, pads=[ph, pw, ph, pw], group=groups,
                      dilations=[1, 1])
        self.channels[y], size = out, self.sizes[x]
        self.sizes[y] = ((size[0] + 2 * ph - kh) // stride + 1, (size[1] + 2 * pw - kw) // stride + 1)
        y = self.norm(y) if norm else y
        return self.activation(y, act)

    def norm(self, x):
        limits = ((0.6, 1.1), (-0.2, 0.2), (-0.2, 0.2), (0.8, 1.4))  # of scale, bias, mean, variance
        numbers = [self.constant(self.random.uniform(*near, self.channels[x]).astype("float32")) for near in limits]
        return self.node("BatchNormalization", x, *numbers, epsilon=1e-5)

    def activation(self, x, act):
        if act == "Relu6":
            return self.node("Clip", x, self.constant(np.float32(0)), self.constant(np.float32(6)))
        return self.node(act, x) if act else x

    def pool(self, x, kind, kernel, stride, pad=0, ceil=0):
        y = self.node(kind, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, ceil_mode=ceil)
        room = 2 * pad - kernel + (stride - 1 if ceil else 0)
        self.sizes[y] = tuple((extent + room) // stride + 1 for extent in self.sizes[x])
        return y

    def concat(self, *values):
        y = self.node("Concat", *values, axis=1)
        self.channels[y] = sum(self.channels[value] for value in values)
        return y

    def flat(self, x):
        """The features of each image in a row, with the shape computed as exporters write it."""
        batch = self.node("Unsqueeze", self.node("Gather", self.node("Shape", x), self.constant(np.int64(0)), axis=0),
                          self.constant(np.array([0])))
        y = self.node("Reshape", x, self.node("Concat", batch, self.constant(np.array([-1])), axis=0))
        self.channels[y] = self.channels[x] * self.sizes[x][0] * self.sizes[x][1]
        return y

    def features(self, x):
        y = self.node("Flatten", self.node("GlobalAveragePool", x), axis=1)
        self.channels[y] = self.channels[x]
        return y

    def dense(self, x, out, act=""):
        fan_in = self.channels[x]
        bias = self.constant(self.random.standard_normal(out, "float32") * np.float32(0.1))
        y = self.node("Gemm", x, self.weights(out, fan_in, fan_in=fan_in), bias, transB=1)
        self.channels[y] = out
        return self.activation(y, act)

    def images(self, size):
        self.channels["x"], self.sizes["x"] = 3, (size, size)
        return "x"

    def model(self, y, inputs, opset=17):
        given = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
        result = helper.make_tensor_value_info(y, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, given, [result], self.stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def resnet(name, counts, bottleneck, size):
    b = Builder(name)
    x = b.pool(b.conv(b.images(size), 64, 7, 2), "MaxPool", 3, 2, 1)
    for stage, count in enumerate(counts):
        width = 64 * 2 ** stage
        for block in range(count):
            x = residual(b, x, width, 2 if stage and not block else 1, bottleneck)
    return b, b.dense(b.features(x), 1000)


def residual(b, x, width, stride, bottleneck):
    out = width * 4 if bottleneck else width
    if bottleneck:
        y = b.conv(b.conv(b.conv(x, width, 1), width, 3, stride), out, 1, act="")
    else:
        y = b.conv(b.conv(x, width, 3, stride), out, 3, act="")
    short = x if stride == 1 and b.channels[x] == out else b.conv(x, out, 1, stride, act="")
    return b.node("Relu", b.node("Add", y, short))


def mobilenet_v2(size):
    b = Builder("mobilenet_v2")
    x = b.conv(b.images(size), 32, 3, 2, act="Relu6")
    for factor, out, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                       (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(count):
            step, inner = stride if not block else 1, b.channels[x] * factor
            y = b.conv(x, inner, 1, act="Relu6") if factor > 1 else x
            y = b.conv(b.conv(y, inner, 3, step, groups=inner, act="Relu6"), out, 1, act="")
            x = b.node("Add", x, y) if step == 1 and b.channels[x] == out else y
            b.channels[x] = out
    return b, b.dense(b.node("Dropout", b.features(b.conv(x, 1280, 1, act="Relu6"))), 1000)


def squeezenet(size):
    b = Builder("squeezenet")
    x = b.pool(b.conv(b.images(size), 64, 3, 2, 0, norm=False), "MaxPool", 3, 2, ceil=1)
    for at, squeezed in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        wide = squeezed * 4
        x = b.pool(x, "MaxPool", 3, 2, ceil=1) if at in (2, 4) else x
        s = b.conv(x, squeezed, 1, norm=False)
        x = b.concat(b.conv(s, wide, 1, norm=False), b.conv(s, wide, 3, norm=False))
    y = b.conv(b.node("Dropout", x), 1000, 1, norm=False)
    return b, b.node("Flatten", b.node("GlobalAveragePool", y), axis=1)


def vgg(name, plan, size):
    b = Builder(name)
    x = b.images(size)
    for out in plan:
        x = b.conv(x, out, 3, norm=False) if out else b.pool(x, "MaxPool", 2, 2)
    x = b.dense(b.dense(b.flat(x), 4096, "Relu"), 4096, "Relu")
    return b, b.dense(x, 1000)


def alexnet(size):
    b = Builder("alexnet")
    x = b.pool(b.conv(b.images(size), 64, 11, 4, 2, norm=False), "MaxPool", 3, 2)
    x = b.pool(b.conv(x, 192, 5, norm=False), "MaxPool", 3, 2)
    for out in (384, 256, 256):
        x = b.conv(x, out, 3, norm=False)
    x = b.flat(b.pool(x, "MaxPool", 3, 2) if min(b.sizes[x]) >= 3 else x)
    return b, b.dense(b.dense(b.dense(x, 4096, "Relu"), 4096, "Relu"), 1000)


def googlenet(size):
    b = Builder("googlenet")
    x = b.pool(b.conv(b.images(size), 64, 7, 2, norm=False), "MaxPool", 3, 2, ceil=1)
    x = b.node("LRN", x, size=5, alpha=1e-4, beta=0.75, bias=1.0)
    x = b.conv(b.conv(x, 64, 1, norm=False), 192, 3, norm=False)
    x = b.pool(b.node("LRN", x, size=5, alpha=1e-4, beta=0.75, bias=1.0), "MaxPool", 3, 2, ceil=1)
    for plan in ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64),
                 (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
                 (256, 160, 320, 32, 128, 128), None, (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)):
        if plan is None:
            x = b.pool(x, "MaxPool", 3, 2, ceil=1)
            continue
        one, three_in, three, five_in, five, pooled = plan
        x = b.concat(b.conv(x, one, 1), b.conv(b.conv(x, three_in, 1), three, 3), b.conv(b.conv(x, five_in, 1), five, 5),
                     b.conv(b.pool(x, "MaxPool", 3, 1, 1), pooled, 1))
    return b, b.dense(b.node("Dropout", b.features(x)), 1000)


def inception_v3(size):
    b = Builder("inception_v3")
    x = b.conv(b.conv(b.conv(b.images(size), 32, 3, 2, 0), 32, 3, pad=0), 64, 3)
    x = b.pool(b.conv(b.conv(b.pool(x, "MaxPool", 3, 2), 80, 1), 192, 3, pad=0), "MaxPool", 3, 2)

    def average(x, out):
        return b.conv(b.pool(x, "AveragePool", 3, 1, 1), out, 1)

    def chain(x, *steps):
        for out, kernel in steps:
            x = b.conv(x, out, kernel)
        return x

    for pooled in (32, 64, 64):
        x = b.concat(chain(x, (64, 1)), chain(x, (48, 1), (64, 5)), chain(x, (64, 1), (96, 3), (96, 3)), average(x, pooled))
    x = b.concat(b.conv(x, 384, 3, 2, 0), b.conv(chain(x, (64, 1), (96, 3)), 96, 3, 2, 0), b.pool(x, "MaxPool", 3, 2))
    for c in (128, 160, 160, 192):
        row, column = (1, 7), (7, 1)
        x = b.concat(chain(x, (192, 1)), chain(x, (c, 1), (c, row), (192, column)),
                     chain(x, (c, 1), (c, column), (c, row), (c, column), (192, row)), average(x, 192))
    narrow, wide = chain(x, (192, 1)), chain(x, (192, 1), (192, (1, 7)), (192, (7, 1)))
    x = b.concat(b.conv(narrow, 320, 3, 2, 0), b.conv(wide, 192, 3, 2, 0), b.pool(x, "MaxPool", 3, 2))
    for _ in range(2):
        a, c = chain(x, (384, 1)), chain(x, (448, 1), (384, 3))
        x = b.concat(chain(x, (320, 1)), chain(a, (384, (1, 3))), chain(a, (384, (3, 1))), chain(c, (384, (1, 3))),
                     chain(c, (384, (3, 1))), average(x, 192))
    return b, b.dense(b.node("Dropout", b.features(x)), 1000)


def bert(layers=2, hidden=128, heads=4, words=1000, length=64):
    """An encoder as exporters write it: shapes computed from the input, the mask as large negative numbers, erf."""
    b = Builder("bert")

    def table(rows):
        return b.constant(b.random.standard_normal((rows, hidden), "float32") * np.float32(0.5))

    def linear(x, before, out):
        bias = b.constant(b.random.standard_normal(out, "float32") * np.float32(0.1))
        weights = b.constant(b.random.standard_normal((before, out), "float32") * np.float32(before ** -0.5))
        return b.node("Add", b.node("MatMul", x, weights), bias)

    def norm(x):
        scale, shift = [b.constant(b.random.uniform(*near, hidden).astype("float32")) for near in ((0.8, 1.2), (-0.1, 0.1))]
        return b.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    shape = b.node("Shape", "ids")
    extents = [b.node("Unsqueeze", b.node("Gather", shape, b.constant(np.int64(at))), b.constant(np.array([0])))
               for at in (0, 1)]
    split = b.node("Concat", *extents, b.constant(np.array([heads, hidden // heads])), axis=0)
    joined = b.node("Concat", *extents, b.constant(np.array([hidden])), axis=0)
    places = b.node("Slice", b.constant(np.arange(512).reshape(1, 512)), b.constant(np.array([0])), extents[1],
                    b.constant(np.array([1])))
    x = norm(b.node("Add", b.node("Gather", table(words), "ids"), b.node("Gather", table(512), places)))
    mask = b.node("Cast", b.node("Unsqueeze", "mask", b.constant(np.array([1, 2]))), to=TensorProto.FLOAT)
    mask = b.node("Mul", b.node("Sub", b.constant(np.float32(1)), mask), b.constant(np.float32(-1e4)))
    for _ in range(layers):
        q, k, v = [b.node("Transpose", b.node("Reshape", linear(x, hidden, hidden), split), perm=perm)
                   for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
        scores = b.node("Div", b.node("MatMul", q, k), b.constant(np.float32((hidden // heads) ** 0.5)))
        found = b.node("MatMul", b.node("Softmax", b.node("Add", scores, mask), axis=-1), v)
        found = b.node("Reshape", b.node("Transpose", found, perm=[0, 2, 1, 3]), joined)
        x = norm(b.node("Add", linear(found, hidden, hidden), x))
        h = linear(x, hidden, 4 * hidden)
        erf = b.node("Erf", b.node("Div", h, b.constant(np.float32(2 ** 0.5))))
        h = b.node("Mul", b.node("Mul", h, b.node("Add", erf, b.constant(np.float32(1)))), b.constant(np.float32(0.5)))
        x = norm(b.node("Add", linear(h, 4 * hidden, hidden), x))
    inputs = {"ids": (TensorProto.INT64, ["batch", length]), "mask": (TensorProto.INT64, ["batch", length])}
    feeds = [b.random.integers(0, words, (1, length)), (np.arange(length) < length - 9).astype("int64").reshape(1, -1)]
    return b.model(x, inputs), feeds


_VGG11 = (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)
_VGG16 = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
OF_IMAGES = {
    "resnet18": lambda size: resnet("resnet18", (2, 2, 2, 2), False, size),
    "resnet50": lambda size: resnet("resnet50", (3, 4, 6, 3), True, size),
    "mobilenet_v2": mobilenet_v2, "squeezenet": squeezenet, "vgg11": lambda size: vgg("vgg11", _VGG11, size),
    "vgg16": lambda size: vgg("vgg16", _VGG16, size), "alexnet": alexnet, "googlenet": googlenet, "inception_v3": inception_v3,
}
NAMES = (*OF_IMAGES, "bert")


def network(name, size=224):
    """A model by its name, with a symbolic batch, and arrays to run it on."""
    if name == "bert":
        return bert()
    size = {"inception_v3": size * 299 // 224 + 2}.get(name, size)
    b, y = OF_IMAGES[name](size)
    proto = b.model(y, {"x": (TensorProto.FLOAT, ["batch", 3, size, size])})
    return proto, [b.random.standard_normal((1, 3, size, size), "float32")]


def expected(proto, arrays):
    """What onnxruntime computes, with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([one.name for one in proto.graph.input], arrays)))[0]


def difference(ours, theirs):
    """The largest difference, relative to the largest value."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def main():
    from tedsl import graph

    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--only", nargs="*", default=NAMES)
    parser.add_argument("--compiled", action="store_true")
    given = parser.parse_args()
    for name in given.only:
        begin = time.time()
        proto, arrays = network(name, given.size)
        g = graph.from_onnx(proto, {"batch": 1})
        imported = time.time()
        result = graph.compile(g)(*arrays) if given.compiled else graph.evaluate(g, *arrays)
        ours = result[0] if isinstance(result, (tuple, list)) else result
        theirs = expected(proto, arrays)
        print(f"{name:14} {len(g.nodes):4} nodes, read in {imported - begin:5.1f} s, run in {time.time() - imported:5.1f} s, "
              f"difference {difference(ours, theirs):.1e}, values of {np.abs(theirs).mean():.2g}", flush=True)


if __name__ == "__main__":
    main()
