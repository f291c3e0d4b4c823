import numpy
import onnxruntime as rt
import onnxruntime.capi.onnxruntime_pybind11_state
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument
from onnxruntime.datasets import get_example

sess = rt.InferenceSession(get_example("logreg_iris.onnx"), providers=rt.get_available_providers())
input_name, output_name = sess.get_inputs()[0].name, sess.get_outputs()[0].name
print([(i.name, i.shape, i.type) for i in sess.get_inputs()], [(o.name, o.shape, o.type) for o in sess.get_outputs()])
feeds = [([output_name], {input_name: numpy.array([[1.0, 2.0, 3.0, 4.0]], dtype=numpy.float64)}),
         (["misspelled"], {input_name: numpy.array([[1.0, 2.0, 3.0, 4.0]], dtype=numpy.float32)}),
         ([output_name], {"misspelled": numpy.array([[1.0, 2.0, 3.0, 4.0]], dtype=numpy.float32)})]
for shape in ((4,), (1, 2), (3, 3), (3, 2, 1)):
    feeds.append(([output_name], {input_name: numpy.zeros(shape, dtype=numpy.float32)}))
for names, feed in feeds:
    try:
        print("shape", [o.shape for o in sess.run(names, feed)])
    except (InvalidArgument, Fail, RuntimeError, ValueError) as e:
        print(type(e).__name__, e)
