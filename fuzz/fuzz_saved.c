// JSON of Polygraphy and trtexec.
#include <stdlib.h>

#include "base/alloc.h"
#include "io/run_results.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay_saved_t saved = {0};
  assay_set_t set = {0};
  assay_run_results_t results = {0}, twice = {0};
  assay_status_t st = assay_saved_parse_json(data, size, NULL, &saved);
  if (!st) st = assay_saved_join(&saved, &set);
  if (assay_status_code(st) == ASSAY_INTERNAL) abort();
  assay_status_free(st);
  st = assay_run_results_parse_json(data, size, &results);
  if (!st) st = assay_run_results_append(&twice, &results);
  if (!st) st = assay_run_results_append(&twice, &results);
  if (assay_status_code(st) == ASSAY_INTERNAL) abort();
  assay_status_free(st);
  assay_run_results_deinit(&results);
  assay_run_results_deinit(&twice);
  assay_set_deinit(&set);
  assay_saved_deinit(&saved);
  if (assay_alloc_live()) abort();
  return 0;
}
