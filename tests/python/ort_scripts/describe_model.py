import onnxruntime as ort

for name in ("mlp.onnx", "cnn.onnx", "encoder.onnx", "decoder.onnx", "scalar.onnx", "types.onnx", "top.onnx"):
    sess = ort.InferenceSession(name)
    for i in sess.get_inputs():
        print("in ", i.name, i.shape, i.type, [type(d).__name__ for d in i.shape])
    for o in sess.get_outputs():
        print("out", o.name, o.shape, o.type)
