import onnxruntime as rt

so = rt.SessionOptions()
print(so.intra_op_num_threads, so.inter_op_num_threads, so.enable_profiling, so.enable_mem_pattern)
print(so.enable_cpu_mem_arena, so.enable_mem_reuse, so.log_severity_level, so.log_verbosity_level, repr(so.logid))
print(so.graph_optimization_level, so.execution_mode, so.execution_order, repr(so.optimized_model_filepath))
print(so.profile_file_prefix, so.use_deterministic_compute)
so.intra_op_num_threads = 2
so.inter_op_num_threads = 1
so.execution_mode = rt.ExecutionMode.ORT_PARALLEL
so.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_BASIC
so.log_severity_level = 3
so.logid = "mine"
so.enable_mem_pattern = False
so.add_session_config_entry("session.intra_op.allow_spinning", "0")
print(so.get_session_config_entry("session.intra_op.allow_spinning"))
sess = rt.InferenceSession("mlp.onnx", sess_options=so)
got = sess.get_session_options()
print(got.intra_op_num_threads, got.graph_optimization_level == rt.GraphOptimizationLevel.ORT_ENABLE_BASIC, got.logid)
