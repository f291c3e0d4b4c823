// Poolings and means that went through a function: of what the function makes, and its inverse
// after it. The least of a neighbourhood is the largest of negatives; the root of a mean of
// squares, the mean of logarithms. Sources: kornia/kornia issue 1030 (erosion by MaxPool);
// geometric and harmonic means, and that of powers: F. Radenovic et al., Fine-tuning CNN Image
// Retrieval, 2018.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/proposals.h"

typedef struct through {
  const char *before, *after, *name;
  double above;  // all numbers must lie
} through_t;

static const through_t OF_LARGEST[] = {{"x -1 *", "x -1 *", "the least", -HUGE_VAL}};
static const through_t OF_MEANS[] = {
    {"x dup *", "x Sqrt", "the root of the mean of squares", -HUGE_VAL},
    {"x 1e-6 max 3 ^", "x 0.33333333333333333 ^", "the mean by cubes", -HUGE_VAL},
    {"x Log", "x Exp", "the geometric mean", 0},
    {"x Reciprocal", "x Reciprocal", "the harmonic mean", 0},
    {"x Exp", "x Log", "the logarithm of the mean of powers of e", -HUGE_VAL},
};

static bool is_above(const assay_tensor_t* x, double limit) {
  for (int64_t i = 0; i < x->size; i++)
    if (!(assay_f64(x)[i] > limit)) return false;
  return true;
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, const through_t* f,
                            const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_BEFORE);
  r.n_edits = 2;
  r.edits[1].kind = ASSAY_EDIT_AFTER;
  snprintf(r.text, sizeof r.text, "%s of '%.100s'", f->name, s->node->inputs[0]->name);
  assay_status_t st =
      assay_formula_create(&(assay_formula_terms_t){.program = f->before}, &r.edits[0].formula);
  if (!st)
    st = assay_formula_create(&(assay_formula_terms_t){.program = f->after}, &r.edits[1].formula);
  if (st) return assay_repair_deinit(&r), st;
  return assay_offer(t, &r, stop);
}

static bool is_one_of(const assay_node_t* n, const char* const* ops) {
  for (size_t i = 0; ops[i]; i++)
    if (!*n->domain && strcmp(n->op_type, ops[i]) == 0) return true;
  return false;
}

assay_status_t assay_propose_through(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  static const char* const LARGEST[] = {"MaxPool", "GlobalMaxPool", NULL};
  static const char* const MEANS[] = {"AveragePool", "GlobalAveragePool", "ReduceMean", NULL};
  const bool largest = is_one_of(s->node, LARGEST);
  if (!(largest || is_one_of(s->node, MEANS)) || !s->node->inputs[0] || !s->in[0] ||
      s->in[0]->kind != ASSAY_KIND_TENSOR || s->in[0]->store != ASSAY_STORE_F64)
    return NULL;
  const through_t* rows = largest ? OF_LARGEST : OF_MEANS;
  const size_t n = largest ? sizeof OF_LARGEST / sizeof *rows : sizeof OF_MEANS / sizeof *rows;
  for (size_t i = 0; i < n && !*stop; i++)
    if (rows[i].above == -HUGE_VAL || is_above(s->in[0], rows[i].above))
      ASSAY_TRY(offer(s, cause, &rows[i], t, stop));
  return NULL;
}
