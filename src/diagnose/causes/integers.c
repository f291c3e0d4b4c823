// Where numbers become integers, and where integers are places: rounded another way, counted from
// another number or from the other end.
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input,
                            const char* program, assay_tensor_t* c, const char* what,
                            const assay_trial_t* t, bool* stop) {
  const assay_formula_terms_t terms = {.program = program, .c = c};
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_BEFORE);
  r.edits[0].input = input;
  snprintf(r.text, sizeof r.text, "'%.120s' %s", s->node->inputs[input]->name, what);
  ASSAY_TRY(assay_formula_create(&terms, &r.edits[0].formula));
  return assay_offer(t, &r, stop);
}

// Sources: Cast of ONNX cuts fractions off; torch.floor_divide, pytorch/pytorch issue 43874.
static assay_status_t at_cast(const assay_suspect_t* s, const char* cause, const assay_trial_t* t,
                              bool* stop) {
  static const char* const programs[][2] = {
      {"x Round", "rounded"}, {"x Floor", "rounded down"}, {"x Ceil", "rounded up"}};
  if (!s->in[0] || s->in[0]->store != ASSAY_STORE_F64 || !s->out[0] ||
      s->out[0]->store != ASSAY_STORE_I64 || s->out[0]->type == ASSAY_TYPE_BOOL)
    return NULL;
  for (size_t i = 0; i < sizeof programs / sizeof *programs && !*stop; i++)
    ASSAY_TRY(offer(s, cause, 0, programs[i][0], NULL, programs[i][1], t, stop));
  return NULL;
}

static assay_status_t offer_number(const assay_suspect_t* s, const char* cause, size_t input,
                                   const char* program, int64_t number, const char* what,
                                   const assay_trial_t* t, bool* stop) {
  assay_tensor_t* c = NULL;
  ASSAY_TRY(assay_tensor_create(s->in[input]->type, 0, NULL, &c));
  assay_i64(c)[0] = number;
  assay_status_t st = offer(s, cause, input, program, c, what, t, stop);
  assay_tensor_release(c);
  return st;
}

// Sources: positions of OPT and BART begin at 2, huggingface/transformers modeling_opt.py; those of
// RoBERTa behind the padding's.
static assay_status_t at_gather(const assay_suspect_t* s, const char* cause, const assay_trial_t* t,
                                bool* stop) {
  enum { DATA = 0, INDICES = 1 };
  static const int64_t added[] = {1, -1, 2, -2};
  const assay_tensor_t *x = s->in[DATA], *at = s->in[INDICES];
  const int64_t axis = assay_attr_i64(s->node, "axis", 0);
  if (!x || !at || at->store != ASSAY_STORE_I64 || x->kind != ASSAY_KIND_TENSOR || !x->rank)
    return NULL;
  if (!s->node->inputs[INDICES] || assay_around_is_constant(s->node->inputs[INDICES])) return NULL;
  for (size_t i = 0; i < sizeof added / sizeof *added && !*stop; i++) {
    char what[40];
    snprintf(what, sizeof what, "%s %d", added[i] > 0 ? "plus" : "less",
             (int)(added[i] > 0 ? added[i] : -added[i]));
    ASSAY_TRY(offer_number(s, cause, INDICES, "x c +", added[i], what, t, stop));
  }
  const int64_t along = axis < 0 ? axis + x->rank : axis;
  if (*stop || along < 0 || along >= x->rank) return NULL;
  return offer_number(s, cause, INDICES, "c x -", x->dims[along] - 1, "counted from the other end",
                      t, stop);
}

assay_status_t assay_propose_integers(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  if (!s->around || !s->n_in || !s->n_out || !s->node->inputs[0]) return NULL;
  if (assay_around_is_constant(s->node->inputs[0]) && s->n_in < 2) return NULL;
  if (is_op(s->node, "Cast")) return at_cast(s, cause, t, stop);
  if (s->n_in == 2 && (is_op(s->node, "Gather") || is_op(s->node, "GatherElements")))
    return at_gather(s, cause, t, stop);
  return NULL;
}
