import onnxruntime as ort

for name in ("iris", "text", "words", "sequences", "pick", "optional"):
    sess = ort.InferenceSession(name + ".onnx")
    print(name, [(a.name, a.type, a.shape) for a in sess.get_inputs() + sess.get_outputs()])
    print(str(sess.get_inputs()[0]))
