import numpy as np
import onnxruntime as rt
from onnx import TensorProto, helper

# A binary classifier as converters of boosted trees write it: votes for one class, one base value.
trees = {"nodes_treeids": [0] * 5, "nodes_nodeids": [0, 1, 2, 3, 4], "nodes_featureids": [0, 0, 1, 0, 0],
         "nodes_values": [2.0, 0.0, 3.0, 0.0, 0.0], "nodes_modes": ["BRANCH_LT", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
         "nodes_truenodeids": [1, 0, 3, 0, 0], "nodes_falsenodeids": [2, 0, 4, 0, 0], "class_ids": [0, 0, 0],
         "class_treeids": [0, 0, 0], "class_nodeids": [1, 3, 4], "class_weights": [0.9, -0.7, -1.5]}
X = helper.make_tensor_value_info("input", TensorProto.FLOAT, [None, 2])
label = helper.make_tensor_value_info("label", TensorProto.INT64, [None])
probabilities = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2])
for base in ([], [0.5], [-0.25]):
    node = helper.make_node("TreeEnsembleClassifier", ["input"], ["label", "probabilities"], domain="ai.onnx.ml",
                            post_transform="LOGISTIC", classlabels_int64s=[0, 1], **trees, **({"base_values": base} if base else {}))
    model = helper.make_model(helper.make_graph([node], "trees", [X], [label, probabilities]), ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])
    sess = rt.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, scores = sess.run(None, {"input": np.array([[1, 1], [3, 1], [3, 5]], dtype=np.float32)})
    print(base, labels, scores)
