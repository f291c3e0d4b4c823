import numpy as np
import onnx
import onnxruntime as ort

model = onnx.load("mlp.onnx")
for node in model.graph.node:
    for output in node.output:
        if output not in [o.name for o in model.graph.output]:
            model.graph.output.extend([onnx.ValueInfoProto(name=output)])
sess = ort.InferenceSession(model.SerializeToString())
names = [o.name for o in sess.get_outputs()]
print(names, [o.shape for o in sess.get_outputs()], [o.type for o in sess.get_outputs()])
for name, value in zip(names, sess.run(names, {"x": np.ones((1, 4), np.float32)})):
    print(name, value.shape, value)
