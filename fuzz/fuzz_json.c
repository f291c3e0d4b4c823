// JSON text.
#include <stdint.h>

#include "io/json.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  json_t* j = NULL;
  double x;
  assay_status_t st = assay_json_parse(data, size, &j);
  if (!st) (void)assay_json_get_number(j, &x);
  assay_status_free(st);
  json_decref(j);
  return 0;
}
