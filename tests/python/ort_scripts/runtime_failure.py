import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException

a, b, c = (helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "abc")
for op in ("Add", "MatMul"):
    graph = helper.make_graph([helper.make_node(op, ["a", "b"], ["c"], name="the_node")], "g", [a, b], [c])
    model = helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    so = ort.SessionOptions()
    so.log_severity_level = 4
    sess = ort.InferenceSession(model.SerializeToString(), so)
    try:
        sess.run(None, {"a": np.ones((2, 3), np.float32), "b": np.ones((2, 4), np.float32)})
    except (Fail, RuntimeException, InvalidArgument) as e:
        print(op, type(e).__name__, "running %s node. Name:'the_node'" % op in str(e))
    print(sess.run(None, {"a": np.ones((2, 2), np.float32), "b": np.ones((2, 2), np.float32)}))
