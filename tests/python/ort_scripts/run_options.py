import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("mlp.onnx")
options = ort.RunOptions()
options.log_severity_level = 4
options.log_verbosity_level = 0
options.logid = "run-1"
options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
print(options.logid, options.terminate, options.only_execute_path_to_fetches)
print(options.get_run_config_entry("memory.enable_memory_arena_shrinkage"))
x = {"x": np.zeros((1, 4), np.float32)}
print(sess.run(None, x, run_options=options))
options.terminate = True
try:
    sess.run(None, x, options)
except Exception as e:
    print(type(e).__name__, e)
options.terminate = False
print(sess.run(None, x, options)[0].shape)
