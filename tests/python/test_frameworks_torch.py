"""check_torch and from_torch with a real PyTorch: exports, golden by name, what is left as it was, and errors."""
import contextlib
import copy
import dataclasses
import io
import os
import sys
import tempfile
import unittest

import numpy as np
import torch
from onnxscript import FLOAT, opset18 as op, script
from torch import nn

import assay
import page_blocks

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/frameworks"))
import torch_models  # noqa: E402


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(2)])
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(8, 4)
        torch_models.spread(self)

    def forward(self, image, scale=1.0):
        x = self.stem(image).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = x + block(x)
        return {"logits": self.head(self.drop(x)) * scale, "features": (x,)}


class Counting(nn.Module):
    """Writes into its buffer and into what it is given."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x.mul_(2) + self.calls


class ExportsWrong(nn.Module):
    """Does something else where it is exported, as code written for one exporter does."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        x = self.first(x)
        x = x * 1.5 if torch.onnx.is_in_onnx_export() else x.sigmoid()
        return self.second(x)


class Branches(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x * 3


def seeded(make):
    torch.manual_seed(0)
    return make()


class TestTorch(unittest.TestCase):
    def test_both_exporters(self):
        model, image = seeded(lambda: (ConvNet(), torch.randn(2, 3, 8, 8)))
        state, random = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
        model.blocks[0].eval()
        for exporter, known in (("dynamo", {"relu", "gelu", "gelu_1", "add"}),
                                ("torchscript", {"/stem/stem.0/Conv_output_0", "/stem/stem.2/Relu_output_0", "/blocks.0/blocks.0.1/Gelu_output_0"})):
            result = assay.check_torch(model, image, exporter=exporter, precision="bf16")
            self.assertTrue(result.faithful and result.export_faithful and result.engine_faithful, result.text)
            self.assertLessEqual(known, set(result.export.inner[0]))
            self.assertEqual(len(result.check.outputs), 2)
            self.assertIn("export  faithful", result.text)
            self.assertTrue(all(output.golden_snr_db > 100 for output in result.check.outputs))
            expected = copy.deepcopy(model).eval()(image)["logits"].detach().numpy()
            np.testing.assert_allclose(result.model.run(result.export.inputs[0])[0], expected, rtol=1e-4, atol=1e-5)
            with tempfile.TemporaryDirectory() as folder:
                result.export.save(folder + "/m.onnx")
                with open(folder + "/m.onnx", "rb") as file:
                    self.assertEqual(file.read(), result.onnx_bytes)
        self.assertTrue(model.training and model.stem.training and not model.blocks[0].training)
        self.assertTrue(all(torch.equal(v, state[k]) for k, v in model.state_dict().items()))
        self.assertTrue(torch.equal(torch.get_rng_state(), random))
        self.assertFalse(any(layer._forward_hooks for layer in model.modules()))
        self.assertTrue(all(p.requires_grad and p.grad is None for p in model.parameters()))

    def test_keywords_and_numbers(self):
        model, image = seeded(lambda: (ConvNet(), torch.randn(1, 3, 4, 4)))
        for exporter in ("dynamo", "torchscript"):
            result = assay.check_torch(model, {"scale": 2.0, "image": image}, exporter=exporter, inner=False)
            self.assertTrue(result.faithful, result.text)
            plain = assay.from_torch(model, (image,), exporter=exporter)
            inputs = {i.name: v for i, v in zip(plain.inputs, [image.numpy(), np.float64(1)])}
            np.testing.assert_allclose(plain.run(inputs)[0] * 2, result.export.outputs[0][result.check.outputs[0].name], rtol=1e-4, atol=1e-5)

    def test_classes_that_exporters_do_not_know(self):
        @dataclasses.dataclass
        class Out:
            twice: torch.Tensor
            text: str
            parts: list

        class Gives(nn.Module):
            def forward(self, x):
                return Out(x * 2, "text", [x + 1, None, x.sum()])

        for exporter in ("dynamo", "torchscript"):
            model = Gives()
            result = assay.check_torch(model, torch.arange(6.0).reshape(2, 3), exporter=exporter)
            self.assertTrue(result.faithful, result.text)
            self.assertEqual([array.shape for array in result.export.outputs[0].values()], [(2, 3), (2, 3), ()])
            self.assertNotIn("forward", model.__dict__)

    def test_an_export_that_differs_is_blamed(self):
        model, x = seeded(lambda: (ExportsWrong(), torch.randn(5, 8)))
        for exporter in ("dynamo", "torchscript"):
            result = assay.check_torch(model, x, exporter=exporter)
            self.assertFalse(result.export_faithful, exporter)
            self.assertTrue(result.engine_faithful)
            self.assertEqual(result.check.blame, "export")
            self.assertIn(result.check.faults[0].op, ("Mul", "Sigmoid", "MatMul", "Gemm"))
            self.assertIn("export  UNFAITHFUL", result.text)

    def test_a_precision_that_is_too_small_is_not_the_export(self):
        class Big(nn.Module):
            def forward(self, x):
                return (x * 1e4).square().sum(-1).sqrt()

        result = assay.check_torch(Big(), torch.rand(4, 8) + 1, precision="fp16", exporter="torchscript")
        self.assertTrue(result.export_faithful)
        self.assertFalse(result.engine_faithful or result.faithful)
        self.assertEqual(result.check.blame, "precision")

    def test_branches(self):
        with self.assertRaises(assay.ExportError) as error:
            assay.check_torch(Branches(), torch.ones(3), exporter="dynamo")
        self.assertIn("depends on the numbers", str(error.exception))
        self.assertIn("return x * 2 if x.sum() > 0", str(error.exception))
        self.assertLess(len(str(error.exception)), 900)
        self.assertTrue(assay.check_torch(Branches(), torch.ones(3), exporter="torchscript").faithful)
        two = assay.check_torch(Branches(), [torch.ones(3), -torch.ones(3)], exporter="torchscript")
        self.assertFalse(two.export_faithful)  # the second sample takes the other branch

    def test_samples_of_several_sizes(self):
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        samples = [torch.randn(3, 4), torch.randn(5, 4)]
        result = assay.check_torch(model, samples, dynamic_shapes=({0: torch.export.Dim("N")},), exporter="dynamo")
        self.assertTrue(result.faithful, result.text)
        self.assertEqual([next(iter(out.values())).shape for out in result.export.outputs], [(3, 2), (5, 2)])
        self.assertIsInstance(result.model.inputs[0].shape[0], (str, type(None)))
        result = assay.check_torch(model, samples, dynamic_shapes={"input": {0: "N"}}, exporter="torchscript")
        self.assertTrue(result.faithful, result.text)

    def test_what_a_module_writes_is_put_back(self):
        model, x = Counting(), torch.ones(3)
        result = assay.check_torch(model, [x, x + 1], exporter="torchscript")
        self.assertEqual((float(model.calls), x.tolist()), (0, [1, 1, 1]))
        self.assertEqual([next(iter(out.values())).tolist() for out in result.export.outputs], [[3, 3, 3], [5, 5, 5]])

    def test_functions_types_and_arrays(self):
        result = assay.check_torch(lambda a, b: (a @ b, a.sum(0)), (np.ones((2, 3), np.float32), torch.ones(3, 2)), exporter="torchscript")
        self.assertTrue(result.faithful, result.text)
        halves = nn.Linear(4, 4).bfloat16()
        result = assay.check_torch(halves, torch.ones(2, 4, dtype=torch.bfloat16), exporter="torchscript")
        self.assertEqual(next(iter(result.export.outputs[0].values())).dtype.name, "bfloat16")
        self.assertTrue(result.faithful, result.text)

    def test_errors(self):
        model = nn.Linear(4, 2)
        rows = [((model, {"y": torch.ones(1, 4)}), {}, "do not fit Linear.forward"), ((model, []), {}, "empty list"),
                ((model, torch.ones(1, 4)), {"exporter": "tracing"}, "dynamo, torchscript"), ((3, torch.ones(1)), {}, "pass a torch.nn.Module"),
                ((lambda x: 3, torch.ones(1)), {}, "gives no tensors")]
        for arguments, options, text in rows:
            with self.assertRaises(assay.InvalidArgument) as error:
                assay.check_torch(*arguments, **options)
            self.assertIn(text, str(error.exception))
        with self.assertRaises(assay.ExportError):
            assay.check_torch(torch_models.Complex(), torch.randn(1, 128), exporter="torchscript")

    def test_models_of_many_kinds(self):
        """One of each exporter; all of them are in bench/frameworks, with ASSAY_FULL here as well."""
        chosen = {"detection head with suppression": "torchscript", "GPT step with keys and values": "dynamo"}
        for name, make in torch_models.MODELS:
            if name in chosen or os.environ.get("ASSAY_FULL"):
                model, inputs = seeded(make)
                result = assay.check_torch(model, inputs, exporter=chosen.get(name, "dynamo"))
                self.assertTrue(result.faithful, name + "\n" + result.text)


class TestOnnxScript(unittest.TestCase):
    def test_function(self):
        @script(default_opset=op)
        def softplus(x: FLOAT["N", 4]) -> FLOAT["N", 4]:  # noqa: F821
            return op.Log(op.Exp(x) + 1.0)

        model = assay.from_onnxscript(softplus)
        x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
        np.testing.assert_allclose(model.run([x])[0], np.log1p(np.exp(x)), rtol=1e-5)
        with self.assertRaises(assay.InvalidArgument) as error:
            assay.from_onnxscript(lambda x: x)
        self.assertIn("onnxscript.script()", str(error.exception))


class TestPage(unittest.TestCase):
    def test_blocks(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(page_blocks.run_section("frameworks.md", "PyTorch"), 3)
        self.assertIn("Branching cannot be exported (dynamo)", printed.getvalue())
        self.assertEqual(page_blocks.run_section("frameworks.md", "ONNX Script"), 1)


if __name__ == "__main__":
    unittest.main()
