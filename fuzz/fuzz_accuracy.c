// JSON of comparisons, with the verdicts that follow from it.
#include <stdlib.h>

#include "base/alloc.h"
#include "compare/comparison.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const assay_compare_log_t silent = {0};
  assay_accuracy_results_t r = {0};
  bool passed;
  assay_status_t st = assay_accuracy_results_parse(data, size, &r);
  if (!st) st = assay_accuracy_results_passed(&r, &passed);
  for (size_t i = 0; !st && i < r.n; i++) st = assay_log_result_summary(&silent, &r.items[i]);
  if (assay_status_code(st) == ASSAY_INTERNAL) abort();
  assay_status_free(st);
  assay_accuracy_results_deinit(&r);
  if (assay_alloc_live()) abort();
  return 0;
}
