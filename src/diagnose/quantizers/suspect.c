// Quantizers whose scales golden tells to be wrong: others are tried with all quantizers running.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/quantizers/states.h"

// A quantizer is suspect if its values fill less than this part of its range, or so many of them
// are clipped; scales that should be the same differ by this.
static const double UNUSED = 0.4, CLIPPED = 0.002, DIFFERS = 0.01;
// Outputs that are off by less than NEAR (60 dB) show no wrong scale. A change is kept that leaves
// this part of the error's energy at most.
static const double NEAR = 1e-6, LEFT = 0.25;
// What golden of another kind would not come as near to by chance (50 dB).
static const double RESTORED = 1e-5;
// With the change truth as written is so many times nearer to golden, as energy, than truth without
// quantizers: golden is of a network that quantizes.
static const double NEARER = 1.7;

typedef struct suspect {
  assay_quantizers_t* q;
  const assay_model_t* model;
  const assay_quantizers_options_t* options;
  assay_states_t* states;
  assay_quantizer_state_t* at;
  double deadline;
  double before;  // what golden is off by as the model is; below 0: not measured yet
} suspect_t;

// ---- what scales ought to be -------------------------------------------------------------------

static bool is_op(const assay_node_t* n, const char* op_type) {
  return n && strcmp(n->op_type, op_type) == 0;
}

static assay_quantizer_site_t* site_of_output(const assay_quantizers_t* q, const assay_value_t* v) {
  const assay_node_t* n = v ? v->producer : NULL;
  for (size_t i = 0; n && i < q->n; i++)
    if (is_op(n, "DequantizeLinear") && n->n_inputs &&
        (q->at[i].dequantize == n || n->inputs[0] == q->at[i].node->outputs[0]))
      return &q->at[i];
  return NULL;
}

static assay_status_t take_scales(assay_quantizer_site_t* s, const double* scale, double zero,
                                  const char* how) {
  assay_quantizer_scales_t t = {0};
  ASSAY_TRY(assay_quantizer_scales_create(s->has.axis, s->has.n, &t));
  for (int64_t i = 0; i < t.n; i++) {
    t.scale[i] = (double)(float)scale[i];
    t.zero[i] = s->has.n == 1 ? zero : s->has.zero[i];
  }
  t.how = how;
  assay_quantizer_scales_deinit(&s->fits);
  s->fits = t;
  return NULL;
}

static bool differs(double a, double b) {
  return a > 0 && b > 0 && isfinite(a) && isfinite(b) && fabs(a / b - 1) > DIFFERS;
}

// The integers of a bias are in units of the product of both scales: where they are not, they tell
// the scale that was. *out_found: which of both is taken is for golden to say.
static assay_status_t by_bias(const assay_quantizers_t* q, const assay_node_t* n,
                              assay_quantizer_site_t* s, bool* out_found) {
  if (n->n_inputs < 3 || !n->inputs[2] || !is_op(n->inputs[2]->producer, "DequantizeLinear"))
    return NULL;
  const assay_quantizer_site_t *x = site_of_output(q, n->inputs[0]),
                               *w = site_of_output(q, n->inputs[1]);
  const assay_value_t* v = n->inputs[2]->producer->inputs[1];
  assay_tensor_t* b = NULL;
  if (!x || !w || (s != x && s != w) || x->has.n != 1 || !v->constant) return NULL;
  ASSAY_TRY(assay_tensor_widen(v->constant, &b));
  const bool fits = b->store == ASSAY_STORE_F64 && b->size == w->has.n;
  assay_status_t st = NULL;
  if (fits && s == x) {
    const double scale = assay_f64(b)[0] / w->has.scale[0];
    *out_found = differs(scale, x->has.scale[0]);
    if (*out_found) st = take_scales(s, &scale, s->has.zero[0], "as its bias has it");
  } else if (fits && s == w) {
    double* scales = NULL;
    st = assay_new_array((size_t)b->size, sizeof *scales, &scales);
    for (int64_t i = 0; !st && i < b->size; i++) {
      scales[i] = assay_f64(b)[i] / x->has.scale[0];
      *out_found |= differs(scales[i], w->has.scale[i]);
    }
    if (!st && *out_found) st = take_scales(s, scales, s->has.zero[0], "as their bias has it");
    assay_free(scales);
  }
  assay_tensor_release(b);
  return st;
}

static bool only_moves(const assay_node_t* n) {
  return n && ((n->op && n->op->flags & ASSAY_OP_MOVES) || is_op(n, "MaxPool")) && n->n_inputs;
}

// On both sides of a node that only moves elements scales are the same.
static assay_status_t by_neighbour(const assay_quantizers_t* q, const assay_quantizer_site_t* a,
                                   assay_quantizer_site_t* s, bool* out_found) {
  const assay_node_t *before = s->stored ? NULL : s->value->producer,
                     *after = a->stored ? NULL : a->value->producer;
  const bool beside = (only_moves(before) && site_of_output(q, before->inputs[0]) == a) ||
                      (only_moves(after) && site_of_output(q, after->inputs[0]) == s);
  if (!beside || a->has.n != 1 || s->has.n != 1 || a->type != s->type ||
      !differs(a->has.scale[0], s->has.scale[0]))
    return NULL;
  *out_found = true;
  return take_scales(s, a->has.scale, a->has.zero[0], "as beside it");
}

// ---- trying ------------------------------------------------------------------------------------

static assay_status_t measure(suspect_t* u, double* out, assay_output_check_t** out_outputs) {
  assay_output_check_t* outputs = NULL;
  ASSAY_TRY(assay_output_checks_create(u->model->graph, NULL, &outputs));
  assay_status_t st = assay_states_run(u->states, u->at, true, outputs);
  *out = 0;
  for (size_t i = 0; !st && i < u->q->n_outputs; i++) {
    const assay_error_sum_t* e = &outputs[i].engine_golden;
    if (outputs[i].has_golden && outputs[i].is_float && e->sum_ref2 > 0)
      *out = fmax(*out, e->mismatched ? (double)INFINITY : e->sum_err2 / e->sum_ref2);
  }
  if (st || !out_outputs) return assay_free(outputs), st;
  *out_outputs = outputs;
  return NULL;
}

static void set_all(suspect_t* u, assay_quantizer_state_t state) {
  for (size_t i = 0; i < u->q->n; i++) u->at[i] = u->q->at[i].stored ? ASSAY_STATE_ON : state;
}

// The nearest that golden comes by changes of one quantizer so far.
typedef struct best {
  size_t site;
  assay_quantizer_change_t change;
  assay_quantizer_scales_t fits;
  bool exact;  // the bias or a neighbour says so
  double off;
} best_t;

static assay_status_t try_change(suspect_t* u, size_t site, assay_quantizer_change_t change,
                                 bool exact, best_t* best) {
  assay_quantizer_site_t* s = &u->q->at[site];
  double off = 0;
  const assay_quantizer_state_t was = u->at[site];
  if (u->before < 0) {
    ASSAY_TRY(measure(u, &u->before, NULL));
    best->off = u->before > NEAR ? LEFT * u->before : 0;
  }
  if (!(best->off > 0) || assay_clock_seconds() > u->deadline) return NULL;
  u->at[site] = change == ASSAY_QUANTIZER_PAIRED ? ASSAY_STATE_PAIRED
                : change == ASSAY_QUANTIZER_READ ? ASSAY_STATE_READ
                                                 : ASSAY_STATE_FITS;
  assay_status_t st = measure(u, &off, NULL);
  u->at[site] = was;
  if (st || !(off < best->off)) return st;
  assay_quantizer_scales_deinit(&best->fits);
  *best = (best_t){.site = site, .change = change, .exact = exact, .off = off};
  if (change != ASSAY_QUANTIZER_SCALED) return NULL;
  best->fits = s->fits;  // taken over
  s->fits = (assay_quantizer_scales_t){0};
  return NULL;
}

static bool is_odd(const assay_quantizer_site_t* s) {
  const double range = (s->high - s->low) * s->has.scale[0];
  const double low = fmin(s->min, 0), high = fmax(s->max, 0);
  if (s->stored || s->weight || s->has.n != 1 || !s->elements) return false;
  const double used =
      s->low < 0 && s->has.zero[0] == 0 ? 2 * fmax(-low, high) : high - (s->cuts ? 0 : low);
  return used < UNUSED * range || (double)s->outside > CLIPPED * (double)s->elements;
}

static assay_status_t try_site(suspect_t* u, size_t i, best_t* best) {
  assay_quantizers_t* q = u->q;
  assay_quantizer_site_t* s = &q->at[i];
  const assay_graph_t* g = s->node->graph;
  if (s->reads.n) {
    ASSAY_TRY(try_change(u, i, ASSAY_QUANTIZER_PAIRED, true, best));
    ASSAY_TRY(try_change(u, i, ASSAY_QUANTIZER_READ, true, best));
  }
  if (is_odd(s) && s->fits.n) ASSAY_TRY(try_change(u, i, ASSAY_QUANTIZER_SCALED, false, best));
  for (size_t k = 0; k < g->n_nodes; k++) {
    bool found = false;
    ASSAY_TRY(by_bias(q, g->nodes[k], s, &found));
    if (found) ASSAY_TRY(try_change(u, i, ASSAY_QUANTIZER_SCALED, true, best));
  }
  for (size_t k = 0; k < q->n; k++) {
    bool found = false;
    ASSAY_TRY(by_neighbour(q, &q->at[k], s, &found));
    if (found) ASSAY_TRY(try_change(u, i, ASSAY_QUANTIZER_SCALED, true, best));
  }
  return NULL;
}

static assay_status_t take_best(suspect_t* u, best_t* best, double before, double plain) {
  assay_quantizers_t* q = u->q;
  assay_quantizer_site_t* s = &q->at[best->site];
  double after = 0;
  q->suspected = q->measured = true;
  q->pair = best->change != ASSAY_QUANTIZER_SCALED;
  q->exact = q->pair || best->exact;
  q->certain = q->pair || best->off < RESTORED || NEARER * best->off < plain;
  q->before = before;
  q->change[best->site] = best->change;
  q->n_changed = 1;
  s->loss.all = before;
  s->loss.fitting = best->off;
  if (best->change == ASSAY_QUANTIZER_SCALED) {
    assay_quantizer_scales_deinit(&s->fits);
    s->fits = best->fits;
    best->fits = (assay_quantizer_scales_t){0};
  }
  if (s->stored)
    s->pattern = ASSAY_QUANTIZER_LARGE;
  else
    s->loss.clipping = s->fits.n && s->fits.scale[0] > s->has.scale[0] ? before : 0;
  assay_quantizer_explain(s);
  u->at[best->site] = best->change == ASSAY_QUANTIZER_PAIRED ? ASSAY_STATE_PAIRED
                      : best->change == ASSAY_QUANTIZER_READ ? ASSAY_STATE_READ
                                                             : ASSAY_STATE_FITS;
  return measure(u, &after, &q->fixed);
}

static assay_status_t search(suspect_t* u) {
  assay_quantizers_t* q = u->q;
  double plain = 0;
  ASSAY_TRY(assay_states_observe(u->states, u->q));
  set_all(u, ASSAY_STATE_ON);
  best_t best = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < q->n; i++) st = try_site(u, i, &best);
  if (!st && best.change != ASSAY_QUANTIZER_KEPT) {
    set_all(u, ASSAY_STATE_OFF);
    st = measure(u, &plain, NULL);
    set_all(u, ASSAY_STATE_ON);
    q->after = best.off;
    if (!st) st = take_best(u, &best, u->before, plain);
  }
  assay_quantizer_scales_deinit(&best.fits);
  return st;
}

assay_status_t assay_quantizers_suspect(const assay_model_t* model,
                                        const assay_quantizers_options_t* options,
                                        assay_quantizers_t* out) {
  static const double PART = 0.5;
  const double seconds = options->seconds > 0 ? options->seconds : 40;
  suspect_t u = {.q = out,
                 .model = model,
                 .options = options,
                 .before = -1,
                 .deadline = assay_clock_seconds() + PART * seconds};
  assay_status_t st = assay_quantizers_find(model, out);
  if (!st && out->n && options->inputs->n) {
    out->n_outputs = model->graph->n_outputs;
    st = assay_new_array(out->n_outputs, sizeof *out->outputs, &out->outputs);
    for (size_t i = 0; !st && i < out->n_outputs; i++)
      out->outputs[i].value = model->graph->outputs[i];
    if (!st) st = assay_new_array(out->n, sizeof *u.at, &u.at);
    if (!st) st = assay_new_array(out->n, sizeof *out->change, &out->change);
    if (!st) st = assay_states_create(model, out, options, &u.states);
    if (!st) st = search(&u);
    assay_states_destroy(u.states);
    assay_free(u.at);
  }
  if (st || !out->suspected) assay_quantizers_deinit(out);
  return st;
}
