import numpy as np
import onnxruntime


class Predictor:
    def __init__(self, path, providers=None):
        self.session = onnxruntime.InferenceSession(path, providers=providers or ["CPUExecutionProvider"])
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]

    def __call__(self, **arrays):
        feed = {}
        for name, meta in self.inputs.items():
            array = np.asarray(arrays[name], dtype={"tensor(float)": np.float32, "tensor(int64)": np.int64}[meta.type])
            for want, got in zip(meta.shape, array.shape):
                if isinstance(want, int) and want != got:
                    raise ValueError("%s: %s is not %s" % (name, array.shape, meta.shape))
            feed[name] = array
        return dict(zip(self.outputs, self.session.run(self.outputs, feed)))


predict = Predictor("top.onnx")
print(predict(scores=[[1, 5, 3]], k=[2]))
try:
    predict(scores=[[1, 5, 3]], k=[2, 2])
except ValueError as e:
    print(e)
