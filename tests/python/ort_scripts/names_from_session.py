import numpy
import onnxruntime as rt

sess = rt.InferenceSession("iris.onnx", providers=["CPUExecutionProvider"])
input_name = sess.get_inputs()[0].name
label_name = sess.get_outputs()[0].name
X_test = numpy.array([[5.1, 3.5, 1.4, 0.2], [6.7, 3.1, 4.7, 1.5]])
pred_onx = sess.run([label_name], {input_name: X_test.astype(numpy.float32)})[0]
print(input_name, label_name, pred_onx)
