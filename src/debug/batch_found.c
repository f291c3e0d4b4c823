// What is found about batches, and the inputs of a relation.
#include <string.h>

#include "base/alloc.h"
#include "debug/batch_debug.h"

const char* assay_batch_verdict_name(assay_batch_verdict_t v) {
  static const char* const names[] = {"sound", "bits", "engine", "model"};
  return names[v];
}

void assay_batch_blame_deinit(assay_batch_blame_t* b) {
  assay_free(b->relations);
  assay_free(b->found);
  assay_str_deinit(&b->notes);
  *b = (assay_batch_blame_t){0};
}

void assay_batch_forget(assay_batch_job_t* j) {
  for (int i = 0; j->ref && i < j->open->n_values; i++) {
    assay_tensor_release(j->ref[i]);
    j->ref[i] = NULL;
  }
}

assay_status_t assay_batch_add(assay_batch_job_t* j, const assay_batch_found_t* f) {
  assay_batch_blame_t* b = j->out;
  assay_batch_relation_t* r = &b->relations[f->relation];
  size_t i = 0;
  if (f->model && !f->note) r->truth_holds = false;
  while (i < b->n_found && !(b->found[i].model == f->model && b->found[i].note <= f->note &&
                             b->found[i].bits == f->bits && !strcmp(b->found[i].node, f->node)))
    i++;
  if (i == b->n_found) {
    ASSAY_TRY(assay_grow(&b->found, &b->cap_found, b->n_found + 1, sizeof *b->found));
    b->found[b->n_found++] = *f;
  }
  if (f->moved > b->found[i].moved) b->found[i].moved = f->moved;
  b->found[i].n_broken++;
  if (r->at == SIZE_MAX) r->at = i;
  return NULL;
}

assay_status_t assay_batch_inputs(const assay_batch_job_t* j, const assay_batch_relation_t* r,
                                  assay_tensor_t*** out) {
  int rows[ASSAY_BATCH_ROWS];
  if (r) return assay_rows_stack(&j->rows, r->rows, r->n, r->single ? j->single : NULL, out);
  for (int i = 0; i < j->ref_n; i++) rows[i] = i % ASSAY_BATCH_MAX;
  return assay_rows_stack(&j->rows, rows, j->ref_n, NULL, out);
}
