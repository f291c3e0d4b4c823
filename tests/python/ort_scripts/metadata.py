import onnxruntime as ort

meta = ort.InferenceSession("mlp.onnx").get_modelmeta()
print("producer:", meta.producer_name)
print("domain:", meta.domain, "version:", meta.version)
print("description:", meta.description, "/", meta.graph_description, "/", meta.graph_name)
for key in sorted(meta.custom_metadata_map):
    print(key, "=", meta.custom_metadata_map[key])
print(meta.custom_metadata_map["classes"].split(","))
print(ort.InferenceSession("cnn.onnx").get_modelmeta().custom_metadata_map)
