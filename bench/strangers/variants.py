"""Models converted to 16 bits, and quantized ones."""
import contextlib
import io
import logging
import os
import tempfile
import warnings

import onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16

from data import draw
from net import Model


def to_half(model, keep_types):
    """fp16 as ONNX Runtime's converter makes it: weights are rounded; keep_types: inputs and outputs stay float."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        proto = convert_float_to_float16(onnx.ModelProto.FromString(model.proto.SerializeToString()), keep_io_types=keep_types)
    return Model(model.name, model.style, model.opset, model.batch, proto, model.inputs, model.rows)


class Samples(CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def quantize(model, rng, per_channel, samples=6):
    """QuantizeLinear and DequantizeLinear by ONNX Runtime, calibrated on drawn data."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "float.onnx"), os.path.join(folder, "int8.onnx")
        proto = onnx.ModelProto.FromString(model.proto.SerializeToString())
        if model.opset < 13 and per_channel:  # scales of an axis are of opset 13
            return None
        onnx.save(proto, source)
        logging.disable(logging.WARNING)
        quantize_static(source, target, Samples(draw(model, rng) for _ in range(samples)), quant_format=QuantFormat.QDQ,
                        per_channel=per_channel, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        calibrate_method=CalibrationMethod.MinMax)
        logging.disable(logging.NOTSET)
        proto = onnx.load(target)
    if not any(n.op_type == "QuantizeLinear" for n in proto.graph.node):
        return None
    return Model(model.name, model.style, model.opset, model.batch, proto, model.inputs, model.rows)
