import onnxruntime as ort

for enum in (ort.GraphOptimizationLevel, ort.ExecutionMode, ort.ExecutionOrder, ort.OrtSparseFormat, ort.OrtAllocatorType):
    print(enum.__name__, [(name, int(member)) for name, member in enum.__members__.items()])
print(ort.GraphOptimizationLevel.ORT_ENABLE_ALL, repr(ort.ExecutionMode.ORT_SEQUENTIAL), ort.ExecutionMode(1).name)
print(getattr(ort.GraphOptimizationLevel, "ORT_ENABLE_EXTENDED").value)
device = ort.OrtDevice.make("cpu", 0)
print(device.device_type(), device.device_id())
