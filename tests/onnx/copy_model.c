// Reads models and writes them again, for round_trip.py.
//
//     copy_model [--external|--internal|--inline|--value] < PAIRS
//
// PAIRS: lines of two paths with a tab between them. Prints one line per pair: "ok", or the error.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "onnx/onnx.h"

static assay_status_t copy_model(const char* from, const char* to, const char* mode) {
  assay_model_t *model = NULL, *flat = NULL;
  assay_onnx_write_options_t options = {.min_bytes = 1};
  if (strcmp(mode, "--external") == 0) options.external = ASSAY_ONNX_EXTERNAL_ALL;
  if (strcmp(mode, "--internal") == 0) options.external = ASSAY_ONNX_EXTERNAL_NONE;
  assay_status_t st = assay_onnx_read(from, &model);
#ifdef ASSAY_TEST_INLINE
  if (!st && strcmp(mode, "--inline") == 0) st = assay_onnx_inline_functions(model, &flat);
#endif
  if (!st) st = assay_onnx_write(flat ? flat : model, to, &options);
  assay_model_release(flat);
  assay_model_release(model);
  return st;
}

static assay_status_t copy_value(const char* from, const char* to) {
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_onnx_read_value(from, NULL, &t);
  if (!st) st = assay_onnx_write_value(to, t, NULL);
  assay_tensor_release(t);
  return st;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  static char line[1 << 14];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    char* tab = strchr(line, '\t');
    if (!tab) return 2;
    *tab = 0;
    assay_status_t st =
        strcmp(mode, "--value") == 0 ? copy_value(line, tab + 1) : copy_model(line, tab + 1, mode);
    printf("%s\n", st ? assay_status_message(st) : "ok");
    assay_status_free(st);
    if (assay_alloc_live()) {
      fprintf(stderr, "%lld allocations are left of '%s'\n", (long long)assay_alloc_live(), line);
      return 1;
    }
  }
  return 0;
}
