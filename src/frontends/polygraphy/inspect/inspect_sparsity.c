// polygraphy inspect sparsity: which weights have two zeros in every four.
#include "frontends/polygraphy/model.h"
#include "frontends/polygraphy/sparsity_log.h"
#include "io/numpy_text.h"

static void report_skipped(const assay_sparse_weight_t* w) {
  const assay_tensor_t* t = w->value->constant;
  if (t->dims[w->axis] % 4)
    pg_log(PG_VERBOSE,
           "Skipping %s since the length of axis %d (%lld in %s) is not a multiple of 4.",
           w->value->name, w->axis, (long long)t->dims[w->axis], ASSAY_DIMS_TEXT(t));
  else
    pg_log(PG_WARNING, "Skipping tensor: %s due to unsupported type: %s", w->value->name,
           assay_numpy_type_name(t->type));
}

assay_status_t pg_sparsity_find(assay_model_t* m, assay_sparse_weight_t** out, size_t* out_n) {
  size_t n = 0, fit = 0;
  ASSAY_TRY(assay_sparsity_find(m, out, &n));
  for (size_t i = 0; i < n; i++) {
    if ((*out)[i].fits)
      (*out)[fit++] = (*out)[i];
    else
      report_skipped(&(*out)[i]);
  }
  pg_log(PG_INFO, "Found: %zu weight tensor(s) eligible for pruning.", fit);
  *out_n = fit;
  return NULL;
}

assay_status_t pg_sparsity_report(assay_model_t* m) {
  assay_sparse_weight_t* weights = NULL;
  size_t n = 0;
  ASSAY_TRY(pg_sparsity_find(m, &weights, &n));
  pg_log(PG_START, "Checking the sparsity pattern of %zu tensors.", n);
  for (size_t i = 0; i < n; i++) {
    bool sparse;
    ASSAY_TRY(assay_sparsity_check(&weights[i], &sparse));
    pg_log(sparse ? PG_INFO : PG_WARNING, "Found %s tensor: %s", sparse ? "sparse" : "non-sparse",
           weights[i].value->name);
  }
  pg_log(PG_FINISH, "Finished checking %zu tensors. ", n);
  return NULL;
}

assay_status_t pg_run_inspect_sparsity(pg_job_t* j) {
  assay_model_t* m = NULL;
  ASSAY_TRY(pg_load_model(j, &m));
  assay_status_t st = pg_sparsity_report(m);
  assay_model_release(m);
  return st;
}
