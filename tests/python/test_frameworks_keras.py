"""check_keras and from_keras with a real TensorFlow; only in full runs, since its environment takes 1.3 GB."""
import os
import sys
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

import assay
import page_blocks

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/frameworks"))
import keras_models  # noqa: E402


@keras.saving.register_keras_serializable()
class ExportsWrong(L.Layer):
    """Does something else in a graph, as code written for training does."""

    def call(self, x):
        return tf.nn.sigmoid(x) if tf.executing_eagerly() else tf.nn.tanh(x)


class TestKeras(unittest.TestCase):
    def setUp(self):
        keras.utils.set_random_seed(1)

    def test_models(self):
        for name, make in keras_models.MODELS:
            with self.subTest(name):
                model, inputs = make()
                before = [np.array(v) for v in model.variables]
                result = assay.check_keras(model, inputs, precision="bf16")
                self.assertTrue(result.export_faithful and result.engine_faithful, result.text)
                self.assertTrue(result.export.inner[0])
                self.assertTrue(all(np.array_equal(v, w) for v, w in zip(model.variables, before)))
                self.assertFalse(any("call" in layer.__dict__ for layer in model._flatten_layers()))

    def test_an_export_that_differs_is_blamed(self):
        model = keras.Sequential([keras.Input((8,)), L.Dense(8), ExportsWrong(), L.Dense(3)])
        result = assay.check_keras(model, keras_models.floats(4, 8))
        self.assertFalse(result.export_faithful)
        self.assertTrue(result.engine_faithful)
        self.assertEqual((result.check.blame, result.check.faults[0].op), ("export", "Tanh"))

    def test_inputs(self):
        a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b")
        model = keras.Model([a, b], L.Concatenate()([L.Dense(5)(a), b]))
        x, y = keras_models.floats(2, 4), keras_models.floats(2, 3)
        self.assertTrue(assay.check_keras(model, (x, y)).faithful)
        self.assertTrue(assay.check_keras(model, {"b": y, "a": x}).faithful)
        result = assay.check_keras(model, [(x, y), (keras_models.floats(5, 4), keras_models.floats(5, 3))])
        self.assertTrue(result.faithful, result.text)
        self.assertEqual([next(iter(out.values())).shape for out in result.export.outputs], [(2, 8), (5, 8)])
        loaded = assay.from_keras(model, (x, y), dynamic_batch=True)
        out = loaded.run(dict(zip([i.name for i in loaded.inputs], (x[:1], y[:1]))))[0]
        np.testing.assert_allclose(out, np.array(model([x[:1], y[:1]])), rtol=1e-4, atol=1e-5)
        function = assay.check_keras(lambda z: tf.math.softplus(z) + 1, x)
        self.assertTrue(function.faithful, function.text)

    def test_errors(self):
        model = keras.Sequential([keras.Input((4,)), L.Dense(2, activation="gelu")])
        with self.assertRaises(assay.ExportError) as error:
            assay.check_keras(model, keras_models.floats(1, 4))
        self.assertIn("no ONNX form of Erfc", str(error.exception))
        for arguments, text in (((3, np.ones(2)), "pass a keras.Model"), ((model, []), "empty list"), ((model, object()), "not arrays"),
                                ((lambda z: 3, np.ones(2, np.float32)), "gives no tensors")):
            with self.assertRaises(assay.InvalidArgument) as error:
                assay.check_keras(*arguments)
            self.assertIn(text, str(error.exception))

    def test_page(self):
        self.assertEqual(page_blocks.run_section("frameworks.md", "Keras"), 1)


if __name__ == "__main__":
    unittest.main()
