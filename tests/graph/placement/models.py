"""The networks of the papers and of torchvision as graphs. Weights have shapes and no memory: one element stands for all."""

import numpy as np

from tedsl import graph
from tedsl.graph import Spec, Value, ops


def weight(*shape):
    spec = Spec(shape)
    return Value("w", spec, data=np.broadcast_to(np.float32(0.01), shape))


def conv(x, out, kernel, stride=1, pad=None, act=True, groups=1, norm=False):
    """A convolution, a bias or a batch norm, an activation: a node each."""
    kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    padding = pad if pad is not None else (kh // 2, kw // 2, kh // 2, kw // 2)
    weights = weight(out, x.shape[1] // groups, kh, kw)
    y = ops.nn.conv2d(x, weights, stride, padding, 1) if groups == 1 else \
        ops.nn.depthwise_conv2d_nchw(x, weight(out, 1, kh, kw), stride, padding, 1)
    y = ops.nn.batch_norm(y, *[weight(out) for _ in range(4)])[0] if norm else ops.nn.bias_add(y, weight(out))
    return ops.nn.relu(y) if act else y


def pool(x, kernel, stride, pad=0, kind="max", ceil=False):
    return ops.nn.pool2d(x, (kernel, kernel), (stride, stride), (1, 1), (pad,) * 4, kind, ceil_mode=ceil)


def dense(x, out, act=False):
    y = ops.nn.bias_add(ops.nn.dense(x, weight(out, x.shape[1])), weight(out))
    return ops.nn.relu(y) if act else y


def features(x):
    return ops.nn.flatten(ops.nn.global_pool(x, "avg"))


def vgg(*plan):
    def network(x):
        for out in plan:
            x = conv(x, out, 3) if out else pool(x, 2, 2)
        return dense(dense(dense(ops.nn.flatten(x), 4096, True), 4096, True), 1000)

    return network


def alexnet(x):
    """With the two nodes that a dropout is, which pass values on, and the average pool of torchvision: 32 nodes."""
    x = pool(conv(x, 64, 11, 4, (2, 2, 2, 2)), 3, 2)
    x = pool(conv(x, 192, 5), 3, 2)
    for out in (384, 256, 256):
        x = conv(x, out, 3)
    x = ops.nn.flatten(ops.nn.adaptive_pool(pool(x, 3, 2), (6, 6), "avg"))
    for _ in range(2):
        x = dense(ops.identity(ops.identity(x)), 4096, True)
    return dense(x, 1000)


def resnet(*counts, bottleneck=False):
    def block(x, width, stride):
        out = width * 4 if bottleneck else width
        if bottleneck:
            y = conv(conv(conv(x, width, 1, norm=True), width, 3, stride, norm=True), out, 1, act=False, norm=True)
        else:
            y = conv(conv(x, width, 3, stride, norm=True), out, 3, act=False, norm=True)
        same = stride == 1 and x.shape[1] == out
        return ops.nn.relu(y + (x if same else conv(x, out, 1, stride, act=False, norm=True)))

    def network(x):
        x = pool(conv(x, 64, 7, 2, norm=True), 3, 2, 1)
        for stage, count in enumerate(counts):
            for number in range(count):
                x = block(x, 64 << stage, 2 if stage and not number else 1)
        return dense(features(x), 1000)

    return network


def squeezenet(x):
    x = pool(conv(x, 64, 3, 2, (0, 0, 0, 0)), 3, 2, ceil=True)
    for at, narrow in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        x = pool(x, 3, 2, ceil=True) if at in (2, 4) else x
        s = conv(x, narrow, 1)
        x = ops.concatenate([conv(s, narrow * 4, 1), conv(s, narrow * 4, 3)], 1)
    return features(conv(x, 1000, 1))


def mobilenet_v2(x):
    x = conv(x, 32, 3, 2, norm=True)
    for factor, out, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                       (6, 160, 3, 2), (6, 320, 1, 1)):
        for number in range(count):
            step, inner = stride if not number else 1, x.shape[1] * factor
            y = conv(x, inner, 1, norm=True) if factor > 1 else x
            y = conv(conv(y, inner, 3, step, groups=inner, norm=True), out, 1, act=False, norm=True)
            x = x + y if step == 1 and x.shape[1] == out else y
    return dense(features(conv(x, 1280, 1, norm=True)), 1000)


def googlenet(x):
    x = pool(conv(x, 64, 7, 2), 3, 2, ceil=True)
    x = pool(conv(conv(x, 64, 1), 192, 3), 3, 2, ceil=True)
    for plan in ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64),
                 (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
                 (256, 160, 320, 32, 128, 128), None, (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)):
        if plan is None:
            x = pool(x, 3, 2, ceil=True)
            continue
        one, three_in, three, five_in, five, pooled = plan
        x = ops.concatenate([conv(x, one, 1), conv(conv(x, three_in, 1), three, 3), conv(conv(x, five_in, 1), five, 5),
                             conv(pool(x, 3, 1, 1), pooled, 1)], 1)
    return dense(features(x), 1000)


def inception_v3(x):
    chain = lambda x, *steps: [x := conv(x, out, kernel, norm=True) for out, kernel in steps][-1]
    average = lambda x, out: conv(pool(x, 3, 1, 1, "avg"), out, 1, norm=True)
    none = (0, 0, 0, 0)
    x = conv(conv(conv(x, 32, 3, 2, none, norm=True), 32, 3, 1, none, norm=True), 64, 3, norm=True)
    x = pool(conv(conv(pool(x, 3, 2), 80, 1, norm=True), 192, 3, 1, none, norm=True), 3, 2)
    for out in (32, 64, 64):
        x = ops.concatenate([chain(x, (64, 1)), chain(x, (48, 1), (64, 5)), chain(x, (64, 1), (96, 3), (96, 3)),
                             average(x, out)], 1)
    x = ops.concatenate([conv(x, 384, 3, 2, none, norm=True), conv(chain(x, (64, 1), (96, 3)), 96, 3, 2, none, norm=True),
                         pool(x, 3, 2)], 1)
    for wide in (128, 160, 160, 192):
        x = ops.concatenate([chain(x, (192, 1)), chain(x, (wide, 1), (wide, (1, 7)), (192, (7, 1))),
                             chain(x, (wide, 1), (wide, (7, 1)), (wide, (1, 7)), (wide, (7, 1)), (192, (1, 7))),
                             average(x, 192)], 1)
    x = ops.concatenate([conv(chain(x, (192, 1)), 320, 3, 2, none, norm=True),
                         conv(chain(x, (192, 1), (192, (1, 7)), (192, (7, 1))), 192, 3, 2, none, norm=True), pool(x, 3, 2)], 1)
    for _ in range(2):
        narrow, wide = chain(x, (384, 1)), chain(x, (448, 1), (384, 3))
        pairs = [conv(of, 384, kernel, norm=True) for of in (narrow, wide) for kernel in ((1, 3), (3, 1))]
        x = ops.concatenate([chain(x, (320, 1)), ops.concatenate(pairs[:2], 1), ops.concatenate(pairs[2:], 1),
                             average(x, 192)], 1)
    return dense(features(x), 1000)


NETWORKS = {
    "vgg11": vgg(64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0),
    "vgg16": vgg(64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0),
    "alexnet": alexnet, "resnet18": resnet(2, 2, 2, 2), "resnet34": resnet(3, 4, 6, 3),
    "resnet50": resnet(3, 4, 6, 3, bottleneck=True), "resnet101": resnet(3, 4, 23, 3, bottleneck=True),
    "resnet152": resnet(3, 8, 36, 3, bottleneck=True), "squeezenet": squeezenet, "mobilenet_v2": mobilenet_v2,
    "googlenet": googlenet, "inception_v3": inception_v3,
}


def network(name):
    size = 299 if name == "inception_v3" else 224
    return graph.trace(NETWORKS[name], Spec((1, 3, size, size)), name=name)
