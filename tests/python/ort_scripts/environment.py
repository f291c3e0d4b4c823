import onnxruntime

print(tuple(int(v) for v in onnxruntime.__version__.split(".")[:2]) >= (1, 16))
print(onnxruntime.get_version_string() == onnxruntime.__version__, len(onnxruntime.get_build_info()) > 0)
print("CPUExecutionProvider" in onnxruntime.get_all_providers(), onnxruntime.get_available_providers()[-1])
onnxruntime.set_default_logger_severity(3)
onnxruntime.set_default_logger_verbosity(0)
onnxruntime.set_seed(42)
onnxruntime.disable_telemetry_events()
try:
    onnxruntime.set_default_logger_severity(9)
except RuntimeError as e:
    print("Invalid logging severity" in str(e))
print(onnxruntime.has_collective_ops())
