// polygraphy surgeon prune: the two smallest of every four weights become zero.
#include "frontends/polygraphy/model.h"
#include "frontends/polygraphy/sparsity_log.h"

static assay_status_t prune(assay_model_t* m) {
  assay_sparse_weight_t* weights = NULL;
  size_t n = 0;
  ASSAY_TRY(pg_sparsity_find(m, &weights, &n));
  pg_log(PG_START, "Pruning %zu tensors.", n);
  for (size_t i = 0; i < n; i++) ASSAY_TRY(assay_sparsity_prune(&weights[i]));
  pg_log(PG_FINISH, "Finished pruning %zu tensors. ", n);
  return NULL;
}

assay_status_t pg_run_surgeon_prune(pg_job_t* j) {
  assay_model_t* m = NULL;
  ASSAY_TRY(pg_load_model(j, &m));
  assay_status_t st = pg_report_model("Original Model:", m);
  if (!st) st = prune(m);
  if (!st) st = pg_save_model(j, m, pg_text(j->args, PG_FLAG_output));
  if (!st) st = pg_report_model("New Model:", m);
  assay_model_release(m);
  return st;
}
