// What hangs on the node's output and nobody reads: the nodes are there, the last one is lost.
//
// An exporter that ends a graph too early, or drops what joins two branches, leaves the branches
// behind. They read what is at fault here, so their values are no others of the node: made anew of
// what the node gives, they are (as nodes of a formula, each as it stands in the model).
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { LEAVES = 4, BESIDE = 16, DEPTH = 24 };

// By value id: what hangs on the output, and what an output of the graph needs.
typedef struct hanging {
  assay_missing_search_t* s;
  bool *hangs, *needed;
  size_t nodes;  // of formulas that were made: branches that meet again are made twice
} hanging_t;

static bool is_plain(const assay_node_t* n) {
  return n->op && n->op->eval && !(n->op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM)) &&
         n->n_inputs <= ASSAY_FORMULA_MORE;
}

static bool any_output(const assay_node_t* n, const bool* flags) {
  for (size_t k = 0; k < n->n_outputs; k++)
    if (n->outputs[k] && flags[n->outputs[k]->id]) return true;
  return false;
}

// False: the graph has bodies, which read what is not listed; or nothing hangs there unread.
static bool mark(hanging_t* h) {
  const assay_graph_t* g = h->s->node->graph;
  bool any = false;
  for (size_t i = 0; i < g->n_outputs; i++) h->needed[g->outputs[i]->id] = true;
  for (size_t i = g->n_nodes; i-- > 0;) {
    const assay_node_t* n = g->nodes[i];
    if (!n->op || n->op->flags & ASSAY_OP_CONTROL) return false;
    if (!any_output(n, h->needed)) continue;
    for (size_t k = 0; k < n->n_inputs; k++)
      if (n->inputs[k]) h->needed[n->inputs[k]->id] = true;
  }
  h->hangs[h->s->target->value->id] = true;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    bool hangs = false;
    for (size_t k = 0; k < n->n_inputs; k++) hangs |= n->inputs[k] && h->hangs[n->inputs[k]->id];
    if (!hangs || n == h->s->node || any_output(n, h->needed)) continue;
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) any = h->hangs[n->outputs[k]->id] = true;
  }
  return any;
}

static size_t output_of(const assay_node_t* n, const assay_value_t* v) {
  size_t k = 0;
  while (n->outputs[k] != v) k++;
  return k;
}

// A value that hangs there, of what the node gives. *out NULL: it is no such formula.
static assay_status_t make(hanging_t* h, const assay_value_t* v, int depth, assay_formula_t** out) {
  const assay_node_t* n = v->producer;
  assay_formula_terms_t t = {.like = {n}};
  char program[ASSAY_FORMULA_TEXT] = "";
  size_t used = 0;
  bool whole = depth < DEPTH && is_plain(n) && h->nodes++ < ASSAY_FORMULA_STEPS;
  assay_status_t st = NULL;
  *out = NULL;
  for (size_t i = 0; i < n->n_inputs && whole && !st; i++) {
    const assay_value_t* in = n->inputs[i];
    const int64_t at = (int64_t)i;
    const bool again = in && i && n->inputs[i - 1] == in;
    const char* word = !in ? "none" : again ? "dup" : in == h->s->target->value ? "x" : "w";
    used = assay_formula_append(program, used, word, &at, *word == 'w');
    if (*word != 'w') continue;
    if (!h->hangs[in->id])
      t.more[i] = in;
    else
      st = make(h, in, depth + 1, &t.more_made[i]);
    whole = t.more[i] || t.more_made[i];
  }
  const int64_t like[] = {(int64_t)n->n_inputs, 0, whole ? (int64_t)output_of(n, v) : 0};
  used = assay_formula_append(program, used, "like", like, 3);
  t.program = program;
  if (!st && whole && used < ASSAY_FORMULA_TEXT) st = assay_formula_create(&t, out);
  for (int i = 0; i < ASSAY_FORMULA_MORE; i++) assay_formula_release(t.more_made[i]);
  return st;
}

static bool is_read(const assay_graph_t* g, const assay_value_t* v) {
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k] == v) return true;
  return false;
}

// The end of a branch becomes the first of the others.
static assay_status_t add_leaf(hanging_t* h, const assay_value_t* v) {
  assay_formula_t* f = NULL;
  assay_tensor_t* t = NULL;
  assay_missing_search_t* s = h->s;
  h->nodes = 0;
  ASSAY_TRY(make(h, v, 0, &f));
  if (!f) return NULL;
  assay_status_t st = assay_formula_evaluate(f, s->m, s->node, s->target->truth, &t);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  if (st || !t) return assay_formula_release(f), st;
  snprintf(s->collected, sizeof s->collected, "%.63s", v->name);
  st = assay_missing_add_made(s, t, f);
  assay_tensor_release(t);
  return st;
}

static assay_status_t add_leaves(hanging_t* h) {
  const assay_graph_t* g = h->s->node->graph;
  size_t n = 0;
  for (size_t i = 0; i < g->n_nodes && n < LEAVES; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs && n < LEAVES; k++) {
      const assay_value_t* v = g->nodes[i]->outputs[k];
      if (!v || v == h->s->target->value || !h->hangs[v->id] || is_read(g, v)) continue;
      n++;
      ASSAY_TRY(add_leaf(h, v));
    }
  return NULL;
}

// An end as it is, or after a function or numbers.
static assay_status_t take_ends(assay_missing_search_t* s, const assay_missing_place_t* p) {
  for (size_t i = 0; i < s->n_made && !assay_missing_is_over(s); i++) {
    assay_missing_place_t end = *p;
    end.x = s->others[i].tensor;
    end.source = s->others[i].value;
    ASSAY_TRY(
        assay_missing_try(s, &end, &(assay_formula_terms_t){.program = "x"}, "lost end", "take"));
    if (!assay_missing_is_over(s)) ASSAY_TRY(assay_missing_fits(s, &end));
    if (!assay_missing_is_over(s)) ASSAY_TRY(assay_missing_activations(s, &end));
  }
  return NULL;
}

// Two ends first, since what joins them explains that both are there; then one; then one and what
// stands near.
static assay_status_t join(assay_missing_search_t* s, assay_tensor_t* want) {
  const assay_missing_place_t p = {
      .kind = ASSAY_EDIT_AFTER, .index = s->output, .x = s->target->truth, .want = want};
  const size_t near = s->n_made + BESIDE;
  if (s->n_made > 1) ASSAY_TRY(assay_missing_of_two(s, &p, s->n_made));
  if (!assay_missing_is_over(s)) ASSAY_TRY(take_ends(s, &p));
  if (!assay_missing_is_over(s))
    ASSAY_TRY(assay_missing_of_two(s, &p, near < s->n_others ? near : s->n_others));
  return assay_missing_is_over(s) ? NULL : assay_missing_values(s, &p);
}

assay_status_t assay_missing_hanging(assay_missing_search_t* s, assay_tensor_t* want) {
  const size_t values = (size_t)s->node->graph->model->n_values;
  hanging_t h = {.s = s};
  if (!s->target->truth || s->target->truth->kind != ASSAY_KIND_TENSOR) return NULL;
  assay_status_t st = assay_new_array(values, sizeof *h.hangs, &h.hangs);
  if (!st) st = assay_new_array(values, sizeof *h.needed, &h.needed);
  if (!st && mark(&h)) st = add_leaves(&h);
  assay_free(h.hangs);
  assay_free(h.needed);
  return st || !s->n_made ? st : join(s, want);
}
