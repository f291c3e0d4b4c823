import numpy as np
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions


def create_model_for_provider(path, provider):
    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
    session = InferenceSession(path, options, providers=[provider])
    session.disable_fallback()
    return session


model = create_model_for_provider("encoder.onnx", "CPUExecutionProvider")
tokens = {"input_ids": [[7, 8, 9, 0], [4, 5, 0, 0]], "attention_mask": [[1, 1, 1, 0], [1, 1, 0, 0]]}
inputs = {k: np.atleast_2d(np.array(v, dtype=np.int64)) for k, v in tokens.items()}
sequence, pooled = model.run(None, inputs)
norm = np.linalg.norm(pooled, axis=1, keepdims=True)
print(sequence.shape, pooled.shape)
print((pooled / norm) @ (pooled / norm).T)
