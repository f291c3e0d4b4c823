// What a repair does to its own node and to the cheap ones after it, without following it to the
// targets.
#include "diagnose/search_screening.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/cost.h"

// ---- what the nodes are -------------------------------------------------------------------------

// Truth of a value as the model has it: the slots of targets hold golden.
static assay_tensor_t* truth_of(const assay_search_t* s, const assay_value_t* v) {
  for (size_t k = 0; k < s->n_targets; k++)
    if (s->targets[k].value == v) return s->targets[k].truth;
  return assay_evaluator_get(s->evaluator, v);
}

// A node that does no more than this for each element that it reads or writes is cheap.
static const double CHEAP = 12;

// Operations of a node, and elements that it reads and writes.
static assay_status_t measure(const assay_search_t* s, const assay_node_t* n, double* out_flops,
                              double* out_read, double* out_written) {
  assay_tensor_t **in = NULL, **made = NULL;
  assay_cost_t cost = {0};
  assay_status_t st = assay_new_array(n->n_inputs, sizeof *in, &in);
  if (!st) st = assay_new_array(n->n_outputs, sizeof *made, &made);
  *out_read = *out_written = 0;
  for (size_t i = 0; !st && i < n->n_inputs; i++) {
    in[i] = n->inputs[i] ? assay_evaluator_get(s->evaluator, n->inputs[i]) : NULL;
    *out_read += in[i] ? (double)in[i]->size : 0;
  }
  for (size_t i = 0; !st && i < n->n_outputs; i++) {
    made[i] = n->outputs[i] ? assay_evaluator_get(s->evaluator, n->outputs[i]) : NULL;
    *out_written += made[i] ? (double)made[i]->size : 0;
  }
  if (!st) st = assay_cost_of_tensors(n, n->n_inputs, in, n->n_outputs, made, &cost);
  *out_flops = cost.flops;
  assay_free(in);
  assay_free(made);
  return st;
}

assay_status_t assay_screening_init(const assay_search_t* s, assay_screening_t* l) {
  enum { CALL = 10000, ELEMENT = 2 * ASSAY_PROBES };  // compared with what it was, for each probe
  const size_t values = (size_t)s->model->n_values;
  double all = 0;
  *l = (assay_screening_t){.s = s, .shapes_fit = true};
  for (size_t k = 0; k < s->n_targets; k++)
    l->shapes_fit &= assay_difference(s->targets[k].truth, s->targets[k].golden).comparable;
  assay_status_t st = assay_new_array(s->n_nodes, sizeof *l->work, &l->work);
  if (!st) st = assay_new_array(values, sizeof *l->last_reader, &l->last_reader);
  if (!st) st = assay_new_array(values, sizeof *l->through, &l->through);
  for (size_t i = 0; !st && i < values; i++) l->through[i] = true;
  for (size_t i = 0; !st && i < s->n_nodes; i++) {
    const assay_node_t* n = s->nodes[i];
    double flops, read, written;
    st = measure(s, n, &flops, &read, &written);
    if (st) break;
    const bool control = n->op && n->op->flags & ASSAY_OP_CONTROL;
    l->work[i] = all += CALL + flops + ELEMENT * written;
    for (size_t k = 0; k < n->n_inputs; k++) {
      const assay_value_t* v = n->inputs[k];
      if (!v) continue;
      l->last_reader[v->id] = i;
      l->through[v->id] &= !control && flops <= CHEAP * (read + written);
    }
  }
  for (size_t k = 0; !st && k < s->n_targets; k++) l->through[s->targets[k].value->id] = false;
  if (st) assay_screening_deinit(l);
  return st;
}

void assay_screening_deinit(assay_screening_t* l) {
  assay_free(l->work);
  assay_free(l->last_reader);
  assay_free(l->through);
  *l = (assay_screening_t){0};
}

// ---- going on after the node -------------------------------------------------------------------

enum { MAX_CHANGED = 32, MAX_NODES = 16 };

// A value that a look changed.
typedef struct changed {
  const assay_value_t* value;
  assay_tensor_t *now, *was;  // now: retained
  bool open;                  // the nodes that read it are evaluated with it
} changed_t;

typedef struct trail {
  const assay_screening_t* l;
  size_t position;
  changed_t at[MAX_CHANGED];
  size_t n, nodes;
} trail_t;

static void trail_deinit(trail_t* t) {
  for (size_t i = 0; i < t->n; i++) assay_tensor_release(t->at[i].now);
  t->n = 0;
}

static bool may_go_through(const trail_t* t, const assay_value_t* v) {
  const assay_screening_t* l = t->l;
  return l->predict && l->through[v->id] && t->nodes < MAX_NODES &&
         l->last_reader[v->id] <= t->position + ASSAY_PREDICT_WINDOW;
}

// Takes the outputs of a node over. *out_fits false: they make no sense.
static void take(trail_t* t, const assay_node_t* n, assay_tensor_t** out, bool* out_fits) {
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    assay_tensor_t* was = v ? truth_of(t->l->s, v) : NULL;
    if (!v || !out[i] || assay_search_same_tensor(out[i], was)) continue;
    if (t->l->shapes_fit && assay_search_blown_up(out[i], was)) *out_fits = false;
    if (t->n == MAX_CHANGED) {
      *out_fits = false;
      return;
    }
    t->at[t->n++] = (changed_t){v, assay_tensor_retain(out[i]), was, may_go_through(t, v)};
  }
}

static const changed_t* changed_of(const trail_t* t, const assay_value_t* v) {
  for (size_t i = 0; i < t->n; i++)
    if (t->at[i].value == v) return &t->at[i];
  return NULL;
}

static bool reads_open(const trail_t* t, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++) {
    const changed_t* c = n->inputs[i] ? changed_of(t, n->inputs[i]) : NULL;
    if (c && c->open) return true;
  }
  return false;
}

// What the node gives is known where only what comes after it changes.
static assay_status_t follow(const assay_search_t* s, const assay_node_t* n,
                             const assay_repair_t* r, assay_tensor_t* const* in,
                             assay_tensor_t** out) {
  assay_tensor_t** was = NULL;
  ASSAY_TRY(assay_new_array(n->n_outputs, sizeof *was, &was));
  for (size_t i = 0; i < n->n_outputs; i++)
    was[i] = n->outputs[i] ? truth_of(s, n->outputs[i]) : NULL;
  assay_status_t st = assay_repair_follow(s->evaluator, r, n->n_inputs, in, n->n_outputs, was, out);
  assay_free(was);
  return st;
}

// Evaluates a node with what changed, a repair of it, or two constants exchanged.
static assay_status_t run_node(trail_t* t, const assay_node_t* n, const assay_repair_t* r,
                               bool* out_fits) {
  const assay_search_t* s = t->l->s;
  assay_tensor_t **in = NULL, **out = NULL;
  const assay_repair_edit_t* exchange =
      r && r->edits[0].kind == ASSAY_EDIT_EXCHANGE ? r->edits : NULL;
  assay_status_t st = assay_new_array(n->n_inputs, sizeof *in, &in);
  if (!st) st = assay_new_array(n->n_outputs, sizeof *out, &out);
  for (size_t i = 0; !st && i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    if (exchange && v == exchange->value)
      v = exchange->other_value;
    else if (exchange && v == exchange->other_value)
      v = exchange->value;
    const changed_t* c = v ? changed_of(t, v) : NULL;
    in[i] = c && c->open ? c->now : v ? assay_evaluator_get(s->evaluator, v) : NULL;
  }
  if (exchange || !r) r = assay_search_adopted(s, n);
  if (!st && r && assay_repair_only_follows(r) && !assay_search_adopted(s, n))
    st = follow(s, n, r, in, out);
  else if (!st && r)
    st = assay_repair_evaluate(s->evaluator, r, n->n_inputs, in, n->n_outputs, out);
  else if (!st)
    st = assay_evaluator_node(s->evaluator, n, n->n_inputs, in, n->n_outputs, out);
  // What cannot be evaluated does not fit.
  if (st) assay_status_free(st), st = NULL, *out_fits = false;
  if (out && *out_fits) take(t, n, out, out_fits);
  for (size_t i = 0; out && i < n->n_outputs; i++) assay_tensor_release(out[i]);
  assay_free(in);
  assay_free(out);
  return st;
}

// Evaluates what reads the open values, and so on.
static assay_status_t go_on(trail_t* t, bool* out_fits) {
  const assay_search_t* s = t->l->s;
  const size_t end = t->position + 1 + ASSAY_PREDICT_WINDOW;
  for (size_t i = t->position + 1; *out_fits && i < s->n_nodes && i < end; i++) {
    if (!reads_open(t, s->nodes[i])) continue;
    t->nodes++;
    ASSAY_TRY(run_node(t, s->nodes[i], NULL, out_fits));
  }
  return NULL;
}

// ---- looking ------------------------------------------------------------------------------------

static void note_change(const changed_t* c, assay_effect_t* out) {
  out->fits = true;
  if (!assay_tensor_same_shape(c->now, c->was)) {
    out->reshapes = true;
    out->change = 1;
    return;
  }
  const assay_difference_t d = assay_difference(c->now, c->was);
  // Integers and what is not finite count by how many differ.
  double change = d.n ? (double)d.mismatched / (double)d.n : 0;
  if (d.rms > 0) change = fmax(change, d.ref_rms > 0 ? d.rms / d.ref_rms : 1);
  out->change = fmax(out->change, change);
}

// The forecast from the values where the trail ends; open: from the node's own outputs, of which
// there are `own`.
static assay_forecast_t forecast_of(const trail_t* t, size_t own) {
  assay_forecast_t f = {.known = true};
  for (size_t i = 0; i < (own ? own : t->n) && f.known; i++)
    if (own || !t->at[i].open)
      assay_predict_add(t->l->predict, t->at[i].value, t->at[i].now, t->at[i].was, &f);
  return f;
}

static assay_status_t screen_from(trail_t* t, const assay_repair_t* r, assay_effect_t* out) {
  bool fits = true;
  ASSAY_TRY(run_node(t, r->node, r, &fits));
  const size_t own = t->n;
  if (!fits || !own) return NULL;
  if (t->l->predict) ASSAY_TRY(go_on(t, &fits));
  for (size_t i = 0; !fits && i < own; i++)
    out->reshapes |= !assay_tensor_same_shape(t->at[i].now, t->at[i].was);
  if (!fits) return NULL;
  for (size_t i = 0; i < own; i++) note_change(&t->at[i], out);
  if (!t->l->predict) return NULL;
  out->forecast = forecast_of(t, 0);
  if (!out->forecast.known) out->forecast = forecast_of(t, own);
  return NULL;
}

// Two values in each other's place: what that does to all that read them.
static void screen_crossed(const assay_screening_t* l, const assay_repair_edit_t* e,
                           assay_effect_t* out) {
  const assay_value_t *a = e->value, *b = e->other_value;
  assay_tensor_t *x = truth_of(l->s, a), *y = truth_of(l->s, b);
  if (!assay_tensor_same_shape(x, y) || assay_search_same_tensor(x, y)) return;
  const changed_t c[2] = {{.now = y, .was = x}, {.now = x, .was = y}};
  for (int i = 0; i < 2; i++) note_change(&c[i], out);
  if (!l->predict) return;
  out->forecast = (assay_forecast_t){.known = true};
  assay_predict_add(l->predict, a, y, x, &out->forecast);
  assay_predict_add(l->predict, b, x, y, &out->forecast);
}

assay_status_t assay_screen(const assay_screening_t* l, size_t position, const assay_repair_t* r,
                            assay_effect_t* out) {
  trail_t t = {.l = l, .position = position};
  assay_repair_t moved = {0};
  assay_status_t st = NULL;
  *out = (assay_effect_t){0};
  if (r->edits[0].kind == ASSAY_EDIT_CROSS) return screen_crossed(l, &r->edits[0], out), NULL;
  if (r->edits[0].kind == ASSAY_EDIT_EXCHANGE &&
      !assay_search_read_by_faulty(l->s, r->edits[0].other_value))
    return NULL;
  if (r->fits) {
    ASSAY_TRY(assay_repair_copy(r, &moved));
    st = assay_repair_set_value(&moved, r->start + assay_search_first_step(r));
    if (st) return assay_repair_deinit(&moved), assay_status_free(st), NULL;
    r = &moved;
  }
  st = screen_from(&t, r, out);
  trail_deinit(&t);
  if (r == &moved) assay_repair_deinit(&moved);
  return st;
}

// ---- looking by derivatives ---------------------------------------------------------------------

// Constant inputs in which operators are linear, by bits. Source: ONNX 13 and later, the same
// before.
static bool is_linear_in(const assay_node_t* n, size_t input) {
  static const struct {
    const char* op;
    unsigned inputs;
  } rows[] = {{"Conv", 6}, {"MatMul", 3}, {"Gemm", 7}, {"Add", 3}, {"Sub", 3}, {"Mul", 3}};
  if (*n->domain || input > 2 || !n->inputs[input] || !n->inputs[input]->constant) return false;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (i != input && n->inputs[i] == n->inputs[input]) return false;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].op, n->op_type) == 0) return rows[i].inputs >> input & 1;
  return false;
}

// What stands in place of the input with the repair; *out_other: a constant that is no repair's
// own.
static const assay_tensor_t* put_there(const assay_repair_t* r, size_t* out_input) {
  const assay_repair_edit_t* e = &r->edits[0];
  if (r->n_edits != 1 || r->fits) return NULL;
  if (e->kind == ASSAY_EDIT_CONSTANT) return *out_input = e->input, e->tensor;
  if (e->kind != ASSAY_EDIT_EXCHANGE) return NULL;
  const assay_tensor_t* found = NULL;
  for (size_t i = 0; i < r->node->n_inputs; i++) {
    const assay_value_t* v = r->node->inputs[i];
    if (v != e->value && v != e->other_value) continue;
    if (found) return NULL;
    *out_input = i;
    found = (v == e->value ? e->other_value : e->value)->constant;
  }
  return found;
}

bool assay_screen_is_linear(const assay_repair_t* r, size_t* out_input) {
  const assay_tensor_t* t = put_there(r, out_input);
  if (!t || !is_linear_in(r->node, *out_input)) return false;
  return assay_type_is_float(t->type) &&
         assay_tensor_same_shape(t, r->node->inputs[*out_input]->constant);
}

void assay_screen_linear(const assay_screening_t* l, const assay_repair_t* r, size_t input,
                         const double* derivatives, assay_effect_t* out) {
  assay_tensor_t *now = NULL, *was = NULL;
  const assay_tensor_t* t = put_there(r, &input);
  *out = (assay_effect_t){.fits = true};
  if (r->edits[0].kind == ASSAY_EDIT_EXCHANGE &&
      !assay_search_read_by_faulty(l->s, r->edits[0].other_value)) {
    out->fits = false;
    return;
  }
  assay_status_t st = assay_tensor_widen((assay_tensor_t*)t, &now);
  if (!st) st = assay_tensor_widen(r->node->inputs[input]->constant, &was);
  if (!st) {
    const changed_t c = {.now = now, .was = was};
    out->fits = !assay_search_same_tensor(now, was);
    if (out->fits) note_change(&c, out);
    out->forecast = (assay_forecast_t){.known = true};
    assay_predict_products(l->predict, derivatives, now, was, &out->forecast);
  }
  assay_status_free(st);  // without memory nothing is known
  assay_tensor_release(now);
  assay_tensor_release(was);
}
