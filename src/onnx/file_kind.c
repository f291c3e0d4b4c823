// First bytes of files that users pass for a model by mistake, and what to do with each.
#include "onnx/file_kind.h"

#include <string.h>

#define ROW(prefix, text) \
  { prefix, sizeof(prefix) - 1, text }

static const struct {
  const char* prefix;
  size_t n;
  const char* text;
} kinds[] = {
    ROW("ASSAYPLN",
        "a plan file, not an ONNX model; 'assay run', 'bench' and 'inspect plan' take plans, and "
        "this "
        "verb takes the model that the plan was built from"),
    ROW("version https://git-lfs.github.com/spec/",
        "a Git LFS pointer, not an ONNX model: the model itself was not downloaded; 'git lfs pull' "
        "gets it"),
    ROW("PK\x03\x04",
        "a zip archive, not an ONNX model; .npz files are inputs (--inputs), and a PyTorch or "
        "Keras "
        "file has to be exported to ONNX"),
    ROW("\x93NUMPY", "a NumPy array, not an ONNX model; arrays are inputs (--inputs)"),
    ROW("\x89HDF\r\n\x1a\n",
        "an HDF5 file (Keras, for example), not an ONNX model; export it to ONNX with tf2onnx"),
    ROW("ftrt", "a TensorRT engine, not an ONNX model; pass the model that it was built from"),
    ROW("\x1f\x8b", "a gzip archive, not an ONNX model; unpack it first"),
    ROW("\x80\x02", "a pickle (an old PyTorch file?), not an ONNX model; export it to ONNX"),
    ROW("<!DOCTYPE", "an HTML page, not an ONNX model; the download went wrong"),
    ROW("<html", "an HTML page, not an ONNX model; the download went wrong"),
    ROW("<?xml",
        "an XML file (an OpenVINO IR?), not an ONNX model; pass the model that it was made from"),
    ROW("\x7f"
        "ELF",
        "a program or a shared library, not an ONNX model"),
};

const char* assay_file_kind(const void* data, size_t n) {
  static const char safetensors[] = "{\"";
  static const char lite[] = "TFL3";
  const char* bytes = data;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (n >= kinds[i].n && memcmp(bytes, kinds[i].prefix, kinds[i].n) == 0) return kinds[i].text;
  if (n >= 8 && memcmp(bytes + 4, lite, 4) == 0)
    return "a TensorFlow Lite model, not an ONNX model; tf2onnx converts it";
  if (n >= 10 && memcmp(bytes + 8, safetensors, 2) == 0)
    return "a safetensors file, not an ONNX model: it has weights and no graph";
  if (n && (*bytes == '{' || *bytes == '['))
    return "a JSON file, not an ONNX model; JSON files of arrays are inputs (--inputs)";
  return NULL;
}
