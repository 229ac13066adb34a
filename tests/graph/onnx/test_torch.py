"""Models that torch exports."""

import io
import warnings

import numpy as np
import pytest

pytest.importorskip("onnx", reason="models of ONNX need the extra: pip install 'tedsl[onnx]'")
torch = pytest.importorskip("torch", reason="exported models are compared with torch: pip install torch")

from tedsl import graph


class Encoder(torch.nn.Module):
    """A convolution whose pixels are the words of an encoder, with a dropout and a normalization that are not in training."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        y = torch.nn.functional.hardswish(self.norm(self.conv(x)))
        y = torch.nn.functional.interpolate(y, scale_factor=2, mode="bilinear")[:, :, ::3, 1:-1]
        return self.encoder(y.flatten(2).transpose(1, 2)).mean(1), y.amax((2, 3))


@pytest.mark.parametrize("training", [False, True])
def test_an_exported_module_gives_what_torch_gives(training):
    torch.manual_seed(0)
    module, x, file = Encoder().eval(), torch.randn(2, 3, 6, 6), io.BytesIO()
    kept = torch.onnx.TrainingMode.PRESERVE if training else torch.onnx.TrainingMode.EVAL
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, (x,), file, dynamo=False, opset_version=17, training=kept,
                              do_constant_folding=not training, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    except Exception as error:
        pytest.skip(f"this version of torch does not export without further packages: {error}")
    g = graph.from_onnx(file.getvalue())
    assert str(g.inputs[0].spec) == "float32[batch, 3, 6, 6]"
    if training:
        assert "nn.batch_norm" in {node.operator for node in g.nodes}
    with torch.no_grad():
        for ours, theirs in zip(graph.evaluate(g, x.numpy()), module(x)):
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-5)
