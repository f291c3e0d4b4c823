// An input in the box that breaks the model: found by search, confirmed by running the emulated
// engine.
#include "ranges/witness.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "ranges/confirm.h"
#include "ranges/pull.h"

// A place in the box: a tensor for each graph input without initializer.
typedef struct place {
  assay_tensor_t** at;
} place_t;

typedef struct search {
  const assay_model_t* model;
  const assay_box_t* box;
  const assay_ranges_t* ranges;
  const assay_witness_options_t* options;
  assay_confirm_t* confirm;
  assay_evaluator_t* truth;  // with all values kept
  double start;              // seconds
  uint64_t drawn;
  assay_random_t random;
  const assay_node_t* aimed;  // of the first hazard that is one
  assay_witness_t found;      // there, or, until then, anywhere
  int runs;
} search_t;

void assay_witness_deinit(assay_witness_t* w) {
  for (size_t i = 0; w->inputs && i < w->n; i++) assay_tensor_release(w->inputs[i]);
  assay_free(w->inputs);
  *w = (assay_witness_t){0};
}

static bool over(const search_t* h) {
  return assay_clock_seconds() - h->start > h->options->seconds;
}

static double draw(search_t* h) { return assay_random_uniform(&h->random, h->drawn++); }

// ---- places -------------------------------------------------------------------------------------

// The ends of an input, as numbers of its type that lie inside.
static void ends(const assay_box_input_t* in, double* lo, double* hi) {
  const assay_valtype_t* t = in->value->type ? in->value->type : in->value->declared;
  const assay_format_t f = assay_type_format(t->elem);
  if (!in->is_float) {
    *lo = ceil(in->lo);
    *hi = floor(in->hi);
    return;
  }
  *lo = assay_format_round(f, in->lo, ASSAY_OVERFLOW_SATURATE);
  *hi = assay_format_round(f, in->hi, ASSAY_OVERFLOW_SATURATE);
  if (*lo < in->lo) *lo = assay_format_next(f, *lo, 1);
  if (*hi > in->hi) *hi = assay_format_next(f, *hi, -1);
}

static void put(assay_tensor_t* t, int64_t i, double x, double lo, double hi) {
  if (t->store == ASSAY_STORE_F64)
    assay_f64(t)[i] = fmin(
        fmax(assay_format_round(assay_type_format(t->type), x, ASSAY_OVERFLOW_SATURATE), lo), hi);
  else
    assay_i64(t)[i] = (int64_t)fmin(fmax(rint(x), lo), hi);
}

static double get(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : (double)assay_i64(t)[i];
}

static void place_deinit(const search_t* h, place_t* p) {
  for (size_t i = 0; p->at && i < h->box->n; i++) assay_tensor_release(p->at[i]);
  assay_free(p->at);
  p->at = NULL;
}

static assay_status_t place_init(const search_t* h, place_t* p) {
  ASSAY_TRY(assay_new_array(h->box->n, sizeof *p->at, &p->at));
  for (size_t i = 0; i < h->box->n; i++) {
    const assay_value_t* v = h->box->inputs[i].value;
    const assay_valtype_t* t = v ? (v->type ? v->type : v->declared) : NULL;
    int64_t dims[ASSAY_MAX_RANK];
    if (!v) continue;
    if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape ||
        (!assay_type_is_float(t->elem) && assay_type_store(t->elem) != ASSAY_STORE_I64))
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "input '%s' is not a tensor of numbers", v->name);
    for (int k = 0; k < t->rank; k++)
      if (!assay_dim_value(t->dims[k], &dims[k]))
        return ASSAY_ERROR(ASSAY_UNSUPPORTED, "input '%s' has an open shape", v->name);
    ASSAY_TRY(assay_tensor_create_zero(t->elem, t->rank, dims, &p->at[i]));
  }
  return NULL;
}

static assay_status_t place_copy(const search_t* h, const place_t* from, place_t* out) {
  ASSAY_TRY(assay_new_array(h->box->n, sizeof *out->at, &out->at));
  for (size_t i = 0; i < h->box->n; i++)
    if (from->at[i]) ASSAY_TRY(assay_tensor_copy(from->at[i], &out->at[i]));
  return NULL;
}

// How a start is made.
typedef enum start {
  START_UPPER,
  START_LOWER,
  START_CORNER,   // each element at one of its ends
  START_UNIFORM,  // each anywhere
  START_MIDDLE,
  START_ZERO,
  START_CHANNELS,  // each row of the last dimension at one end
  START_ALTERNATING,
  START_CONSTANT,  // all at one number
  START_SMALL,     // near the middle
  N_STARTS,
} start_t;

static void make_start(search_t* h, start_t kind, place_t* p) {
  for (size_t i = 0; i < h->box->n; i++) {
    assay_tensor_t* t = p->at[i];
    double lo, hi, one = draw(h);
    if (!t) continue;
    ends(&h->box->inputs[i], &lo, &hi);
    const int64_t row = t->rank ? t->dims[t->rank - 1] : 1;
    double of_row = draw(h);
    for (int64_t k = 0; k < t->size; k++) {
      if (row && k % row == 0) of_row = draw(h);
      const double middle = lo / 2 + hi / 2;
      const double x[N_STARTS] = {
          [START_UPPER] = hi,
          [START_LOWER] = lo,
          [START_CORNER] = kind == START_CORNER && draw(h) < 0.5 ? lo : hi,
          [START_UNIFORM] = kind == START_UNIFORM ? lo + (hi - lo) * draw(h) : 0,
          [START_MIDDLE] = middle,
          [START_ZERO] = 0,
          [START_CHANNELS] = of_row < 0.5 ? lo : hi,
          [START_ALTERNATING] = k & 1 ? lo : hi,
          [START_CONSTANT] = lo + (hi - lo) * one,
          [START_SMALL] = middle + (kind == START_SMALL ? (hi - lo) * 1e-3 * (draw(h) - 0.5) : 0)};
      put(t, k, x[kind], lo, hi);
    }
  }
}

// ---- confirming ---------------------------------------------------------------------------------

// A witness of the first hazard is what is looked for; one of another is second best.
static bool settled(const search_t* h) { return h->found.found && h->found.node == h->aimed; }

static assay_status_t try_place(search_t* h, const place_t* p) {
  bool broken = false;
  assay_witness_t w = {0};
  if (settled(h)) return NULL;
  h->runs++;
  ASSAY_TRY(assay_confirm_run(h->confirm, p->at, &broken, &w));
  if (!broken || (h->found.found && w.node != h->aimed)) return NULL;
  place_t kept = {0};
  assay_status_t st = place_copy(h, p, &kept);
  if (st) return place_deinit(h, &kept), st;
  w.found = true;
  w.inputs = kept.at;
  w.n = h->box->n;
  assay_witness_deinit(&h->found);
  h->found = w;
  return NULL;
}

static bool in_box(const search_t* h, const assay_tensor_t* t, size_t i) {
  double lo, hi;
  ends(&h->box->inputs[i], &lo, &hi);
  for (int64_t k = 0; k < t->size; k++)
    if (!(get(t, k) >= lo && get(t, k) <= hi)) return false;
  return true;
}

static assay_status_t try_samples(search_t* h, place_t* p) {
  const assay_samples_t* s = h->options->samples;
  for (size_t k = 0; s && k < s->n && !settled(h) && !over(h); k++) {
    bool fits = true;
    for (size_t i = 0; i < h->box->n; i++) {
      assay_tensor_t *t = assay_samples_get(s, k)[i], *wide = NULL;
      if (!p->at[i]) continue;
      if (!t || t->kind != ASSAY_KIND_TENSOR || t->size != p->at[i]->size ||
          t->type != p->at[i]->type) {
        fits = false;
        continue;
      }
      ASSAY_TRY(assay_tensor_widen(t, &wide));
      fits &= in_box(h, wide, i);
      memcpy(p->at[i]->data, wide->data, (size_t)wide->size * sizeof(double));
      assay_tensor_release(wide);
    }
    if (fits) ASSAY_TRY(try_place(h, p));
  }
  return NULL;
}

// ---- pushing a value ----------------------------------------------------------------------------

typedef struct target {
  const assay_hazard_t* hazard;
  size_t position;  // of the node in the graph
  int64_t element;  // -1: the one that is nearest
  double sign;      // which way it goes
  double value;     // where it is
} target_t;

static bool find_position(const search_t* h, const assay_node_t* node, size_t* out) {
  for (size_t i = 0; i < h->model->graph->n_nodes; i++)
    if (h->model->graph->nodes[i] == node) return *out = i, true;
  return false;
}

// Truth of the graph up to the target's node; *out: its value there.
static assay_status_t run_truth(search_t* h, const place_t* p, target_t* t) {
  const assay_graph_t* g = h->model->graph;
  assay_evaluator_reset(h->truth);
  assay_evaluator_set_inputs(h->truth, p->at);
  for (size_t i = 0; i <= t->position; i++) ASSAY_TRY(assay_evaluator_step(h->truth, g->nodes[i]));
  assay_tensor_t *y = assay_evaluator_get(h->truth, t->hazard->value), *wide = NULL;
  t->value = (double)NAN;
  if (!y || y->kind != ASSAY_KIND_TENSOR || !y->size) return NULL;
  ASSAY_TRY(assay_tensor_widen(y, &wide));
  if (t->element >= wide->size) t->element = -1;
  if (t->element < 0) {
    t->element = 0;
    const bool to_zero = t->hazard->kind == ASSAY_HAZARD_DIVISION;
    for (int64_t i = 1; i < wide->size; i++) {
      const double x = get(wide, i), best = get(wide, t->element);
      if (to_zero ? fabs(x) < fabs(best) : x * t->sign > best * t->sign) t->element = i;
    }
  }
  t->value = get(wide, t->element);
  assay_tensor_release(wide);
  return NULL;
}

// The row of the table, of those in the box, that is worth most.
static int64_t best_row(const assay_tensor_t* table, const double* g, int64_t width, double sign,
                        int64_t lo, int64_t hi) {
  int64_t best = lo;
  double max = -(double)INFINITY;
  for (int64_t r = lo; r <= hi && r < table->dims[0]; r++) {
    double worth = 0;
    for (int64_t k = 0; k < width; k++)
      worth += g[k] * assay_f64(table)[(r < 0 ? r + table->dims[0] : r) * width + k];
    if (worth * sign > max) max = worth * sign, best = r;
  }
  return best;
}

// The corner that the pull points to; only elements whose pull times width is `min` or more move.
static void move(const search_t* h, const place_t* from, const assay_pull_t* pull, double sign,
                 double min, place_t* to) {
  for (size_t i = 0; i < h->box->n; i++) {
    double lo, hi;
    if (!from->at[i]) continue;
    ends(&h->box->inputs[i], &lo, &hi);
    const double* g = pull->g[h->box->inputs[i].value->id];
    assay_tensor_t* t = to->at[i];
    for (int64_t k = 0; k < t->size; k++) {
      const double was = get(from->at[i], k), by = g ? g[k] * sign : 0;
      double x = was;
      if (by != 0 && fabs(by) * (hi - lo) >= min) x = by > 0 ? hi : lo;
      if (pull->table[i] && min <= 0)
        x = (double)best_row(pull->table[i], pull->row_g[i] + k * pull->width[i], pull->width[i],
                             sign, (int64_t)lo, (int64_t)hi);
      put(t, k, x, lo, hi);
    }
  }
}

static double largest_pull(const search_t* h, const assay_pull_t* pull) {
  double max = 0;
  for (size_t i = 0; i < h->box->n; i++) {
    const assay_value_t* v = h->box->inputs[i].value;
    const double* g = v ? pull->g[v->id] : NULL;
    const assay_box_input_t* in = &h->box->inputs[i];
    const assay_tensor_t* t = v ? assay_evaluator_get(h->truth, v) : NULL;
    for (int64_t k = 0; g && t && k < t->size; k++) max = fmax(max, fabs(g[k]) * (in->hi - in->lo));
  }
  return max;
}

static double goodness(const target_t* t) {
  if (isnan(t->value)) return -(double)INFINITY;
  return t->hazard->kind == ASSAY_HAZARD_DIVISION ? -fabs(t->value) : t->value * t->sign;
}

// Whether the value is where the hazard becomes real, or near.
static bool is_there(const target_t* t) {
  const assay_hazard_t* h = t->hazard;
  if (isnan(t->value)) return true;
  if (h->kind == ASSAY_HAZARD_DIVISION) return fabs(t->value) < 1e-4;
  if (h->kind == ASSAY_HAZARD_DOMAIN) return (t->value - h->limit) * t->sign >= 0;
  return !(t->value * t->sign < 0.9 * h->limit);
}

// Between two places on whose way the divisor changes its sign, the one where it is 0.
static assay_status_t try_between(search_t* h, const place_t* a, const place_t* b, target_t* t) {
  enum { STEPS = 60 };
  place_t p = {0};
  double from = 0, to = 1;
  assay_status_t st = place_copy(h, a, &p);
  if (!st) st = run_truth(h, a, t);
  const double sign = t->value > 0 ? 1 : -1;
  for (int k = 0; !st && k < STEPS && !settled(h); k++) {
    const double w = from / 2 + to / 2;
    for (size_t i = 0; i < h->box->n; i++) {
      double lo, hi;
      if (!p.at[i]) continue;
      ends(&h->box->inputs[i], &lo, &hi);
      for (int64_t e = 0; e < p.at[i]->size; e++)
        put(p.at[i], e, (1 - w) * get(a->at[i], e) + w * get(b->at[i], e), lo, hi);
    }
    st = run_truth(h, &p, t);
    if (!st && (k > 8 || t->value == 0)) st = try_place(h, &p);
    if (t->value * sign > 0)
      from = w;
    else
      to = w;
  }
  place_deinit(h, &p);
  return st;
}

enum { MAX_MOVES = 24, MAX_CUTS = 7 };

// Integers wrap in truth, too: how good a place is cannot be seen there.
static bool is_of_integers(const target_t* t) {
  const assay_valtype_t* type = t->hazard->value->type;
  return type && assay_type_is_integer(type->elem);
}

// One move: the whole corner, or, where that does not help, ever fewer of its strongest elements.
static assay_status_t improve(search_t* h, place_t* p, target_t* t, bool* out_better) {
  assay_pull_t pull = {0};
  place_t next = {0};
  *out_better = false;
  ASSAY_TRY(run_truth(h, p, t));
  const double was = goodness(t), was_value = t->value;
  const bool division = t->hazard->kind == ASSAY_HAZARD_DIVISION;
  const double sign = division ? (was_value > 0 ? -1 : 1) : t->sign;
  ASSAY_TRY(assay_pull_run(h->truth, h->model, t->position, t->hazard->value, t->element, &pull));
  const double max = largest_pull(h, &pull);
  assay_status_t st = place_copy(h, p, &next);
  for (int cut = 0; !st && cut < MAX_CUTS && !*out_better && !over(h); cut++) {
    move(h, p, &pull, sign, cut ? max * ldexp(1, cut - MAX_CUTS) : 0, &next);
    if (!cut && is_of_integers(t)) st = try_place(h, &next);
    if (st || settled(h)) break;
    st = run_truth(h, &next, t);
    if (!st && division && t->value * was_value < 0) st = try_between(h, p, &next, t);
    *out_better = !st && goodness(t) > was;
  }
  if (*out_better) {
    place_t swap = *p;
    *p = next;
    next = swap;
  } else {
    t->value = was_value;
  }
  place_deinit(h, &next);
  assay_pull_deinit(&pull);
  return st;
}

static assay_status_t push(search_t* h, place_t* p, target_t* t) {
  bool better = true;
  for (int k = 0; k < MAX_MOVES && better && !settled(h) && !over(h); k++) {
    ASSAY_TRY(improve(h, p, t, &better));
    if (better && is_there(t)) ASSAY_TRY(try_place(h, p));
  }
  return is_there(t) || t->hazard->kind == ASSAY_HAZARD_ACCUMULATOR ? try_place(h, p) : NULL;
}

// A target of a hazard; false: none that can be pushed (in a body, or of no value).
static bool make_target(const search_t* h, const assay_hazard_t* z, int round, target_t* out) {
  *out = (target_t){.hazard = z, .element = round % 2 ? -1 : z->element};
  if (!z->value || z->kind == ASSAY_HAZARD_UNKNOWN || !find_position(h, z->node, &out->position))
    return false;
  out->sign = z->figure < 0 ? -1 : 1;
  if (z->kind == ASSAY_HAZARD_DOMAIN)
    out->sign = z->figure <= z->limit && z->other > z->limit ? -1 : 1;
  // The other side, too, where both pass the range.
  if (round / 2 % 2 && fabs(z->other) > z->limit && z->kind != ASSAY_HAZARD_DOMAIN)
    out->sign = -out->sign;
  return true;
}

static const start_t firsts[] = {START_UPPER,    START_LOWER,       START_CORNER,
                                 START_UNIFORM,  START_ZERO,        START_MIDDLE,
                                 START_CONSTANT, START_ALTERNATING, START_CHANNELS};
static const start_t starts[] = {START_CORNER, START_UNIFORM, START_UPPER,   START_SMALL,
                                 START_LOWER,  START_CORNER,  START_UNIFORM, START_CHANNELS};

// Each hazard from one start; once there is a witness, only the first. *out_tried: how many could
// be pushed.
static assay_status_t push_hazards(search_t* h, place_t* p, int round, int* out_tried) {
  enum { MAX_HAZARDS = 12 };
  *out_tried = 0;
  for (size_t i = 0;
       i < h->ranges->n_hazards && *out_tried < MAX_HAZARDS && !settled(h) && !over(h); i++) {
    const assay_hazard_t* z = &h->ranges->hazards[i];
    target_t t;
    if ((h->found.found && z->node != h->aimed) || !make_target(h, z, round, &t)) continue;
    ++*out_tried;
    make_start(h, starts[(size_t)round % (sizeof starts / sizeof *starts)], p);
    ASSAY_TRY(push(h, p, &t));
    if (h->options->progress)
      h->options->progress(h->options->user,
                           fmin(0.99, (assay_clock_seconds() - h->start) / h->options->seconds));
  }
  return NULL;
}

static assay_status_t search(search_t* h, place_t* p) {
  enum { MAX_ROUNDS = 64, ROUNDS_FOR_FIRST = 8 };
  for (size_t i = 0; i < h->ranges->n_hazards && !h->aimed; i++)
    if (h->ranges->hazards[i].kind != ASSAY_HAZARD_UNKNOWN) h->aimed = h->ranges->hazards[i].node;
  ASSAY_TRY(try_samples(h, p));
  for (size_t i = 0; i < sizeof firsts / sizeof *firsts && !settled(h) && !over(h); i++) {
    make_start(h, firsts[i], p);
    ASSAY_TRY(try_place(h, p));
  }
  for (int round = 0;
       round < (h->found.found ? ROUNDS_FOR_FIRST : MAX_ROUNDS) && !settled(h) && !over(h);
       round++) {
    int tried;
    ASSAY_TRY(push_hazards(h, p, round, &tried));
    if (!tried) break;
  }
  return NULL;
}

assay_status_t assay_witness_find(const assay_plan_t* plan, const assay_box_t* box,
                                  const assay_ranges_t* ranges,
                                  const assay_witness_options_t* options, assay_witness_t* out) {
  search_t h = {.model = assay_plan_layers(plan)->model,
                .box = box,
                .ranges = ranges,
                .options = options,
                .start = assay_clock_seconds(),
                .random = assay_random_make(options->seed, "witness", 0)};
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .seed = assay_plan_layers(plan)->seed, .keep_all = true};
  place_t p = {0};
  assay_status_t st = assay_confirm_create(plan, ranges, &h.confirm);
  if (!st) st = assay_evaluator_create(h.model, &config, &h.truth);
  if (!st) st = place_init(&h, &p);
  if (!st) st = search(&h, &p);
  place_deinit(&h, &p);
  assay_evaluator_destroy(h.truth);
  assay_confirm_destroy(h.confirm);
  if (st) {
    assay_witness_deinit(&h.found);
    // A model that cannot be run so has no witness that could be shown.
    if (assay_status_code(st) != ASSAY_UNSUPPORTED &&
        assay_status_code(st) != ASSAY_INVALID_ARGUMENT)
      return st;
    assay_status_free(st);
    h.found = (assay_witness_t){0};
  }
  h.found.runs = h.runs;
  *out = h.found;
  return NULL;
}
