import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
cases = {"operator": helper.make_node("NotAnOperator", ["x"], ["y"]),
         "domain": helper.make_node("Thing", ["x"], ["y"], domain="com.example"),
         "input": helper.make_node("Relu", ["nowhere"], ["y"])}
for what, node in cases.items():
    graph = helper.make_graph([node], "bad", [x], [y])
    model = helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    try:
        ort.InferenceSession(model.SerializeToString())
    except Exception as e:
        print(what, type(e).__name__, isinstance(e, Exception), str(e).split(" : ")[:3])
