// Which nodes to keep in higher precision: chosen from the account of a run, or from what truth
// predicts.
#include "diagnose/fp32_set.h"

#include <math.h>

#include "base/alloc.h"
#include "formats/format.h"

void assay_fp32_set_add(assay_fp32_set_t* s, const assay_plan_t* plan, const assay_layer_t* layer) {
  for (size_t k = 0; layer && k < layer->n_nodes; k++) {
    assay_origins_t o = assay_plan_origins(plan, &layer->nodes[k]);
    for (size_t i = 0; i < o.n; i++) {
      s->n_chosen += !s->chosen[o.nodes[i]->id];
      s->chosen[o.nodes[i]->id] = true;
    }
  }
}

static bool is_chosen(const assay_fp32_set_t* s, const assay_plan_t* plan,
                      const assay_layer_t* layer) {
  bool all = true;
  for (size_t k = 0; k < layer->n_nodes; k++) {
    assay_origins_t o = assay_plan_origins(plan, &layer->nodes[k]);
    for (size_t i = 0; i < o.n; i++) all &= s->chosen[o.nodes[i]->id];
  }
  return all;
}

// How much longer a layer takes in fp32 than in 16 bits, in bytes moved: memory at half the speed,
// and products at a small part of it (tensor cores do some 100 operations a byte).
static double extra_time(const assay_layer_account_t* a) {
  return a->cost.bytes / 2 + a->cost.flops / 100 + 1;
}

static assay_status_t note_times(assay_fp32_set_t* s) {
  const assay_fp32_subject_t* c = s->subject;
  ASSAY_TRY(assay_new_array((size_t)c->model->n_node_ids, sizeof *s->time, &s->time));
  const size_t n_layers = c->account ? assay_account_layer_count(c->account) : 0;
  for (size_t i = 0; i < n_layers; i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    const size_t n = a->layer ? a->layer->n_nodes : 0;
    for (size_t k = 0; k < n; k++) {
      assay_origins_t o = assay_plan_origins(c->plan, &a->layer->nodes[k]);
      for (size_t m = 0; m < o.n; m++) s->time[o.nodes[m]->id] += extra_time(a) / (double)(n * o.n);
    }
  }
  return NULL;
}

static double time_of(const assay_fp32_set_t* s, const assay_plan_t* plan,
                      const assay_layer_t* layer) {
  double time = 0;
  for (size_t k = 0; k < layer->n_nodes; k++) {
    assay_origins_t o = assay_plan_origins(plan, &layer->nodes[k]);
    for (size_t i = 0; i < o.n; i++) time += s->time[o.nodes[i]->id];
  }
  return time;
}

// ---- by range -----------------------------------------------------------------------------------

static bool is_low(const assay_layer_account_t* a) {
  return a->layer && a->layer->format != ASSAY_FORMAT_FP32 && a->stores_float;
}

static bool passes(const assay_layer_account_t* a, double x) {
  return x > assay_format_info(a->layer->format)->max;
}

static bool is_graph_output(const assay_graph_t* g, const assay_value_t* v) {
  for (size_t i = 0; i < g->n_outputs; i++)
    if (g->outputs[i] == v) return true;
  return false;
}

static bool absorbs(const assay_layer_account_t* a) {
  return a && a->past_range && a->absorbed == a->past_range;
}

// Whether somebody minds that the layer's outputs are infinities: a graph output, or a reader that
// does not absorb them, or that is to give what they should be.
static bool is_minded(const assay_fp32_set_t* s, const assay_layer_t* layer) {
  const assay_fp32_subject_t* c = s->subject;
  const assay_layers_t* all = assay_plan_layers(c->plan);
  const assay_node_t* last = layer->nodes[layer->n_nodes - 1];
  for (size_t o = 0; o < last->n_outputs; o++) {
    const assay_value_t* v = last->outputs[o];
    if (!v) continue;
    if (is_graph_output(all->model->graph, v)) return true;
    for (size_t l = 0; l < all->n_all_layers; l++) {
      const assay_layer_t* reader = &all->layers[l];
      bool reads = false;
      for (size_t k = 0; k < reader->n_nodes; k++)
        for (size_t i = 0; i < reader->nodes[k]->n_inputs; i++)
          reads |= reader->nodes[k]->inputs[i] == v;
      if (!reads) continue;
      const assay_layer_account_t* a =
          assay_account_of_node(c->account, reader->nodes[reader->n_nodes - 1]);
      if (!absorbs(a) || is_chosen(s, c->plan, reader)) return true;
    }
  }
  return false;
}

// Whether a layer has to be kept: its true values leave the range, or those that it reads do, which
// it would round to infinity on their way in. Where that does no harm it may stay; `all` takes
// these too, and what the engine was seen to fail in.
static bool has_to_be_pinned(const assay_fp32_set_t* s, const assay_layer_account_t* a, bool all) {
  const bool out = passes(a, a->truth_max), in = passes(a, a->truth_max_in);
  const bool failed = a->verdict == ASSAY_VERDICT_INVALID || a->verdict == ASSAY_VERDICT_OVERFLOW;
  if (all) return out || in || failed;
  if (in && !absorbs(a)) return true;
  return out ? is_minded(s, a->layer) : failed && !in;
}

// From the last layer on, so that readers are known.
void assay_fp32_set_add_by_range(assay_fp32_set_t* s, bool all) {
  const assay_fp32_subject_t* c = s->subject;
  for (size_t i = assay_account_layer_count(c->account); i-- > 0;) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    if (is_low(a) && has_to_be_pinned(s, a, all)) assay_fp32_set_add(s, c->plan, a->layer);
  }
}

// Energy of a layer's own error, against what it holds.
static double ratio_of(const assay_layer_account_t* a) {
  return is_low(a) && a->own.sum_ref2 > 0 ? a->own.sum_err2 / a->own.sum_ref2 : 0;
}

// Layers whose choices flipped, which read what they choose by in the low format, and those with
// the largest of these ratios, until so little of their sum is left. For outputs that are no
// floats, and whose error has no shares.
void assay_fp32_set_add_by_error(assay_fp32_set_t* s, double rest) {
  const assay_fp32_subject_t* c = s->subject;
  const size_t n = assay_account_layer_count(c->account);
  double whole = 0;
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    whole += ratio_of(a);
    if (a->flipped) assay_fp32_set_add(s, c->plan, a->layer);
  }
  for (double left = whole; left > rest * whole;) {
    const assay_layer_account_t* worst = NULL;
    for (size_t i = 0; i < n; i++) {
      const assay_layer_account_t* a = assay_account_layer(c->account, i);
      if (ratio_of(a) <= (worst ? ratio_of(worst) : 0) || is_chosen(s, c->plan, a->layer)) continue;
      worst = a;
    }
    if (!worst) return;
    assay_fp32_set_add(s, c->plan, worst->layer);
    left -= ratio_of(worst);
  }
}

// ---- by shares ----------------------------------------------------------------------------------

typedef struct list {
  size_t* at;
  size_t n, capacity;
} list_t;

// The plan while layers are chosen by shares. What a layer loses in storing is lost again where a
// reader in the low format takes it in: its share goes only with all who read it. Of readers that
// only hand elements on, those after them count, too.
typedef struct field {
  const assay_plan_t* plan;
  const assay_layers_t* layers;
  double* share;    // by layer of the top graph
  list_t* readers;  // the same
} field_t;

// Where the user's command says no, and no output is at fault by itself, all count.
static bool counts(const assay_output_check_t* outputs, size_t n, size_t i) {
  bool any = false;
  for (size_t k = 0; k < n; k++) any |= !outputs[k].faithful;
  return !any || !outputs[i].faithful;
}

static bool reads(const assay_layer_t* reader, const assay_node_t* maker) {
  for (size_t k = 0; k < reader->n_nodes; k++)
    for (size_t i = 0; i < reader->nodes[k]->n_inputs; i++)
      if (reader->nodes[k]->inputs[i] && reader->nodes[k]->inputs[i]->producer == maker)
        return true;
  return false;
}

// Whether the layer stores floats that it reads, without a rounding of its own: then none has been
// seen there that an output in fp32 would bring to its readers.
static bool hands_on(const assay_layer_t* l) {
  for (size_t k = 0; k < l->n_nodes; k++) {
    const assay_op_t* op = l->nodes[k]->op;
    const assay_value_t* v = l->nodes[k]->n_outputs ? l->nodes[k]->outputs[0] : NULL;
    if (v && v->type && v->type->elem == ASSAY_TYPE_BOOL) return false;
    if (!op || !(op->flags & ASSAY_OP_MOVES || op->bound == assay_bound_exact)) return false;
  }
  return true;
}

static assay_status_t add_reader(list_t* to, size_t reader) {
  for (size_t i = 0; i < to->n; i++)
    if (to->at[i] == reader) return NULL;
  ASSAY_TRY(assay_grow(&to->at, &to->capacity, to->n + 1, sizeof *to->at));
  to->at[to->n++] = reader;
  return NULL;
}

// Readers lie after the layer; those in bodies after all of the top graph.
static assay_status_t note_readers(field_t* f) {
  const assay_layers_t* l = f->layers;
  ASSAY_TRY(assay_new_array(l->n_layers, sizeof *f->readers, &f->readers));
  for (size_t i = l->n_layers; i-- > 0;) {
    const assay_node_t* last = l->layers[i].nodes[l->layers[i].n_nodes - 1];
    for (size_t r = i + 1; r < l->n_all_layers; r++) {
      if (!reads(&l->layers[r], last)) continue;
      ASSAY_TRY(add_reader(&f->readers[i], r));
      if (r >= l->n_layers || !hands_on(&l->layers[r])) continue;
      for (size_t k = 0; k < f->readers[r].n; k++)
        ASSAY_TRY(add_reader(&f->readers[i], f->readers[r].at[k]));
    }
  }
  return NULL;
}

// Of a layer range no layer is known to have more of its share than another.
static assay_status_t note_shares(field_t* f, const assay_shares_t* shares,
                                  const assay_output_check_t* outputs) {
  ASSAY_TRY(assay_new_array(f->layers->n_layers, sizeof *f->share, &f->share));
  for (size_t i = 0; i < shares->n; i++) {
    double share = 0;
    for (size_t o = 0; o < shares->n_outputs; o++)
      if (counts(outputs, shares->n_outputs, o)) share = fmax(share, fabs(shares->at[i].share[o]));
    for (size_t l = shares->at[i].first; l < shares->at[i].end; l++)
      f->share[l] = share / (double)(shares->at[i].end - shares->at[i].first);
  }
  return NULL;
}

// Shares are projections on the whole error: of an error that comes from few layers, the shares of
// all others are mostly chance.
static void leave_few(field_t* f) {
  static const double LARGE = 0.02, NEARLY_ALL = 0.9;
  double large = 0;
  for (size_t l = 0; l < f->layers->n_layers; l++) large += f->share[l] >= LARGE ? f->share[l] : 0;
  if (large < NEARLY_ALL) return;
  for (size_t l = 0; l < f->layers->n_layers; l++)
    if (f->share[l] < LARGE) f->share[l] = 0;
}

static bool is_wide(const assay_fp32_set_t* s, const field_t* f, size_t layer) {
  const assay_layer_t* l = &f->layers->layers[layer];
  return l->format == ASSAY_FORMAT_FP32 || is_chosen(s, f->plan, l);
}

// What it takes for a layer's share to go, in time; 0: it is gone.
static double price(const assay_fp32_set_t* s, const field_t* f, size_t layer) {
  double time = is_wide(s, f, layer) ? 0 : time_of(s, f->plan, &f->layers->layers[layer]);
  const list_t* r = &f->readers[layer];
  for (size_t i = 0; i < r->n; i++)
    if (!is_wide(s, f, r->at[i])) time += time_of(s, f->plan, &f->layers->layers[r->at[i]]);
  return time;
}

static void buy(assay_fp32_set_t* s, const field_t* f, size_t layer) {
  assay_fp32_set_add(s, f->plan, &f->layers->layers[layer]);
  const list_t* r = &f->readers[layer];
  for (size_t i = 0; i < r->n; i++) assay_fp32_set_add(s, f->plan, &f->layers->layers[r->at[i]]);
}

// Takes the layers with most share for their time, until so little of all is left.
static void buy_shares(assay_fp32_set_t* s, const field_t* f, double rest) {
  double whole = 0, left = 0;
  for (size_t l = 0; l < f->layers->n_layers; l++) whole += f->share[l];
  for (;;) {
    size_t best = SIZE_MAX;
    double maximum = 0;
    left = 0;
    for (size_t l = 0; l < f->layers->n_layers; l++) {
      if (f->share[l] <= 0) continue;
      const double time = price(s, f, l);
      if (time <= 0) continue;
      left += f->share[l];
      if (f->share[l] / time <= maximum) continue;
      best = l;
      maximum = f->share[l] / time;
    }
    if (best == SIZE_MAX || left <= rest * whole) return;
    buy(s, f, best);
  }
}

// The part of the error's energy that may stay.
double assay_fp32_set_tolerated(const assay_fp32_subject_t* c,
                                const assay_output_check_t* outputs) {
  double part = 1;
  for (size_t i = 0; i < c->model->graph->n_outputs; i++) {
    const assay_output_check_t* o = &outputs[i];
    if (o->faithful || !o->is_float) continue;
    const double now = 1 - assay_error_sum_cosine(&o->error);
    const bool asked = c->require && assay_require_has_statistics(c->require);
    part = fmin(part, asked         ? assay_require_margin(c->require, o)
                      : now > 0.001 ? 0.001 / now
                                    : 0.25);
  }
  return part < 1 ? part : 0.25;
}

// Chooses layers by their shares of the error, until so little should be left.
assay_status_t assay_fp32_set_add_by_share(assay_fp32_set_t* s, const assay_plan_t* plan,
                                           const assay_shares_t* shares,
                                           const assay_output_check_t* outputs, double rest,
                                           bool few) {
  field_t f = {.plan = plan, .layers = assay_plan_layers(plan)};
  if (!shares->n) return NULL;
  assay_status_t st = note_readers(&f);
  if (!st) st = note_shares(&f, shares, outputs);
  if (!st && few) leave_few(&f);
  if (!st) buy_shares(s, &f, rest);
  for (size_t l = 0; f.readers && l < f.layers->n_layers; l++) assay_free(f.readers[l].at);
  assay_free(f.readers);
  assay_free(f.share);
  return st;
}

// ---- the set ------------------------------------------------------------------------------------

void assay_fix_deinit(assay_fix_t* f) {
  assay_free(f->nodes);
  assay_free(f->outputs);
  *f = (assay_fix_t){0};
}

assay_status_t assay_fp32_set_create(const assay_fp32_subject_t* subject, assay_fp32_set_t* out) {
  *out = (assay_fp32_set_t){.subject = subject};
  ASSAY_TRY(assay_new_array((size_t)subject->model->n_node_ids, sizeof *out->chosen, &out->chosen));
  assay_status_t st = note_times(out);
  if (st) assay_fp32_set_deinit(out);
  return st;
}

void assay_fp32_set_empty(assay_fp32_set_t* s) {
  for (int i = 0; i < s->subject->model->n_node_ids; i++) s->chosen[i] = false;
  s->n_chosen = 0;
}

void assay_fp32_set_deinit(assay_fp32_set_t* s) {
  assay_free(s->chosen);
  assay_free(s->time);
  *s = (assay_fp32_set_t){0};
}

assay_precision_t assay_fp32_set_precision(const assay_fp32_set_t* s) {
  assay_precision_t p = *s->subject->precision;
  p.pinned = s->chosen;
  p.pinned_format = ASSAY_FORMAT_FP32;
  return p;
}

assay_status_t assay_fp32_set_record(const assay_fp32_set_t* s, assay_fix_t* out) {
  const assay_model_t* m = s->subject->model;
  assay_free(out->nodes);
  out->nodes = NULL;
  out->n_nodes = 0;
  ASSAY_TRY(assay_new_array(s->n_chosen, sizeof *out->nodes, &out->nodes));
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++)
      if (s->chosen[m->graphs[g]->nodes[i]->id])
        out->nodes[out->n_nodes++] = m->graphs[g]->nodes[i];
  out->format = ASSAY_FORMAT_FP32;
  return NULL;
}
