// Files that are not models: each is named, with what to do; what nobody knows keeps the reader's
// own message.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "onnx/onnx.h"
#include "status_case.h"

#define BYTES(text) text, sizeof(text) - 1

static void files_are_named(void** state) {
  (void)state;
  static const struct {
    const char* bytes;
    size_t n;
    const char* says;
  } rows[] = {
      {BYTES("ASSAYPLN\1\0\0\0rest"), "a plan file"},
      {BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:4d\n"), "git lfs pull"},
      {BYTES("PK\3\4rest"), "a zip archive"},
      {BYTES("\x93NUMPY\1\0v\0{'descr'"), "a NumPy array"},
      {BYTES("\x89HDF\r\n\x1a\nrest"), "HDF5"},
      {BYTES("ftrt\0\0\0\0"), "a TensorRT engine"},
      {BYTES("<html><head>"), "an HTML page"},
      {BYTES("<?xml version='1.0'?>"), "an XML file"},
      {BYTES("\x1f\x8b\x08rest"), "gzip"},
      {BYTES("\x1c\0\0\0TFL3rest"), "TensorFlow Lite"},
      {BYTES("\x40\0\0\0\0\0\0\0{\"w\":{}}"), "safetensors"},
      {BYTES("{\"x\": [1]}"), "a JSON file"},
      {BYTES("[1, 2]"), "a JSON file"},
      {BYTES("\xff\xff\xff"), "byte "}};
  char path[] = "/tmp/assay_kind_XXXXXX";
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    FILE* f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(rows[i].bytes, 1, rows[i].n, f), rows[i].n);
    assert_int_equal(fclose(f), 0);
    assay_model_t* m = NULL;
    fails(assay_onnx_read(path, &m), ASSAY_CORRUPT, rows[i].says);
    assert_null(m);
  }
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(files_are_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
