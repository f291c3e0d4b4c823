"""Models converted to 16 bits, and quantized ones."""
import contextlib
import io
import logging
import os
import subprocess
import tempfile
import warnings

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16

from data import draw
from net import Model


def like(model, proto):
    return Model(model.name, model.style, model.opset, model.batch, proto, model.inputs)


def to_half(model, keep_types):
    """fp16 as ONNX Runtime's converter makes it: weights are rounded; keep_types: inputs and outputs stay float."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        proto = convert_float_to_float16(onnx.ModelProto.FromString(model.proto.SerializeToString()), keep_io_types=keep_types)
    return like(model, proto)


class Samples(CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


# Networks that compute indices in floats, which nobody quantizes.
FLOAT_INDICES = {"flow_warp", "t5_encoder"}


def quantize(model, rng, per_channel, samples=6):
    """QuantizeLinear and DequantizeLinear by ONNX Runtime, calibrated on drawn data."""
    if model.name in FLOAT_INDICES or model.opset < 13 and per_channel:  # scales of an axis are of opset 13
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "float.onnx"), os.path.join(folder, "int8.onnx")
        onnx.save(model.proto, source)
        logging.disable(logging.WARNING)
        try:
            quantize_static(source, target, Samples(draw(model, rng) for _ in range(samples)), quant_format=QuantFormat.QDQ,
                            per_channel=per_channel, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                            calibrate_method=CalibrationMethod.MinMax)
        finally:
            logging.disable(logging.NOTSET)
        proto = onnx.load(target)
    return like(model, proto) if any(n.op_type == "QuantizeLinear" for n in proto.graph.node) else None


def quantize_by_assay(model, rng, assay, samples=6):
    """The same by `assay edit quantize`; None where it refuses."""
    if model.name in FLOAT_INDICES:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "float.onnx"), os.path.join(folder, "int8.onnx")
        onnx.save(model.proto, source)
        os.mkdir(os.path.join(folder, "inputs"))
        for i in range(samples):
            np.savez(os.path.join(folder, "inputs", f"{i}.npz"), **draw(model, rng))
        line = [str(assay), "edit", "quantize", source, "-o", target, "-i", os.path.join(folder, "inputs"), "--no-proof"]
        done = subprocess.run(line, capture_output=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode != 0 or not os.path.exists(target):
            return None
        return like(model, onnx.load(target))
