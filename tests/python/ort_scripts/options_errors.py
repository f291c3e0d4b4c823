import onnxruntime as ort

so = ort.SessionOptions()
for attribute, value in (("intra_op_num_threads", "four"), ("graph_optimization_level", 99), ("execution_mode", 1),
                         ("no_such_option", True), ("logid", 3)):
    try:
        setattr(so, attribute, value)
        print(attribute, "set")
    except (TypeError, AttributeError) as e:
        print(attribute, type(e).__name__)
try:
    so.get_session_config_entry("nothing")
except RuntimeError as e:
    print(e)
try:
    so.register_custom_ops_library("no_such_library.so")
except Exception as e:
    print(type(e).__name__, "Failed to load library no_such_library.so" in str(e))
try:
    ort.InferenceSession("mlp.onnx", "options")
except TypeError as e:
    print("TypeError")
