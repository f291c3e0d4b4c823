// Another value of the graph, with what is there: a scale, an offset, a gate that was lost.
#include <stdio.h>
#include <string.h>

#include "diagnose/anywhere/anywhere.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

// Whether a value is laid along another without making it larger.
static bool fits_into(const assay_tensor_t* v, const assay_tensor_t* x) {
  if (v->rank > x->rank || v->type != x->type) return false;
  for (int i = 1; i <= v->rank; i++) {
    const int64_t d = v->dims[v->rank - i];
    if (d != 1 && d != x->dims[x->rank - i]) return false;
  }
  return true;
}

enum { NEAREST = 14 };

typedef struct values {
  const assay_value_t* at[NEAREST];
  size_t n;
} values_t;

static void add(const assay_suspect_t* s, const assay_anywhere_place_t* p, const assay_value_t* v,
                values_t* out) {
  const assay_tensor_t* x =
      v && v != p->v && !assay_around_is_constant(v) ? assay_around_tensor(s->around, v) : NULL;
  if (out->n == NEAREST || !is_float(x) || !fits_into(x, p->x) ||
      !assay_around_may_read(s->around, s->node, v))
    return;
  for (size_t i = 0; i < out->n; i++)
    if (out->at[i] == v) return;
  out->at[out->n++] = v;
}

// What the node reads, then what nobody reads, as what makes a value that was lost often stays
// behind; then what is near in the file, and what the model is given.
static void list_values(const assay_suspect_t* s, const assay_anywhere_place_t* p, values_t* out) {
  const assay_graph_t* g = s->model->graph;
  const assay_node_t* const* readers = NULL;
  const size_t here = s->around->order[s->node->id];
  for (size_t i = 0; i < s->n_in; i++) add(s, p, s->node->inputs[i], out);
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++) {
      const assay_value_t* v = g->nodes[i]->outputs[k];
      if (v && !v->is_output && !assay_around_readers(s->around, v, &readers)) add(s, p, v, out);
    }
  for (size_t d = 1; d < g->n_nodes && out->n < NEAREST - 2; d++)
    for (int side = 0; side < 2; side++) {
      if (side ? here + d >= g->n_nodes : d > here) continue;
      const assay_node_t* n = g->nodes[side ? here + d : here - d];
      for (size_t k = 0; k < n->n_outputs; k++) add(s, p, n->outputs[k], out);
    }
  for (size_t i = 0; i < g->n_inputs; i++) add(s, p, g->inputs[i], out);
}

static const struct {
  const char *name, *program;
} pairs[] = {
    {"times", "x v *"},
    {"plus", "x v +"},
    {"less", "x v -"},
    {"over", "x v /"},
    {"taken from", "v x -"},
    {"the divisor of", "v x /"},
    {"or the larger of", "x v max"},
    {"or the smaller of", "x v min"},
    {"times the sigmoid of", "x v Sigmoid *"},
    {"times 1 plus", "x 1 v + *"},
    {"times 1 less", "x 1 v - *"},
    {"times the exponential of", "x v Exp *"},
    {"over the root of", "x v Sqrt /"},
    {"times the root of", "x v Sqrt *"},
    {"over the root of 1 plus the square of", "x v v * 1 + Sqrt /"},
    {"times the hyperbolic tangent of", "x v Tanh *"},
};

// A square of neighbours, divided by a number of each row and by the roots of each row's and each
// column's. Source: T. N. Kipf and M. Welling, 2017, 2, against D^-1 A.
static assay_status_t offer_square(const assay_suspect_t* s, const char* cause,
                                   const assay_anywhere_place_t* p, const assay_value_t* v,
                                   const assay_trial_t* t, bool* stop) {
  static const char* const forms[][2] = {
      {"x v Sqrt * v", " Sqrt /"}, {"x v * v", " /"}, {"x v Sqrt / v", " Sqrt /"}};
  const assay_tensor_t *x = p->x, *d = assay_around_tensor(s->around, v);
  const int rank = x->rank;
  int64_t perm[ASSAY_MAX_RANK];
  if (rank < 2 || !d || d->rank != rank || d->dims[rank - 1] != 1 ||
      d->dims[rank - 2] != x->dims[rank - 2] || x->dims[rank - 2] != x->dims[rank - 1] ||
      x->dims[rank - 1] < 2)
    return NULL;
  for (int i = 0; i < rank; i++) perm[i] = i;
  perm[rank - 2] = rank - 1;
  perm[rank - 1] = rank - 2;
  for (size_t f = 0; f < sizeof forms / sizeof *forms && !*stop; f++) {
    char program[ASSAY_FORMULA_TEXT], what[160];
    size_t used = (size_t)snprintf(program, sizeof program, "%s", forms[f][0]);
    used = assay_formula_append(program, used, "transpose", perm, rank);
    if (used >= ASSAY_FORMULA_TEXT) return NULL;
    snprintf(program + used, sizeof program - used, "%s", forms[f][1]);
    const assay_formula_terms_t terms = {.program = program, .value = v};
    snprintf(what, sizeof what, "rows and columns by '%.80s', form %zu,", v->name, f + 1);
    ASSAY_TRY(assay_offer_at(s, cause, p, &terms, what, t, stop));
  }
  return NULL;
}

assay_status_t assay_propose_any_value(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  assay_anywhere_place_t places[ASSAY_PLACES];
  const size_t n = assay_places_of(s, places);
  for (size_t i = 0; i < n && !*stop; i++) {
    values_t values = {.n = 0};
    if (assay_around_is_constant(places[i].v)) continue;
    list_values(s, &places[i], &values);
    for (size_t k = 0; k < values.n && !*stop; k++)
      ASSAY_TRY(offer_square(s, cause, &places[i], values.at[k], t, stop));
    for (size_t k = 0; k < values.n; k++)
      for (size_t f = 0; f < sizeof pairs / sizeof *pairs && !*stop; f++) {
        const assay_formula_terms_t terms = {.program = pairs[f].program, .value = values.at[k]};
        char what[140];
        snprintf(what, sizeof what, "%s '%.80s'", pairs[f].name, values.at[k]->name);
        ASSAY_TRY(assay_offer_at(s, cause, &places[i], &terms, what, t, stop));
      }
  }
  return NULL;
}
