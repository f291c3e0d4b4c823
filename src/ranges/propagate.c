// From the inputs' box through the graph, node by node.
#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "exec/backend.h"
#include "ranges/affine.h"

static const double INF = (double)INFINITY;

struct assay_ranger {
  const assay_layers_t* layers;
  const assay_ranges_options_t* options;
  assay_evaluator_t* truth;   // asked what operators make of ends
  assay_evaluator_t* engine;  // runs what is known exactly, as the emulated engine does
  assay_range_t* ranges;      // by value id
  assay_affine_t* forms;      // by value id
  int64_t n_sources;
  int* last;  // by value id: position of the last node of the top graph that reads it
  assay_ranges_t* out;
  bool stop;
};

const char* assay_hazard_name(assay_hazard_kind_t kind) {
  static const char* const names[] = {[ASSAY_HAZARD_OVERFLOW] = "overflow",
                                      [ASSAY_HAZARD_ACCUMULATOR] = "accumulator overflow",
                                      [ASSAY_HAZARD_DIVISION] = "division by zero",
                                      [ASSAY_HAZARD_DOMAIN] = "outside the domain",
                                      [ASSAY_HAZARD_INVALID] = "invalid",
                                      [ASSAY_HAZARD_CAST] = "cast out of range",
                                      [ASSAY_HAZARD_WRAP] = "integer overflow",
                                      [ASSAY_HAZARD_UNKNOWN] = "not known"};
  return names[kind];
}

void assay_ranges_deinit(assay_ranges_t* r) {
  assay_free(r->hazards);
  assay_free(r->values);
  *r = (assay_ranges_t){0};
}

const assay_range_t* assay_ranger_get(const assay_ranger_t* r, const assay_value_t* v) {
  return v && r->ranges[v->id].lo ? &r->ranges[v->id] : NULL;
}

static const assay_layer_t* layer_of(const assay_ranger_t* r, const assay_node_t* node) {
  const int i = r->layers->layer_of_node[node->id];
  return i < 0 ? NULL : &r->layers->layers[i];
}

assay_format_t assay_ranger_storage(const assay_range_node_t* c, assay_type_t type) {
  return assay_layer_storage(layer_of(c->ranger, c->node), type);
}

// ---- rows ---------------------------------------------------------------------------------------

#define ASSAY_RANGE(of, name, function, ...) \
  {.domain = of, .op = name, .run = function, __VA_ARGS__},
static const assay_range_row_t rows[] = {
#include "ranges/rows.inc"
};
#undef ASSAY_RANGE

const assay_range_row_t* assay_range_find(const assay_node_t* node) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].op, node->op_type) && !strcmp(rows[i].domain, node->domain))
      return &rows[i];
  return NULL;
}

// ---- evaluating ---------------------------------------------------------------------------------

assay_status_t assay_range_evaluate(const assay_range_node_t* c, assay_tensor_t* const* in,
                                    assay_tensor_t** out) {
  return assay_evaluator_node(c->ranger->truth, c->node, c->n_in, in, c->n_out, out);
}

assay_status_t assay_range_evaluate_as(const assay_range_node_t* c, const assay_node_t* node,
                                       size_t n_in, assay_tensor_t* const* in, size_t n_out,
                                       assay_tensor_t** out) {
  return assay_evaluator_node(c->ranger->truth, node, n_in, in, n_out, out);
}

static assay_status_t evaluate_for_bound(assay_bound_t* b, bool coarse, assay_tensor_t* const* in,
                                         assay_tensor_t** out) {
  const assay_range_node_t* c = b->driver;
  (void)coarse;
  return assay_range_evaluate(c, in, out);
}

static bool known_numbers(const assay_range_node_t* c) {
  for (size_t i = 0; i < c->n_in; i++) {
    if (!assay_range_has(c, i)) continue;
    if (!c->in[i].lo) return false;
    if (assay_range_exact(&c->in[i])) continue;
    if (!assay_range_is_float(&c->in[i]) || !(assay_range_magnitude(&c->in[i]) < INF)) return false;
  }
  return true;
}

static assay_status_t take_limits(assay_range_node_t* c, assay_tensor_t* const* y,
                                  const assay_limits_t* e) {
  for (size_t i = 0; i < c->n_out; i++) {
    const bool is_float = y[i] && y[i]->kind == ASSAY_KIND_TENSOR && y[i]->store == ASSAY_STORE_F64;
    assay_tensor_t *lo = NULL, *hi = NULL;
    if (!y[i] || (!is_float && e[i].guaranteed)) continue;
    if (!is_float) {
      c->out[i] = (assay_range_t){assay_tensor_retain(y[i]), assay_tensor_retain(y[i])};
      continue;
    }
    ASSAY_TRY(assay_tensor_copy(y[i], &lo));
    assay_status_t st = assay_tensor_copy(y[i], &hi);
    if (st) return assay_tensor_release(lo), st;
    bool fine = true;
    for (int64_t k = 0; k < lo->size; k++) {
      const double by = e[i].guaranteed ? assay_f64(e[i].guaranteed)[k] : 0;
      assay_f64(lo)[k] -= by;
      assay_f64(hi)[k] += by;
      fine &= assay_f64(lo)[k] > -INF && assay_f64(hi)[k] < INF;
    }
    if (fine) {
      assay_range_set(&c->out[i], lo, hi);
    } else {
      assay_tensor_release(lo);
      assay_tensor_release(hi);
    }
  }
  return NULL;
}

assay_status_t assay_range_by_bound(assay_range_node_t* c) {
  assay_tensor_t **in = NULL, **y = NULL;
  assay_limits_t *in_error = NULL, *out_error = NULL;
  const assay_op_t* op = c->node->op;
  if (!op || !op->bound || op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM) || !known_numbers(c))
    return NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_out, sizeof *y, &y);
  if (!st) st = assay_new_array(c->n_in, sizeof *in_error, &in_error);
  if (!st) st = assay_new_array(c->n_out, sizeof *out_error, &out_error);
  for (size_t i = 0; !st && i < c->n_in; i++) {
    if (!assay_range_has(c, i)) continue;
    if (assay_range_exact(&c->in[i])) {
      in[i] = assay_tensor_retain(c->in[i].lo);
      continue;
    }
    st = assay_range_take(&c->in[i], ASSAY_RANGE_MIDDLE, &in[i]);
    if (!st) st = assay_range_take(&c->in[i], ASSAY_RANGE_HALF_WIDTH, &in_error[i].guaranteed);
    if (!st) in_error[i].probable = assay_tensor_retain(in_error[i].guaranteed);
  }
  if (!st) st = assay_range_evaluate(c, in, y);
  assay_bound_t b = {.node = c->node,
                     .rounding = &c->rounding,
                     .n_in = c->n_in,
                     .n_out = c->n_out,
                     .in = in,
                     .in_error = in_error,
                     .out = y,
                     .out_error = out_error,
                     .evaluate = evaluate_for_bound,
                     .driver = c};
  if (!st) {
    st = assay_bound_node(&b);
    const bool unsupported = st && assay_status_code(st) == ASSAY_UNSUPPORTED;
    if (!st && !b.open) st = take_limits(c, y, out_error);
    if (unsupported) {
      assay_status_free(st);
      st = NULL;
    }
  }
  for (size_t i = 0; in_error && i < c->n_in; i++) assay_limits_deinit(&in_error[i]);
  for (size_t i = 0; out_error && i < c->n_out; i++) assay_limits_deinit(&out_error[i]);
  if (in) assay_range_release_all(c->n_in, in);
  if (y) assay_range_release_all(c->n_out, y);
  assay_free(in);
  assay_free(y);
  assay_free(in_error);
  assay_free(out_error);
  return st;
}

// ---- what enters a node -------------------------------------------------------------------------

// Signs of infinities in a range: bit 0 negative, bit 1 positive.
static int infinities(const assay_range_t* r) {
  double lo, hi;
  if (!assay_range_is_float(r)) return 0;
  assay_range_ends(r, &lo, &hi);
  return (lo == -INF) | (hi == INF) << 1;
}

static assay_status_t round_both(const assay_range_t* r, assay_format_t f, assay_range_t* out) {
  assay_tensor_t *lo = NULL, *hi = NULL;
  ASSAY_TRY(assay_round_tensor(r->lo, f, &lo));
  assay_status_t st = r->hi == r->lo ? NULL : assay_round_tensor(r->hi, f, &hi);
  if (st) return assay_tensor_release(lo), st;
  if (!hi) hi = assay_tensor_retain(lo);
  *out = (assay_range_t){lo, hi};
  return NULL;
}

// Ends past the format are told and put at its end.
static assay_status_t keep_finite(assay_range_t* r, double max, int allowed) {
  assay_tensor_t *lo = NULL, *hi = NULL;
  ASSAY_TRY(assay_tensor_copy(r->lo, &lo));
  assay_status_t st = assay_tensor_copy(r->hi, &hi);
  if (st) return assay_tensor_release(lo), st;
  for (int64_t i = 0; i < lo->size; i++) {
    double *a = &assay_f64(lo)[i], *b = &assay_f64(hi)[i];
    if (isnan(*a)) *a = -max;
    if (isnan(*b)) *b = max;
    if (!(allowed & 1)) *a = fmax(*a, -max), *b = fmax(*b, -max);
    if (!(allowed & 2)) *b = fmin(*b, max), *a = fmin(*a, max);
  }
  assay_range_set(r, lo, hi);
  return NULL;
}

static assay_status_t enter(assay_range_node_t* c, size_t i) {
  assay_ranger_t* r = c->ranger;
  const assay_value_t* v = c->node->inputs[i];
  assay_range_t held = {0};
  assay_status_t st = NULL;
  if (!v) return NULL;
  if (r->ranges[v->id].lo) {
    held = assay_range_retain(&r->ranges[v->id]);
  } else if (v->constant) {
    st = assay_tensor_widen(v->constant, &held.lo);
    if (!st) held.hi = assay_tensor_retain(held.lo);
  }
  if (st || !held.lo) return st;
  const assay_format_t f =
      assay_layer_operand(r->layers, layer_of(r, c->node), c->node, i, held.lo);
  if (f != ASSAY_FORMAT_NONE && held.lo->store == ASSAY_STORE_F64) {
    assay_range_t rounded = {0};
    const int before = infinities(&held);
    st = round_both(&held, f, &rounded);
    const int after = st ? 0 : infinities(&rounded);
    // A constant past the format is infinite in it (the audit of constants says so); an input
    // overflows.
    if (!st && after & ~before && !v->constant && !assay_range_exact(&held)) {
      const double max = assay_format_info(f)->max;
      double lo, hi;
      assay_range_ends(&held, &lo, &hi);
      assay_range_hazard(c, ASSAY_HAZARD_OVERFLOW, 0, -1, hi > max ? hi : lo, hi > max ? lo : hi,
                         max);
      c->hazard.value = v;
      c->hazard.format = f;
      st = keep_finite(&rounded, max, before);
    }
    assay_range_release(&held);
    held = rounded;
  }
  c->in[i] = held;
  return st;
}

// ---- what leaves it -----------------------------------------------------------------------------

typedef struct past {
  int64_t at;
  double figure, other;
} past_t;

// The element that goes farthest past the format, among those that no infinity that came in
// explains.
static past_t find_past(const assay_range_t* exact, const assay_range_t* stored, int allowed) {
  past_t p = {-1, 0, 0};
  for (int64_t k = 0; k < stored->lo->size; k++) {
    const double lo = assay_f64(exact->lo)[k], hi = assay_f64(exact->hi)[k];
    const double sl = assay_f64(stored->lo)[k], sh = assay_f64(stored->hi)[k];
    const bool below = (isnan(sl) || sl == -INF) && !(lo == -INF && allowed & 1);
    const bool above = (isnan(sh) || sh == INF) && !(hi == INF && allowed & 2);
    const double figure = above && (!below || hi >= -lo) ? hi : lo;
    if ((below || above) && (p.at < 0 || fabs(figure) > fabs(p.figure)))
      p = (past_t){k, figure, figure == hi ? lo : hi};
  }
  return p;
}

// Rounds an output to where it is stored.
static assay_status_t store(assay_range_node_t* c, size_t i, int allowed) {
  assay_range_t* r = &c->out[i];
  if (!assay_range_is_float(r)) return NULL;
  const assay_format_t f = assay_ranger_storage(c, r->lo->type);
  if (f == ASSAY_FORMAT_NONE || !assay_format_info(f)->is_float) return NULL;
  assay_range_t stored = {0};
  ASSAY_TRY(round_both(r, f, &stored));
  const past_t p = find_past(r, &stored, allowed);
  const double max = assay_format_info(f)->max;
  assay_status_t st = NULL;
  if (p.at >= 0) {
    assay_range_hazard(c, ASSAY_HAZARD_OVERFLOW, i, p.at, p.figure, p.other, max);
    if (c->hazard.format == ASSAY_FORMAT_NONE) c->hazard.format = f;
    st = keep_finite(&stored, max, allowed);
  }
  if (st) return assay_range_release(&stored), st;
  assay_range_release(r);
  assay_tensor_t *lo = stored.lo, *hi = stored.hi;
  assay_range_set(r, lo, hi);
  return NULL;
}

static void note_value(assay_ranger_t* r, const assay_value_t* v, const assay_range_t* of) {
  assay_value_range_t* to = &r->out->values[v->id];
  double lo, hi;
  assay_range_ends(of, &lo, &hi);
  if (lo > hi) return;
  *to = to->known ? (assay_value_range_t){fmin(to->lo, lo), fmax(to->hi, hi), true}
                  : (assay_value_range_t){lo, hi, true};
}

static assay_status_t note_hazard(assay_ranger_t* r, const assay_hazard_t* h) {
  assay_ranges_t* out = r->out;
  for (size_t i = 0; i < out->n_hazards; i++)  // in another round of a loop
    if (out->hazards[i].node == h->node) return NULL;
  ASSAY_TRY(assay_grow(&out->hazards, &out->cap_hazards, out->n_hazards + 1, sizeof *out->hazards));
  out->hazards[out->n_hazards++] = *h;
  out->n_unknown += h->kind == ASSAY_HAZARD_UNKNOWN;
  r->stop |= r->options->first_only;
  return NULL;
}

static assay_status_t settle_form(assay_ranger_t* r, const assay_value_t* v, assay_format_t format);

static assay_status_t leave(assay_range_node_t* c) {
  assay_ranger_t* r = c->ranger;
  int allowed = 0;
  for (size_t i = 0; i < c->n_in; i++) allowed |= infinities(&c->in[i]);
  // What falls turns them round.
  const char* signs = c->row && c->row->signs ? c->row->signs : "";
  if (strpbrk(signs, "-*|") || (c->row && !c->row->signs)) allowed = allowed ? 3 : 0;
  for (size_t i = 0; i < c->n_out; i++) {
    if (!c->node->outputs[i]) continue;
    ASSAY_TRY(store(c, i, allowed));
    assay_range_t* slot = &r->ranges[c->node->outputs[i]->id];
    assay_range_release(slot);
    *slot = c->out[i];
    c->out[i] = (assay_range_t){0};
    if (slot->lo) note_value(r, c->node->outputs[i], slot);
    if (i > 0) assay_affine_deinit(&r->forms[c->node->outputs[i]->id]);
    ASSAY_TRY(settle_form(
        r, c->node->outputs[i],
        assay_range_is_float(slot) ? assay_ranger_storage(c, slot->lo->type) : ASSAY_FORMAT_NONE));
  }
  if (!c->has_hazard) return NULL;
  if (c->hazard.format == ASSAY_FORMAT_NONE)
    c->hazard.format = assay_ranger_storage(c, ASSAY_TYPE_FLOAT);
  if (c->hazard.kind == ASSAY_HAZARD_ACCUMULATOR) c->hazard.format = c->rounding.accumulator;
  return note_hazard(r, &c->hazard);
}

// ---- one node -----------------------------------------------------------------------------------

static bool all_exact(const assay_range_node_t* c) {
  for (size_t i = 0; i < c->n_in; i++)
    if (assay_range_has(c, i) && !assay_range_exact(&c->in[i])) return false;
  return !(c->node->op->flags & (ASSAY_OP_RANDOM | ASSAY_OP_CONTROL));
}

// What is known exactly is what the engine makes of it.
static assay_status_t run_exact(assay_range_node_t* c) {
  assay_tensor_t **in = NULL, **out = NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_out, sizeof *out, &out);
  for (size_t i = 0; !st && i < c->n_in; i++) in[i] = c->in[i].lo;
  if (!st) st = assay_evaluator_node(c->ranger->engine, c->node, c->n_in, in, c->n_out, out);
  for (size_t i = 0; !st && i < c->n_out; i++) {
    if (!out[i]) continue;
    c->out[i] = (assay_range_t){out[i], assay_tensor_retain(out[i])};
    for (int64_t k = 0; assay_range_is_float(&c->out[i]) && k < out[i]->size; k++)
      if (isnan(assay_f64(out[i])[k])) {
        assay_range_hazard(c, ASSAY_HAZARD_INVALID, i, k, (double)NAN, (double)NAN, 0);
        break;
      }
  }
  assay_free(in);
  assay_free(out);
  return st;
}

static bool unknown_outputs(const assay_range_node_t* c) {
  for (size_t i = 0; i < c->n_out; i++)
    if (c->node->outputs[i] && !c->out[i].lo) return true;
  return false;
}

// What is left of an operator that none of the ways says anything of: the range of its type.
static assay_status_t give_up(assay_range_node_t* c) {
  bool floats = false;
  for (size_t i = 0; i < c->n_out; i++) {
    const assay_valtype_t* t = c->node->outputs[i] ? c->node->outputs[i]->type : NULL;
    if (!c->node->outputs[i] || c->out[i].lo) continue;
    ASSAY_TRY(assay_range_whole(c, i));
    floats |= !t || assay_type_is_float(t->elem) || !c->out[i].lo;
  }
  if (floats) assay_range_hazard(c, ASSAY_HAZARD_UNKNOWN, 0, -1, 0, 0, 0);
  return NULL;
}

static assay_status_t run_ways(assay_range_node_t* c) {
  if (!c->node->op) return give_up(c);
  const uint32_t flags = c->node->op->flags;
  if (all_exact(c)) return run_exact(c);
  if (c->row) ASSAY_TRY(c->row->run(c));
  if (!c->row && flags & ASSAY_OP_MOVES && !(flags & ASSAY_OP_CONTROL))
    ASSAY_TRY(assay_range_moved(c));
  if (unknown_outputs(c) && !(flags & ASSAY_OP_MOVES)) ASSAY_TRY(assay_range_by_bound(c));
  return unknown_outputs(c) ? give_up(c) : NULL;
}

static void set_rounding(assay_range_node_t* c) {
  assay_tensor_t* none[1] = {NULL};
  assay_backend_emu.rounding(NULL, layer_of(c->ranger, c->node), 0, none, &c->rounding);
  bool wide = false;
  for (size_t i = 0; i < c->n_in; i++)
    if (c->in[i].lo && c->in[i].lo->kind == ASSAY_KIND_TENSOR &&
        c->in[i].lo->type == ASSAY_TYPE_DOUBLE)
      wide = true;
  if (wide) c->rounding.compute = c->rounding.accumulator = ASSAY_FORMAT_FP64;
  const assay_format_info_t *f = assay_format_info(c->rounding.compute),
                            *a = assay_format_info(c->rounding.accumulator);
  c->u = fmax(f->unit_roundoff, a->unit_roundoff);
  c->tiny = fmax(f->min_subnormal, a->min_subnormal);
  c->inner_max = fmin(f->max, a->max);
}

// Whether a value is rounded further as it enters a layer than it was as it was stored.
static bool is_coarser(assay_format_t f, assay_format_t stored) {
  if (f == ASSAY_FORMAT_NONE || stored == ASSAY_FORMAT_NONE || !assay_format_info(f)->is_float)
    return false;
  const assay_format_info_t *a = assay_format_info(f), *b = assay_format_info(stored);
  return a->unit_roundoff > b->unit_roundoff || a->min_subnormal > b->min_subnormal;
}

// The affine form of what the node makes, if its inputs have some.
static assay_status_t carry_form(assay_range_node_t* c) {
  assay_ranger_t* r = c->ranger;
  const assay_affine_t** in = NULL;
  assay_affine_t* rounded = NULL;
  const assay_value_t* v = c->n_out ? c->node->outputs[0] : NULL;
  assay_affine_t made = {0};
  if (!v) return NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_in, sizeof *rounded, &rounded);
  for (size_t i = 0; !st && i < c->n_in; i++) {
    const assay_value_t* x = c->node->inputs[i];
    in[i] = x && r->forms[x->id].source ? &r->forms[x->id] : NULL;
    if (!in[i] || !c->in[i].lo) continue;
    const assay_format_t f =
        assay_layer_operand(r->layers, layer_of(r, c->node), c->node, i, c->in[i].lo);
    if (!is_coarser(f, in[i]->format)) continue;
    st = assay_affine_enter(in[i], f, &rounded[i]);
    in[i] = &rounded[i];
  }
  if (!st && c->out[0].lo) st = assay_affine_run(c, in, &made);
  for (size_t i = 0; rounded && i < c->n_in; i++) assay_affine_deinit(&rounded[i]);
  assay_free(rounded);
  assay_free(in);
  assay_affine_deinit(&r->forms[v->id]);
  r->forms[v->id] = made;
  return st;
}

// What has none begins one, once its range is as it is stored.
static assay_status_t settle_form(assay_ranger_t* r, const assay_value_t* v,
                                  assay_format_t format) {
  assay_affine_t* form = &r->forms[v->id];
  if (form->source) return assay_affine_store(form, format), NULL;
  return assay_affine_begin(&r->ranges[v->id], ++r->n_sources, format, form);
}

static assay_status_t run_node(assay_ranger_t* r, const assay_node_t* node) {
  assay_range_node_t c = {.ranger = r,
                          .node = node,
                          .row = assay_range_find(node),
                          .n_in = node->n_inputs,
                          .n_out = node->n_outputs};
  assay_status_t st = assay_new_array(c.n_in, sizeof *c.in, &c.in);
  if (!st) st = assay_new_array(c.n_out, sizeof *c.out, &c.out);
  for (size_t i = 0; !st && i < c.n_in; i++) st = enter(&c, i);
  if (!st) set_rounding(&c);
  if (!st) st = run_ways(&c);
  if (!st) st = assay_range_by_facts(&c);
  if (!st) st = carry_form(&c);
  if (!st) st = leave(&c);
  for (size_t i = 0; c.in && i < c.n_in; i++) assay_range_release(&c.in[i]);
  for (size_t i = 0; c.out && i < c.n_out; i++) assay_range_release(&c.out[i]);
  assay_free(c.in);
  assay_free(c.out);
  assay_free(c.slack);
  return st;
}

// ---- graphs -------------------------------------------------------------------------------------

assay_status_t assay_ranger_graph(assay_ranger_t* r, const assay_graph_t* g, size_t n_in,
                                  const assay_range_t* in, size_t n_out, assay_range_t* out) {
  assay_status_t st = NULL;
  for (size_t i = 0; i < n_in && i < g->n_inputs; i++) {
    assay_range_release(&r->ranges[g->inputs[i]->id]);
    r->ranges[g->inputs[i]->id] = assay_range_retain(&in[i]);
  }
  for (size_t i = 0; !st && !r->stop && i < g->n_nodes; i++) st = run_node(r, g->nodes[i]);
  for (size_t i = 0; !st && i < n_out && i < g->n_outputs; i++) {
    const assay_value_t* v = g->outputs[i];
    assay_range_release(&out[i]);
    out[i] = assay_range_retain(&r->ranges[v->id]);
    if (!out[i].lo && v->constant) {
      st = assay_tensor_widen(v->constant, &out[i].lo);
      if (!st) out[i].hi = assay_tensor_retain(out[i].lo);
    }
  }
  for (size_t i = 0; i < g->n_inputs; i++) assay_range_release(&r->ranges[g->inputs[i]->id]);
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k]) {
        assay_range_release(&r->ranges[g->nodes[i]->outputs[k]->id]);
        assay_affine_deinit(&r->forms[g->nodes[i]->outputs[k]->id]);
      }
  return st;
}

static void note_reads(assay_ranger_t* r, const assay_node_t* node, int at) {
  for (size_t i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]) r->last[node->inputs[i]->id] = at;
  for (size_t a = 0; a < node->n_attrs; a++) {
    const assay_attr_t* attr = &node->attrs[a];
    if (attr->type != ASSAY_ATTR_GRAPH) continue;
    const assay_graph_t* g = attr->u.g;
    for (size_t i = 0; i < g->n_nodes; i++) note_reads(r, g->nodes[i], at);
    for (size_t i = 0; i < g->n_outputs; i++) r->last[g->outputs[i]->id] = at;
  }
}

// What nobody reads any more. Facts look two nodes back at most for numbers, which are constants.
static void release_behind(assay_ranger_t* r, const assay_graph_t* g, size_t at) {
  const assay_node_t* node = g->nodes[at];
  for (size_t i = 0; i < node->n_inputs; i++) {
    const assay_value_t* v = node->inputs[i];
    if (!v || r->last[v->id] != (int)at || !v->type || !r->ranges[v->id].lo ||
        r->ranges[v->id].lo->size <= 16)
      continue;
    assay_range_release(&r->ranges[v->id]);
    assay_affine_deinit(&r->forms[v->id]);
  }
}

static assay_status_t set_input(assay_ranger_t* r, const assay_box_input_t* in) {
  const assay_valtype_t* t = in->value->type ? in->value->type : in->value->declared;
  int64_t dims[ASSAY_MAX_RANK];
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return NULL;
  for (int k = 0; k < t->rank; k++)
    if (!assay_dim_value(t->dims[k], &dims[k]))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' has an open shape, %s; give --shape",
                         in->value->name, ASSAY_VALTYPE_TEXT(t));
  assay_range_t x = {0};
  ASSAY_TRY(assay_range_fill(t->elem, t->rank, dims, in->lo, in->hi, &x));
  if (!x.lo) return NULL;
  assay_range_t* slot = &r->ranges[in->value->id];
  if (assay_range_is_float(&x)) {
    const assay_format_t f = assay_type_format(t->elem);
    assay_status_t st = round_both(&x, f, slot);
    assay_range_release(&x);
    return st ? st : assay_affine_begin(slot, ++r->n_sources, f, &r->forms[in->value->id]);
  }
  *slot = x;
  return NULL;
}

static void configure(void* user, const assay_node_t* node, assay_eval_t* c) {
  assay_layer_arithmetic(layer_of(user, node), c);
}

static assay_status_t ranger_init(assay_ranger_t* r) {
  const assay_model_t* m = r->layers->model;
  const assay_evaluator_config_t truth = {.mode = ASSAY_MODE_TRUTH, .seed = r->layers->seed};
  const assay_evaluator_config_t engine = {.mode = ASSAY_MODE_PLAN,
                                           .arith = ASSAY_ARITH_F32,
                                           .seed = r->layers->seed,
                                           .hooks = {.configure = configure, .user = r}};
  ASSAY_TRY(assay_evaluator_create(m, &truth, &r->truth));
  ASSAY_TRY(assay_evaluator_create(m, &engine, &r->engine));
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *r->ranges, &r->ranges));
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *r->forms, &r->forms));
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *r->last, &r->last));
  for (int i = 0; i < m->n_values; i++) r->last[i] = -1;
  for (size_t i = 0; i < m->graph->n_nodes; i++) note_reads(r, m->graph->nodes[i], (int)i);
  for (size_t i = 0; i < m->graph->n_outputs; i++) r->last[m->graph->outputs[i]->id] = -1;
  r->out->n_values = (size_t)m->n_values;
  return assay_new_array(r->out->n_values, sizeof *r->out->values, &r->out->values);
}

static void ranger_deinit(assay_ranger_t* r) {
  for (int i = 0; r->ranges && i < r->layers->model->n_values; i++)
    assay_range_release(&r->ranges[i]);
  for (int i = 0; r->forms && i < r->layers->model->n_values; i++)
    assay_affine_deinit(&r->forms[i]);
  assay_free(r->ranges);
  assay_free(r->forms);
  assay_free(r->last);
  assay_evaluator_destroy(r->truth);
  assay_evaluator_destroy(r->engine);
}

assay_status_t assay_ranges_find(const assay_plan_t* plan, const assay_box_t* box,
                                 const assay_ranges_options_t* options, assay_ranges_t* out) {
  assay_ranges_t found = {0};
  assay_ranger_t r = {.layers = assay_plan_layers(plan), .options = options, .out = &found};
  const assay_graph_t* g = r.layers->model->graph;
  assay_status_t st = ranger_init(&r);
  for (size_t i = 0; !st && i < box->n; i++)
    if (box->inputs[i].value) st = set_input(&r, &box->inputs[i]);
  for (size_t i = 0; !st && i < g->n_inputs; i++)
    if (r.ranges[g->inputs[i]->id].lo) note_value(&r, g->inputs[i], &r.ranges[g->inputs[i]->id]);
  for (size_t i = 0; !st && !r.stop && i < g->n_nodes; i++) {
    st = assay_cancel_check();
    if (!st) st = run_node(&r, g->nodes[i]);
    if (!st) release_behind(&r, g, i);
    if (options->progress) options->progress(options->user, (double)i / (double)g->n_nodes);
  }
  ranger_deinit(&r);
  if (st) return assay_ranges_deinit(&found), st;
  *out = found;
  return NULL;
}
