// Two inputs of a node that read other values: states, a scale and its zero point, a key and its
// value go together, and an exporter that takes one from the wrong place takes both.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { CHOICES = 20, INPUTS = 8, TRIALS = 1000 };

typedef struct rewired {
  const assay_missing_other_t* at[INPUTS][CHOICES];
  size_t n[INPUTS];
  int trials;
} rewired_t;

static void list_choices(const assay_missing_search_t* s, size_t i, rewired_t* out) {
  for (size_t k = 0; s->in[i] && k < s->n_others && out->n[i] < CHOICES; k++) {
    const assay_missing_other_t* o = &s->others[k];
    if (o->value != s->node->inputs[i] && o->value->graph &&
        assay_tensor_alike(o->tensor, s->in[i]) && o->tensor->size > 1)
      out->at[i][out->n[i]++] = o;
  }
}

static assay_status_t try_pair(assay_missing_search_t* s, size_t i, const assay_missing_other_t* a,
                               size_t j, const assay_missing_other_t* b) {
  assay_repair_t r = {.node = s->node, .cause = "other sources", .n_edits = 2};
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_INPUT, .input = i, .value = a->value};
  r.edits[1] = (assay_repair_edit_t){.kind = ASSAY_EDIT_INPUT, .input = j, .value = b->value};
  snprintf(r.text, sizeof r.text, "reads '%.60s' and '%.60s' at its inputs %zu and %zu",
           a->value->name, b->value->name, i, j);
  return assay_missing_offer(s, &r);
}

// Every pair of values at a pair of inputs, nearest first.
static assay_status_t try_inputs(assay_missing_search_t* s, rewired_t* k, size_t i, size_t j) {
  for (size_t sum = 0; sum + 1 < k->n[i] + k->n[j] && !assay_missing_is_over(s); sum++)
    for (size_t a = 0; a <= sum && a < k->n[i]; a++)
      if (sum - a < k->n[j] && k->at[i][a] != k->at[j][sum - a] && k->trials++ < TRIALS)
        ASSAY_TRY(try_pair(s, i, k->at[i][a], j, k->at[j][sum - a]));
  return NULL;
}

assay_status_t assay_missing_rewired(assay_missing_search_t* s) {
  rewired_t* k = NULL;
  const size_t n = s->n_in < INPUTS ? s->n_in : INPUTS;
  if (n < 3) return NULL;  // of two inputs, either is found alone
  ASSAY_TRY(assay_new_array(1, sizeof *k, &k));
  for (size_t i = 0; i < n; i++) list_choices(s, i, k);
  assay_status_t st = NULL;
  for (size_t j = n; !st && j-- > 1;)
    for (size_t i = j; !st && i-- > 0;)
      if (!assay_missing_is_over(s)) st = try_inputs(s, k, i, j);
  assay_free(k);
  return st;
}
