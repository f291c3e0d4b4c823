// polygraphy surgeon weight-reconstruct: random data where weights were stripped.
#include "edit/weights/strip.h"
#include "frontends/polygraphy/model.h"

static assay_status_t fill(assay_model_t* m) {
  size_t n = 0;
  pg_log(PG_START, "Beginning weight reconstruction...");
  ASSAY_TRY(assay_strip_fill(m, 1, &n));
  pg_log(PG_FINISH, "Finished reconstructing %zu weights", n);
  return NULL;
}

assay_status_t pg_run_surgeon_weight_reconstruct(pg_job_t* j) {
  const assay_onnx_read_options_t allow = {.stripped = true};
  assay_model_t* m = NULL;
  ASSAY_TRY(pg_read_model(j, &allow, &m));
  assay_status_t st = pg_report_model("Original Model:", m);
  if (!st) st = fill(m);
  if (!st) st = pg_convert_model(j, &m);  // weights without data cannot be converted
  if (!st) st = pg_save_model(j, m, pg_text(j->args, PG_FLAG_output));
  if (!st) st = pg_report_model("New Model:", m);
  assay_model_release(m);
  return st;
}
