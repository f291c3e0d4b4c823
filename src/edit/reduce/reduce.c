// A minimal model that still fails: a part of a model, the values that enter it, and what should
// leave it.
#include "edit/reduce/reduce.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "edit/reduce/reduce_internal.h"
#include "edit/reduce/reduce_sets.h"

// Layers to blame that are tried by themselves, rings around the first of them, and how many nodes
// these may hold.
enum { MAX_SEEDS = 5, MAX_RINGS = 4, MAX_AROUND = 48 };
static const double DEFAULT_SECONDS = 60;

const char* assay_reduce_verdict_name(assay_reduce_verdict_t v) {
  static const char* const names[] = {"reduced", "whole", "sound"};
  return names[v];
}

const char* assay_reduce_way_name(assay_reduce_way_t w) {
  static const char* const names[] = {"alone", "neighbours", "delta"};
  return names[w];
}

// Nodes of the top graph that were run, and failed.
typedef struct attempt {
  bool* nodes;  // NULL: none has
  assay_piece_t piece;
  assay_samples_t inputs;
  assay_reduce_failure_t failure;
  bool finite, from_truth;  // how it was fed
} attempt_t;

typedef struct reducing {
  const assay_reduce_options_t* o;
  assay_model_t* model;
  const assay_graph_t* g;
  const assay_samples_t* samples;
  assay_set_t* golden;  // by sample; NULL: none
  assay_reduce_values_t values;
  assay_reduced_t* out;
  double start;
  bool* seeds[MAX_SEEDS];  // layers to blame, by place of their nodes in the top graph
  size_t n_seeds;
  size_t* failing;  // samples, the worst one first
  attempt_t best;
} reducing_t;

static bool is_late(reducing_t* r) {
  const double max = r->o->seconds > 0 ? r->o->seconds : DEFAULT_SECONDS;
  if (assay_clock_seconds() - r->start > max) r->out->cut_short = true;
  return r->out->cut_short;
}

static void attempt_deinit(attempt_t* a) {
  assay_free(a->nodes);
  assay_piece_deinit(&a->piece);
  assay_samples_deinit(&a->inputs);
  *a = (attempt_t){0};
}

// ---- whom a check blames ------------------------------------------------------------------------

// The node of the top graph in which a node lies; SIZE_MAX: it is in none.
static size_t place_of(const reducing_t* r, const assay_node_t* n) {
  while (n->graph->outer && n->graph->owner) n = n->graph->owner;
  for (size_t i = 0; i < r->g->n_nodes; i++)
    if (r->g->nodes[i]->id == n->id) return i;
  return SIZE_MAX;
}

static assay_status_t add_seed(reducing_t* r, const assay_check_t* c,
                               const assay_layer_account_t* a) {
  bool* nodes = NULL;
  if (!a->layer || r->n_seeds == MAX_SEEDS) return NULL;
  ASSAY_TRY(assay_new_array(r->g->n_nodes, sizeof *nodes, &nodes));
  for (size_t k = 0; k < a->layer->n_nodes; k++) {
    const assay_origins_t o = assay_plan_origins(c->plan, &a->layer->nodes[k]);
    for (size_t i = 0; i < o.n; i++) {
      const size_t at = place_of(r, o.nodes[i]);
      if (at != SIZE_MAX) nodes[at] = true;
    }
  }
  bool known = !assay_set_count(r->g, nodes);
  for (size_t k = 0; k < r->n_seeds; k++)
    known |= !memcmp(r->seeds[k], nodes, r->g->n_nodes * sizeof *nodes);
  if (known) return assay_free(nodes), NULL;
  r->seeds[r->n_seeds++] = nodes;
  return NULL;
}

// The nodes between a value that misses golden and the golden values before it, which stand before
// it in the graph's order.
static void add_cone(const reducing_t* r, const assay_golden_t* golden, const assay_value_t* v,
                     bool* nodes) {
  size_t at = v->producer ? place_of(r, v->producer) : SIZE_MAX;
  if (at == SIZE_MAX) return;
  nodes[at] = true;
  for (at++; at-- > 0;) {
    const assay_node_t* n = r->g->nodes[at];
    for (size_t i = 0; nodes[at] && i < n->n_inputs; i++) {
      const assay_value_t* in = n->inputs[i];
      if (!in || in->constant || !in->producer || assay_golden_of(golden, in)) continue;
      const size_t before = place_of(r, in->producer);
      if (before < at) nodes[before] = true;
    }
  }
}

static assay_status_t add_fault(reducing_t* r, const assay_check_t* c, const assay_fault_t* f) {
  bool* nodes = NULL;
  if (r->n_seeds == MAX_SEEDS) return NULL;
  ASSAY_TRY(assay_new_array(r->g->n_nodes, sizeof *nodes, &nodes));
  add_cone(r, c->options.golden, f->value, nodes);
  if (!assay_set_count(r->g, nodes)) return assay_free(nodes), NULL;
  r->seeds[r->n_seeds++] = nodes;
  return NULL;
}

static void forget_seeds(reducing_t* r) {
  while (r->n_seeds) assay_free(r->seeds[--r->n_seeds]);
}

// Of the worst sample so far: the others' are forgotten.
static assay_status_t see(void* user, const assay_check_t* c) {
  reducing_t* r = user;
  forget_seeds(r);
  for (size_t i = 0; i < c->export.n; i++) ASSAY_TRY(add_fault(r, c, &c->export.faults[i]));
  for (size_t i = 0; !c->export.n && i < c->culprits.n; i++)
    ASSAY_TRY(add_seed(r, c, c->culprits.at[i].account));
  return NULL;
}

// Of samples that fail together only there is none.
static const assay_set_t* golden_of(const reducing_t* r, size_t sample) {
  return r->golden && !r->out->joint ? &r->golden[sample] : NULL;
}

static assay_status_t judge_whole(reducing_t* r, size_t first, size_t n,
                                  assay_reduce_failure_t* out) {
  const assay_samples_t view = assay_reduce_view(r->samples, first, n);
  const assay_reduce_observer_t observer = {see, r};
  bool* kept[MAX_SEEDS];
  const size_t n_kept = r->n_seeds;
  memcpy(kept, r->seeds, sizeof kept);
  r->n_seeds = 0;
  const char* path = r->o->exec ? r->o->exec->model : NULL;
  assay_status_t st = assay_reduce_judge(r->o, r->model, r->model, path, &view,
                                         n == 1 ? golden_of(r, first) : NULL, &observer, out);
  const bool worse =
      !st && out->fails && (!r->out->n_failing || out->badness > r->out->before.badness);
  if (worse) {
    for (size_t i = 0; i < n_kept; i++) assay_free(kept[i]);
    return NULL;
  }
  forget_seeds(r);
  memcpy(r->seeds, kept, sizeof kept);
  r->n_seeds = n_kept;
  return st;
}

static void add_failing(reducing_t* r, size_t sample, const assay_reduce_failure_t* f) {
  assay_reduced_t* o = r->out;
  r->failing[o->n_failing] = sample;
  if (!o->n_failing || f->badness > o->before.badness) {
    r->failing[o->n_failing] = r->failing[0];
    r->failing[0] = sample;
    o->before = *f;
  }
  o->n_failing++;
}

// Which samples fail, each by itself; if none does, whether all of them together do.
static assay_status_t judge_samples(reducing_t* r) {
  assay_reduce_failure_t f;
  for (size_t k = 0; k < r->samples->n; k++) {
    const assay_check_setting_t* c = r->o->check;
    if (c->progress) c->progress(c->user, "samples", (double)k / (double)r->samples->n);
    ASSAY_TRY(judge_whole(r, k, 1, &f));
    if (f.fails) add_failing(r, k, &f);
  }
  if (r->out->n_failing || r->samples->n < 2) return NULL;
  ASSAY_TRY(judge_whole(r, 0, r->samples->n, &f));
  r->out->joint = f.fails;
  if (f.fails) add_failing(r, 0, &f);
  return NULL;
}

// ---- a part -------------------------------------------------------------------------------------

// What a piece is fed for a failing sample, added to *inputs.
static assay_status_t feed(reducing_t* r, attempt_t* a, size_t sample, assay_samples_t* inputs,
                           bool* out_can) {
  *out_can = true;
  for (size_t k = 0; *out_can && k < (r->out->joint ? r->samples->n : 1); k++)
    ASSAY_TRY(assay_piece_feed(&a->piece, &r->values, r->out->joint ? k : sample, a->finite, inputs,
                               out_can, &a->from_truth));
  return NULL;
}

static assay_status_t fails_on(reducing_t* r, attempt_t* a, size_t sample,
                               const assay_samples_t* inputs, bool* out) {
  assay_reduce_failure_t f = {0};
  assay_status_t st = assay_reduce_judge(r->o, a->piece.prepared, a->piece.model, NULL, inputs,
                                         golden_of(r, sample), NULL, &f);
  *out = !st && assay_reduce_is_same(r->o, &r->out->before, &f);
  if (*out) a->failure = f;
  return assay_reduce_forgive(st);
}

// With the engine's values; where these are not finite and truth's are, with truth's.
static assay_status_t try_piece(reducing_t* r, attempt_t* a, bool* out_fails) {
  bool can = false;
  *out_fails = false;
  for (int round = 0; round < 2 && !*out_fails; round++) {
    const bool was = a->from_truth;
    a->finite = round > 0;
    assay_samples_deinit(&a->inputs);
    ASSAY_TRY(feed(r, a, r->failing[0], &a->inputs, &can));
    if (!can || (round && was == a->from_truth)) return NULL;
    r->out->tries++;
    ASSAY_TRY(fails_on(r, a, r->failing[0], &a->inputs, out_fails));
  }
  return NULL;
}

// Whether these nodes by themselves fail on the worst sample; then they become the best.
static assay_status_t try_nodes(reducing_t* r, const bool* nodes, bool* out_fails) {
  const assay_check_setting_t* c = r->o->check;
  attempt_t a = {0};
  bool can = false;
  *out_fails = false;
  if (c->progress) c->progress(c->user, "parts", (double)(r->out->tries % 32) / 32);
  ASSAY_TRY(assay_piece_cut(r->model, nodes, &a.piece, &can));
  if (!can) return NULL;
  assay_status_t st = assay_new_array(r->g->n_nodes, sizeof *a.nodes, &a.nodes);
  if (!st) memcpy(a.nodes, nodes, r->g->n_nodes * sizeof *nodes);
  if (!st) st = try_piece(r, &a, out_fails);
  if (!st && *out_fails) {
    attempt_deinit(&r->best);
    r->best = a;
    a = (attempt_t){0};
  }
  attempt_deinit(&a);
  return st;
}

static assay_status_t asked(void* user, const bool* nodes, bool* out_fails, bool* out_late) {
  reducing_t* r = user;
  *out_fails = false;
  if ((*out_late = is_late(r))) return NULL;
  return try_nodes(r, nodes, out_fails);
}

// ---- all failing samples ------------------------------------------------------------------------

static size_t* covered(const reducing_t* r) { return r->out->sample_of; }

// On which of the others the best part fails; their inputs are added to its own.
static assay_status_t cover(reducing_t* r) {
  attempt_t* a = &r->best;
  const size_t n_each = r->out->joint ? r->samples->n : 1;
  size_t n = 0;
  for (size_t k = 0; k < n_each; k++) covered(r)[n++] = r->out->joint ? k : r->failing[0];
  for (size_t k = 1; !r->out->joint && k < r->out->n_failing; k++) {
    assay_samples_t one = {0};
    const assay_reduce_failure_t worst = a->failure;
    bool can = false, fails = false;
    assay_status_t st = feed(r, a, r->failing[k], &one, &can);
    if (!st && can) st = fails_on(r, a, r->failing[k], &one, &fails);
    a->failure = worst;
    if (!st && fails) {
      size_t capacity = a->inputs.n * a->inputs.n_values;
      st = assay_grow(&a->inputs.at, &capacity, capacity + one.n_values, sizeof *one.at);
      for (size_t i = 0; !st && i < one.n_values; i++)
        a->inputs.at[a->inputs.n * one.n_values + i] = assay_tensor_retain(one.at[i]);
      if (!st) a->inputs.n++;
      if (!st) covered(r)[n++] = r->failing[k];
    }
    assay_samples_deinit(&one);
    if (st) return st;
  }
  return NULL;
}

// ---- the search ---------------------------------------------------------------------------------

static assay_status_t try_seeds(reducing_t* r) {
  bool fails = false;
  for (size_t i = 0; i < r->n_seeds && !fails; i++) ASSAY_TRY(try_nodes(r, r->seeds[i], &fails));
  return NULL;
}

static assay_status_t try_around(reducing_t* r, const bool* seed) {
  const size_t n = r->g->n_nodes;
  bool *nodes = NULL, *more = NULL;
  bool fails = false, late = false;
  assay_status_t st = assay_new_array(n, sizeof *nodes, &nodes);
  if (!st) st = assay_new_array(n, sizeof *more, &more);
  if (!st) memcpy(nodes, seed, n * sizeof *nodes);
  for (int step = 0; !st && !fails && !late && step < 2 * MAX_RINGS; step++) {
    memcpy(more, nodes, n * sizeof *nodes);
    assay_set_widen(r->g, nodes, step % 2 == 0, more);
    if (assay_set_count(r->g, more) > MAX_AROUND) break;
    if (!memcmp(more, nodes, n * sizeof *nodes)) continue;
    memcpy(nodes, more, n * sizeof *nodes);
    st = asked(r, nodes, &fails, &late);
  }
  assay_free(nodes);
  assay_free(more);
  return st;
}

static assay_status_t search(reducing_t* r) {
  const assay_set_test_t test = {asked, r};
  bool* nodes = NULL;
  r->out->way = ASSAY_REDUCE_ALONE;
  ASSAY_TRY(try_seeds(r));
  if (!r->best.nodes && r->n_seeds) {
    r->out->way = ASSAY_REDUCE_NEIGHBOURS;
    ASSAY_TRY(try_around(r, r->seeds[0]));
  }
  ASSAY_TRY(assay_new_array(r->g->n_nodes, sizeof *nodes, &nodes));
  assay_status_t st = NULL;
  if (!r->best.nodes) {
    r->out->way = ASSAY_REDUCE_DELTA;
    st = assay_set_bisect(r->g, &test, nodes);
  }
  if (!st && r->best.nodes) {
    memcpy(nodes, r->best.nodes, r->g->n_nodes * sizeof *nodes);
    st = assay_set_minimize(r->g, &test, nodes, &r->out->minimal);
  }
  assay_free(nodes);
  return st;
}

static assay_status_t hand_over(reducing_t* r) {
  assay_reduced_t* out = r->out;
  attempt_t* a = &r->best;
  if (!a->nodes) return out->verdict = ASSAY_REDUCE_WHOLE, NULL;
  ASSAY_TRY(cover(r));
  ASSAY_TRY(assay_reduce_golden(a->piece.prepared, &a->inputs, r->o->check, &out->golden));
  for (size_t k = 0; r->values.golden && k < out->golden.n; k++)
    ASSAY_TRY(assay_reduce_take_golden(a->piece.prepared, &r->golden[out->sample_of[k]],
                                       out->golden.at + k * out->golden.n_values));
  out->verdict = ASSAY_REDUCE_REDUCED;
  out->after = a->failure;
  out->model = assay_model_retain(a->piece.model);
  out->n_nodes = assay_set_count(r->g, a->nodes);
  out->from_truth = a->from_truth;
  out->inputs = a->inputs;
  a->inputs = (assay_samples_t){0};
  return NULL;
}

static assay_status_t run(reducing_t* r) {
  assay_reduced_t* out = r->out;
  out->n_nodes_before = out->n_nodes = assay_set_count_all(r->g);
  out->n_samples = r->samples->n;
  ASSAY_TRY(assay_new_array(r->samples->n, sizeof *r->failing, &r->failing));
  ASSAY_TRY(assay_new_array(r->samples->n, sizeof *out->sample_of, &out->sample_of));
  ASSAY_TRY(assay_reduce_values_init(&r->values, r->model, r->samples, r->o));
  if (r->o->golden) ASSAY_TRY(assay_reduce_split_golden(r->model, r->o, r->samples->n, &r->golden));
  ASSAY_TRY(judge_samples(r));
  out->verdict = ASSAY_REDUCE_SOUND;
  if (!out->n_failing) return NULL;
  if (out->before.blame == ASSAY_BLAME_EXPORT) r->values.golden = r->golden;
  ASSAY_TRY(search(r));
  return hand_over(r);
}

assay_status_t assay_reduce_run(assay_model_t* model, const assay_samples_t* samples,
                                const assay_reduce_options_t* options, assay_reduced_t* out) {
  assay_reduced_t made = {0};
  reducing_t r = {.o = options,
                  .model = model,
                  .g = model->graph,
                  .samples = samples,
                  .out = &made,
                  .start = assay_clock_seconds()};
  if (options->judge && !strstr(options->judge, "{model}") && !strstr(options->judge, "{outputs}"))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--check '%s': the command is given what to judge as {model} or {outputs}",
                       options->judge);
  assay_status_t st = run(&r);
  made.seconds = assay_clock_seconds() - r.start;
  attempt_deinit(&r.best);
  forget_seeds(&r);
  assay_reduce_values_deinit(&r.values);
  assay_reduce_free_golden(r.golden, samples->n);
  assay_free(r.failing);
  if (st) return assay_reduced_deinit(&made), st;
  *out = made;
  return NULL;
}

void assay_reduced_deinit(assay_reduced_t* r) {
  assay_samples_deinit(&r->inputs);
  assay_samples_deinit(&r->golden);
  assay_model_release(r->model);
  assay_free(r->sample_of);
  *r = (assay_reduced_t){0};
}
