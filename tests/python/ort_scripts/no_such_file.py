import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile

try:
    ort.InferenceSession("missing.onnx")
except NoSuchFile as e:
    print("NoSuchFile", e)
with open("text.txt", "w") as f:
    f.write("this is not a model at all")
for model in ("text.txt", b"garbage", b""):
    try:
        ort.InferenceSession(model)
    except (Fail, InvalidArgument, InvalidProtobuf) as e:
        print(type(e).__name__, e)
for model in (None, 5, ["mlp.onnx"]):
    try:
        ort.InferenceSession(model)
    except TypeError as e:
        print("TypeError", e)
