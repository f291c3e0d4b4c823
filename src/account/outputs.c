// Graph outputs over all samples: the engine's against truth and golden, and whether they do.
#include "account/outputs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "account/special.h"
#include "base/alloc.h"

// How long one command of the user's may take to judge outputs.
static const double COMMAND_SECONDS = 600;

// ---- one sample ---------------------------------------------------------------------------------

// Rows of golden that are this sample's, where golden is that of several: *out is the caller's;
// NULL: it has none of the shape.
static assay_status_t take_rows(assay_output_check_t* o, const assay_tensor_t* truth,
                                const assay_tensor_t* golden, const assay_tensor_t* given,
                                assay_tensor_t** out) {
  *out = NULL;
  if (truth->rank < 1 || golden->rank != truth->rank || golden->store != truth->store) return NULL;
  for (int d = 1; d < truth->rank; d++)
    if (golden->dims[d] != truth->dims[d]) return NULL;
  if (o->golden_from != given) {
    o->golden_from = given;
    o->golden_at = 0;
    o->golden_rows += golden->dims[0];
  }
  if (truth->dims[0] > golden->dims[0] - o->golden_at) return NULL;
  assay_slice_t rows = {.n = 1, .rest_at = 1};
  rows.at[0] = (assay_slice_entry_t){.has_start = true,
                                     .has_stop = true,
                                     .start = o->golden_at,
                                     .stop = o->golden_at + truth->dims[0],
                                     .step = 1};
  o->golden_at += truth->dims[0];
  o->golden_used += truth->dims[0];
  return assay_slice_take(&rows, golden, out);
}

// Where golden is the hardware's: how far the engine, which is like that, is from it.
static void compare_bits(assay_output_check_t* o, const assay_tensor_t* engine,
                         const assay_tensor_t* golden) {
  o->bits_of += golden->size;
  for (int64_t i = 0; i < golden->size; i++) {
    const double e = assay_f64(engine)[i], g = assay_f64(golden)[i];
    if (e == g || (isnan(e) && isnan(g))) continue;
    const bool finite = isfinite(e) && isfinite(g);
    const int64_t ulps = finite ? assay_format_ulp_distance(o->bits, e, g) : INT64_MAX;
    o->bits_differ++;
    if (ulps > o->bits_ulps) o->bits_ulps = ulps;
  }
}

// Where truth is finite and a float's range is not enough for the way there (the logarithm of what
// vanished), the network's own framework has the same infinity.
static void count_unfinite(assay_output_check_t* o, const assay_tensor_t* engine,
                           const assay_tensor_t* truth, const assay_tensor_t* golden) {
  for (int64_t i = 0; o->float_range && o->error.mismatched && i < golden->size; i++) {
    const double e = assay_f64(engine)[i], g = assay_f64(golden)[i];
    o->unfinite_as_golden += isfinite(assay_f64(truth)[i]) && isinf(e) && e == g;
  }
}

static void add_golden(assay_output_check_t* o, const assay_tensor_t* engine,
                       const assay_tensor_t* truth, const assay_tensor_t* golden) {
  const size_t n = (size_t)truth->size;
  o->has_golden = true;
  o->golden_samples++;
  assay_error_exact_pairs(&o->sums.golden, &o->golden, assay_f64(truth), assay_f64(golden), n);
  if (!assay_tensor_alike(engine, golden)) return;
  assay_error_exact_pairs(&o->sums.engine_golden, &o->engine_golden, assay_f64(engine),
                          assay_f64(golden), n);
  count_unfinite(o, engine, truth, golden);
  if (o->bits) compare_bits(o, engine, golden);
}

// The same part of all three; those that cannot be taken have been told of with the output.
static assay_status_t add_golden_part(assay_output_check_t* o, const assay_tensor_t* engine,
                                      const assay_tensor_t* truth, const assay_tensor_t* golden) {
  assay_tensor_t *e = NULL, *t = NULL, *g = NULL;
  if (o->part_why[0]) return NULL;
  assay_status_t st = assay_slice_take(o->part, truth, &t);
  if (!st) st = assay_slice_take(o->part, golden, &g);
  if (!st && assay_tensor_alike(engine, golden)) st = assay_slice_take(o->part, engine, &e);
  if (!st) add_golden(o, e, t, g);
  assay_tensor_release(e);
  assay_tensor_release(t);
  assay_tensor_release(g);
  return st;
}

assay_status_t assay_output_add_golden(assay_output_check_t* o, const assay_tensor_t* engine,
                                       const assay_tensor_t* truth, assay_tensor_t* golden) {
  if (!truth || !golden || golden->kind != ASSAY_KIND_TENSOR || truth->kind != ASSAY_KIND_TENSOR ||
      truth->store != ASSAY_STORE_F64)
    return NULL;
  assay_tensor_t *wide = NULL, *rows = NULL;
  ASSAY_TRY(assay_tensor_widen(golden, &wide));
  assay_status_t st = NULL;
  if (!assay_tensor_alike(truth, wide)) st = take_rows(o, truth, wide, golden, &rows);
  const assay_tensor_t* got = rows ? rows : wide;
  const bool fits = !st && assay_tensor_alike(truth, got);
  if (fits && o->slices && !o->slices_of_truth) st = assay_slices_add(o->slices, engine, got);
  if (fits) add_golden(o, engine, truth, got);
  for (size_t i = 0; i < o->n_parts; i++) {
    assay_output_check_t* part = &o->parts[i];
    if (fits && !st) st = add_golden_part(part, engine, truth, got);
    part->golden_used = o->golden_used;
    part->golden_rows = o->golden_rows;
  }
  // Another shape may be the export's fault, which is told there.
  for (size_t i = 0; !st && !fits && i <= o->n_parts; i++)
    snprintf(i ? o->parts[i - 1].golden_why : o->golden_why, ASSAY_OUTPUT_WHY,
             "golden has shape %.40s, the sample %.40s", ASSAY_DIMS_TEXT(wide),
             ASSAY_DIMS_TEXT(truth));
  assay_tensor_release(wide);
  assay_tensor_release(rows);
  return st;
}

static bool same_string(const assay_string_t* a, const assay_string_t* b) {
  return a->len == b->len && (!a->len || !memcmp(a->text, b->text, a->len));
}

// Positions of the k largest of n elements, the first of equals first; NaN counts as smallest.
static void largest_of(const double* x, int64_t n, int k, int64_t* at) {
  for (int i = 0; i < k; i++) {
    at[i] = -1;
    for (int64_t c = 0; c < n; c++) {
      bool taken = false;
      for (int p = 0; p < i; p++) taken |= at[p] == c;
      if (!taken && (at[i] < 0 || x[c] > x[at[i]])) at[i] = c;
    }
  }
}

// Whether rows have the same largest elements. Rows are those of scores: outputs of one or two
// dimensions.
static void count_top(assay_output_check_t* o, const assay_tensor_t* e, const assay_tensor_t* t) {
  enum { TOP = 5 };
  if (t->store != ASSAY_STORE_F64 || t->rank < 1 || t->rank > 2) return;
  const int64_t n = t->dims[t->rank - 1];
  if (n < 2) return;
  const int k = n < TOP ? (int)n : TOP;
  for (int64_t row = 0; row < t->size / n; row++) {
    int64_t a[TOP], b[TOP];
    largest_of(assay_f64(e) + row * n, n, k, a);
    largest_of(assay_f64(t) + row * n, n, k, b);
    int same = 0;
    for (int i = 0; i < k; i++)
      for (int c = 0; c < k; c++) same += a[i] == b[c];
    o->rows++;
    o->top1 += a[0] == b[0];
    o->top5 += same == k;
  }
}

static void add_steps(assay_output_check_t* o, const assay_tensor_t* e, const assay_tensor_t* t) {
  assay_step_sum_t run = {0}, *all = &o->steps;
  all->n += t->size;
  for (int64_t k = 0; k < t->size; k++) {
    const double x = (double)assay_i64(t)[k], d = (double)assay_i64(e)[k] - x;
    if (fabs(d) > (double)all->largest) all->largest = (int64_t)fmin(fabs(d), 0x1p62);
    run.difference2 += d * d;
    run.sum += x;
    run.sum2 += x * x;
  }
  assay_exact_add_to(&o->sums.difference2, &all->difference2, run.difference2);
  assay_exact_add_to(&o->sums.sum, &all->sum, run.sum);
  assay_exact_add_to(&o->sums.sum2, &all->sum2, run.sum2);
}

// Whether integers stand for numbers: made by an operator that quantizes, and at most moved since.
static bool stands_for_numbers(const assay_value_t* v) {
  if (!v->type || v->type->kind != ASSAY_KIND_TENSOR || !assay_type_is_integer(v->type->elem))
    return false;
  const assay_node_t* node = v->producer;
  while (node && node->op && node->op->flags & ASSAY_OP_MOVES && node->n_inputs && node->inputs[0])
    node = node->inputs[0]->producer;
  return node && node->op && node->op->flags & ASSAY_OP_QUANTIZES;
}

// Adds what differs between one output of the engine and of truth; containers item by item.
static void compare(assay_output_check_t* o, const assay_tensor_t* e, const assay_tensor_t* t) {
  if (t->kind != ASSAY_KIND_TENSOR) {
    bool alike = e->kind == t->kind && e->n_items == t->n_items;
    o->differing += !alike;
    for (int64_t i = 0; alike && i < t->n_items; i++) compare(o, e->items[i], t->items[i]);
    return;
  }
  o->is_float |= t->store == ASSAY_STORE_F64 || t->store == ASSAY_STORE_C128;
  if (!assay_tensor_alike(e, t)) {
    o->differing += t->size ? t->size : 1;
    return;
  }
  switch (t->store) {
    case ASSAY_STORE_F64:
    case ASSAY_STORE_C128: {  // a complex number is two
      size_t n = (size_t)t->size * (t->store == ASSAY_STORE_C128 ? 2 : 1);
      assay_error_exact_pairs(&o->sums.error, &o->error,
                              t->store == ASSAY_STORE_F64 ? assay_f64(e) : assay_c128(e),
                              t->store == ASSAY_STORE_F64 ? assay_f64(t) : assay_c128(t), n);
      count_top(o, e, t);
      return;
    }
    case ASSAY_STORE_I64:
      for (int64_t k = 0; k < t->size; k++) o->differing += assay_i64(e)[k] != assay_i64(t)[k];
      if (o->quantized) add_steps(o, e, t);
      return;
    case ASSAY_STORE_STR:
      for (int64_t k = 0; k < t->size; k++)
        o->differing += !same_string(&assay_strings(e)[k], &assay_strings(t)[k]);
      return;
    case ASSAY_STORE_PACKED:  // outputs are canonical
    case ASSAY_STORE_LATE:
    case ASSAY_STORE_NARROW:
      return;
  }
}

static int64_t elements_of(const assay_tensor_t* t) {
  if (t->kind == ASSAY_KIND_TENSOR) return t->size;
  int64_t n = 0;
  for (int64_t i = 0; i < t->n_items; i++) n += elements_of(t->items[i]);
  return n;
}

static void add(assay_output_check_t* o, const assay_tensor_t* engine,
                const assay_tensor_t* truth) {
  o->samples++;
  o->elements += elements_of(truth);
  compare(o, engine, truth);
}

static assay_status_t refuse_part(assay_output_check_t* o, assay_status_t why) {
  if (assay_status_code(why) == ASSAY_NO_MEMORY) return why;
  snprintf(o->part_why, sizeof o->part_why, "%.110s", assay_status_message(why));
  assay_status_free(why);
  return NULL;
}

static assay_status_t add_part(assay_output_check_t* o, const assay_tensor_t* engine,
                               const assay_tensor_t* truth) {
  assay_tensor_t *e = NULL, *t = NULL;
  assay_status_t st = assay_slice_take(o->part, truth, &t);
  if (!st) st = assay_slice_take(o->part, engine, &e);
  if (!st) add(o, e, t);
  assay_tensor_release(e);
  assay_tensor_release(t);
  return st ? refuse_part(o, st) : NULL;
}

assay_status_t assay_output_add(assay_output_check_t* o, const assay_tensor_t* engine,
                                const assay_tensor_t* truth) {
  if (!engine || !truth) return NULL;
  add(o, engine, truth);
  if (o->slices && o->slices_of_truth && truth->kind == ASSAY_KIND_TENSOR)
    ASSAY_TRY(assay_slices_add(o->slices, engine, truth));
  for (size_t i = 0; i < o->n_parts; i++) ASSAY_TRY(add_part(&o->parts[i], engine, truth));
  return NULL;
}

// ---- truth that golden is held against ----------------------------------------------------------

assay_status_t assay_truth_unquantized(const assay_model_t* m, assay_tensor_t* const* inputs,
                                       assay_evaluator_t** out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .unquantized = true};
  return assay_evaluator_create_run(m, &config, inputs, out);
}

// ---- all samples --------------------------------------------------------------------------------

static void start(assay_output_check_t* o, const assay_value_t* value, const assay_slice_t* part) {
  o->value = value;
  o->quantized = stands_for_numbers(value);
  o->part = part;
  o->error = o->golden = o->engine_golden = ASSAY_ERROR_SUM_INIT;
}

assay_status_t assay_output_checks_create(const assay_graph_t* g,
                                          const assay_requirements_t* require,
                                          assay_output_check_t** out) {
  size_t n = g->n_outputs;
  for (size_t q = 0; require && q < require->n; q++)
    for (size_t i = 0; i < g->n_outputs; i++)
      n += assay_require_is_part(&require->at[q], g->outputs[i]);
  ASSAY_TRY(assay_new_array(n, sizeof **out, out));
  assay_output_check_t* part = *out + g->n_outputs;
  for (size_t i = 0; i < g->n_outputs; i++) {
    assay_output_check_t* o = &(*out)[i];
    start(o, g->outputs[i], NULL);
    o->parts = part;
    for (size_t q = 0; require && q < require->n; q++) {
      if (!assay_require_is_part(&require->at[q], g->outputs[i])) continue;
      start(part++, g->outputs[i], require->at[q].part);
      o->n_parts++;
    }
  }
  return NULL;
}

assay_status_t assay_outputs_want_slices(assay_output_check_t* outputs, size_t n, bool of_truth) {
  for (size_t i = 0; i < n; i++) {
    ASSAY_TRY(assay_slices_create(&outputs[i].slices));
    outputs[i].slices_of_truth = of_truth;
  }
  return NULL;
}

void assay_outputs_free(assay_output_check_t* outputs, size_t n) {
  for (size_t i = 0; outputs && i < n; i++) assay_slices_destroy(outputs[i].slices);
  assay_free(outputs);
}

void assay_outputs_note_inputs(assay_output_check_t* outputs, size_t n, size_t n_inputs,
                               assay_tensor_t* const* inputs) {
  bool any = false;
  for (size_t i = 0; !any && i < n_inputs; i++) any = assay_holds_unfinite(inputs[i]);
  for (size_t i = 0; any && i < n; i++) outputs[i].unfinite_in = true;
}

// Quantized integers: a number next to a tie may fall on either side of it, so one step is nothing;
// more of them must be as small beside the spread of truth as a cosine of 0.999 allows: |d|^2 <= 2
// (1 - 0.999) |t - mean|^2.
static bool steps_hold(const assay_step_sum_t* s) {
  if (s->largest <= 1) return true;
  return s->difference2 <= 0.002 * (s->sum2 - s->sum * s->sum / (double)s->n);
}

// Whether truth says nothing, where nothing is required: NaN, infinities that came in or that are
// all there is. A model may make some of finite inputs (logits that are masked): they have to be
// the same.
static bool is_open(const assay_output_check_t* o) {
  const assay_error_sum_t* e = &o->error;
  return e->ref_nan > 0 || (e->ref_inf > 0 && (o->unfinite_in || e->ref_inf == e->n));
}

// NaN that truth lacks, and infinities that golden lacks, too, are never faithful. Outputs that are
// all zero in truth have no direction: any difference counts.
bool assay_output_holds(const assay_output_check_t* o, const assay_requirements_t* require) {
  if (o->is_float && (o->differing || o->error.mismatched > o->unfinite_as_golden)) return false;
  if (require && require->n) return assay_require_holds(require, o, NULL);
  if (is_open(o)) return false;
  if (o->is_float) return assay_error_sum_cosine(&o->error) >= 0.999;
  return o->differing == 0 || (o->quantized && steps_hold(&o->steps));
}

bool assay_outputs_are_open(const assay_output_check_t* outputs, size_t n,
                            const assay_requirements_t* require, assay_str_t* why) {
  bool open = false;
  if (require && require->n) return assay_require_is_open(require, outputs, n, why);
  for (size_t i = 0; i < n; i++) {
    const assay_error_sum_t* e = &outputs[i].error;
    if (!is_open(&outputs[i])) continue;
    open = true;
    if (why)
      assay_str_printf(why, "%s'%s' cannot be judged: truth holds %s", why->len ? "; " : "",
                       outputs[i].value->name,
                       assay_unfinite_text(e->ref_nan, e->ref_inf, (char[96]){0}, 96));
  }
  return open;
}

bool assay_outputs_hold(assay_output_check_t* outputs, size_t n,
                        const assay_requirements_t* require) {
  bool all = true;
  for (size_t i = 0; i < n; i++) {
    outputs[i].faithful = assay_output_holds(&outputs[i], require);
    all &= outputs[i].faithful;
  }
  return all && !assay_outputs_are_open(outputs, n, require, NULL);
}

assay_status_t assay_outputs_want_any(const assay_output_check_t* outputs, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (outputs[i].elements || outputs[i].differing) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "there is nothing to judge: none of the model's outputs ('%s') has an element "
                     "in any sample; give inputs of 1 row or more that make some",
                     n ? outputs[0].value->name : "");
}

// ---- the user's commands ------------------------------------------------------------------------

assay_status_t assay_outputs_ask(const assay_requirements_t* require,
                                 const assay_script_data_t* data, bool* out_yes, bool* met,
                                 assay_str_t* unmet) {
  for (size_t i = 0; require && i < require->n; i++) {
    bool yes = true;
    if (!require->at[i].command) continue;
    ASSAY_TRY(assay_script_ask(require->at[i].text, COMMAND_SECONDS, data, &yes, unmet));
    *out_yes &= yes;
    if (met) met[i] = yes;
  }
  return NULL;
}
