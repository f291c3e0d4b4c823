import threading

import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("mlp.onnx")
lock, done, collected = threading.Lock(), threading.Semaphore(0), {}


def finished(results, index, error):
    with lock:
        collected[index] = results[0].argmax() if not error else error
    done.release()


for index in range(10):
    sess.run_async(None, {"x": np.full((1, 4), index / 5 - 1, np.float32)}, finished, index)
for _ in range(10):
    done.acquire(timeout=30)
print([int(collected[i]) for i in range(10)])
