// What came of each requirement, as JSON.
#include "base/alloc.h"
#include "io/json.h"
#include "report/report.h"

static json_t* result_json(const assay_requirement_result_t* r) {
  return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o}", "requirement", assay_json_text(r->of->text),
                   "output", r->output ? assay_json_text(r->output) : json_null(), "statistic",
                   r->statistic ? assay_json_text(r->statistic) : json_null(), "value",
                   r->known && r->statistic ? assay_json_number(r->value) : json_null(), "met",
                   (int)r->met, "why", r->met ? json_null() : assay_json_text(r->why));
}

assay_status_t assay_report_requirements_json(const assay_requirements_t* require,
                                              const assay_output_check_t* outputs, size_t n_outputs,
                                              const bool* met, json_t** out) {
  assay_requirement_result_t* results = NULL;
  size_t n = 0;
  if (outputs) ASSAY_TRY(assay_require_results(require, outputs, n_outputs, met, &results, &n));
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++) list = assay_json_push(list, result_json(&results[i]));
  assay_free(results);
  *out = list;
  return list ? NULL : assay_status_no_memory();
}
