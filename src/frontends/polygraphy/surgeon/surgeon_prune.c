// polygraphy surgeon prune: the two smallest of every four weights become zero.
#include "frontends/polygraphy/model.h"
#include "frontends/polygraphy/sparsity_log.h"

static assay_status_t prune(pg_job_t* j, assay_model_t* m) {
  (void)j;
  assay_sparse_weight_t* weights = NULL;
  size_t n = 0;
  ASSAY_TRY(pg_sparsity_find(m, &weights, &n));
  pg_log(PG_START, "Pruning %zu tensors.", n);
  for (size_t i = 0; i < n; i++) ASSAY_TRY(assay_sparsity_prune(&weights[i]));
  pg_log(PG_FINISH, "Finished pruning %zu tensors. ", n);
  return NULL;
}

assay_status_t pg_run_surgeon_prune(pg_job_t* j) { return pg_change_model(j, prune); }
