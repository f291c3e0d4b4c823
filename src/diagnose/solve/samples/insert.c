// Numbers of nodes that the model lacks, as a repair, and the node with it.
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/by_samples.h"

static assay_status_t part_of(const assay_by_samples_numbers_t* k, const assay_tensor_t* x,
                              int64_t from, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(k->type, k->rank, k->dims, out));
  memcpy(assay_f64(*out), assay_f64(x) + from, (size_t)(*out)->size * sizeof(double));
  return NULL;
}

assay_status_t assay_by_samples_insert(const assay_by_samples_t* y, assay_tensor_t* x,
                                       assay_repair_t* out) {
  const assay_by_samples_numbers_t* k = y->numbers;
  assay_formula_terms_t terms = {.program = k->program};
  *out = (assay_repair_t){.node = y->s->node, .cause = "missing node", .n_edits = 1};
  out->edits[0] = (assay_repair_edit_t){.kind = k->kind, .input = k->index};
  assay_status_t st = part_of(k, x, 0, &terms.c);
  if (!st && k->both) st = part_of(k, x, terms.c->size, &terms.d);
  if (!st) st = assay_formula_create(&terms, &out->edits[0].formula);
  assay_tensor_release(terms.c);
  assay_tensor_release(terms.d);
  return st;
}

assay_status_t assay_by_samples_evaluate(const assay_by_samples_t* y, const assay_repair_t* r,
                                         assay_tensor_t** out) {
  const assay_solve_t* s = y->s;
  assay_tensor_t** made = NULL;
  *out = NULL;
  ASSAY_TRY(assay_new_array(s->node->n_outputs, sizeof *made, &made));
  assay_status_t st =
      assay_repair_evaluate(s->m, r, s->node->n_inputs, s->in, s->node->n_outputs, made);
  if (!st && made[s->output] && assay_tensor_alike(made[s->output], s->want))
    *out = assay_tensor_retain(made[s->output]);
  for (size_t i = 0; i < s->node->n_outputs; i++) assay_tensor_release(made[i]);
  assay_free(made);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
