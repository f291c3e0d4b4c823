// The first link of the chain golden -> truth -> engine: truth against golden, sample by sample.
#include "diagnose/chain.h"

#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"

enum { MAX_SAMPLES = 8 };

// ---- rows --------------------------------------------------------------------------------------

// Strings are copied.
static assay_status_t string_rows(const assay_tensor_t* t, int64_t first, const int64_t* dims,
                                  assay_tensor_t** out) {
  assay_tensor_t* y = NULL;
  assay_status_t st = assay_tensor_create(t->type, t->rank, dims, &y);
  const int64_t row = assay_dims_product(dims, 1, t->rank);
  for (int64_t i = 0; !st && i < y->size; i++) {
    const assay_string_t* s = &assay_strings(t)[first * row + i];
    st = assay_tensor_set_string(y, i, s->text, s->len);
  }
  if (st) return assay_tensor_release(y), st;
  *out = y;
  return NULL;
}

// Whether rows of a packed tensor begin within a byte.
static bool is_cut_in_bytes(const assay_tensor_t* t) {
  return t->store == ASSAY_STORE_PACKED && assay_type_bits(t->type) % 8;
}

// Rows [first, first + n) of the leading dimension: the same bytes where that can be.
static assay_status_t rows_of(assay_tensor_t* t, int64_t first, int64_t n, assay_tensor_t** out) {
  if (first == 0 && n == t->dims[0]) return *out = assay_tensor_retain(t), NULL;
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* whole = NULL;
  memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
  dims[0] = n;
  if (t->store == ASSAY_STORE_LATE || is_cut_in_bytes(t))
    ASSAY_TRY(assay_tensor_widen(t, &whole));
  else
    whole = assay_tensor_retain(t);
  assay_status_t st = whole->store == ASSAY_STORE_STR
                          ? string_rows(whole, first, dims, out)
                          : assay_tensor_part(whole, first * assay_dims_product(dims, 1, t->rank),
                                              t->rank, dims, out);
  assay_tensor_release(whole);
  return st;
}

static const assay_valtype_t* type_of(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  return t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && t->rank ? t : NULL;
}

// The leading dimension of a value: its number, or -1 where the model leaves it open; 0: no such
// thing.
static int64_t leading(const assay_value_t* v) {
  const assay_valtype_t* t = type_of(v);
  int64_t d;
  if (!t) return 0;
  return assay_dim_value(t->dims[0], &d) ? d : -1;
}

// How many rows an open batch has, over the inputs; 0: there is none, or they disagree. *out_name:
// what the model calls it; NULL: nothing.
static int64_t batch_of(const assay_graph_t* g, assay_tensor_t* const* inputs,
                        const char** out_name) {
  int64_t n = 0;
  *out_name = NULL;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_tensor_t* t = inputs[i];
    if (!t || t->kind != ASSAY_KIND_TENSOR || !t->rank || leading(g->inputs[i]) != -1) continue;
    if (t->dims[0] < 2) continue;
    if (n && n != t->dims[0]) return 0;
    if (!n && type_of(g->inputs[i])->dims[0])
      *out_name = assay_dim_name(type_of(g->inputs[i])->dims[0]);
    n = t->dims[0];
  }
  return n;
}

typedef struct batch_size {
  const char* name;
  int64_t rows;
} batch_size_t;

static bool look_up_batch(void* user, const char* name, int64_t* out) {
  const batch_size_t* b = user;
  *out = b->rows;
  return strcmp(name, b->name) == 0;
}

// How many rows of golden go with each row of the batch: 1, more where windows or heads are rows of
// their own; 0: its leading dimension counts something else.
static int64_t rows_each(const assay_golden_tensor_t* g, int64_t batch, const char* name) {
  const assay_tensor_t* t = g->tensor;
  if (!batch || t->kind != ASSAY_KIND_TENSOR || !t->rank || leading(g->value) != -1) return 0;
  const assay_dim_t* d = type_of(g->value)->dims[0];
  batch_size_t one = {name, 1}, all = {name, batch};
  int64_t each = 0, rows = 0;
  if (!name || !d) return !name || t->dims[0] == batch || g->value->is_output;
  if (!assay_dim_eval(d, look_up_batch, &one, &each) ||
      !assay_dim_eval(d, look_up_batch, &all, &rows))
    return t->dims[0] == batch || g->value->is_output;
  if (each == 1 && rows == batch) return 1;
  return each > 1 && rows == each * batch && t->dims[0] == rows ? each : 0;
}

// ---- golden of one sample ----------------------------------------------------------------------

static assay_status_t add(assay_golden_t* to, const assay_golden_tensor_t* from,
                          assay_tensor_t* take) {
  assay_status_t st = assay_grow(&to->at, &to->capacity, to->n + 1, sizeof *to->at);
  if (st) return assay_tensor_release(take), st;
  to->at[to->n] = *from;
  to->at[to->n].name = NULL;
  to->at[to->n++].tensor = take;
  return NULL;
}

// Whether an array has one dimension more than the model's value, which counts samples: so scalars
// of several runs are kept.
static bool counts_samples(const assay_golden_tensor_t* g, int64_t samples) {
  const assay_valtype_t* type = g->value->type ? g->value->type : g->value->declared;
  const assay_tensor_t* t = g->tensor;
  return t->kind == ASSAY_KIND_TENSOR && type && type->has_shape && t->rank == type->rank + 1 &&
         t->dims[0] == samples;
}

static assay_status_t drop_leading(assay_tensor_t* take, assay_tensor_t** out) {
  assay_status_t st = assay_tensor_view(take, take->rank - 1, take->dims + 1, out);
  assay_tensor_release(take);
  return st;
}

// Sample k of several: of an array that holds all of them; one that holds a single sample counts
// for the first.
static assay_status_t cut_sample(const assay_golden_tensor_t* g, size_t k, size_t samples,
                                 assay_golden_t* to) {
  const int64_t n = (int64_t)samples;
  const assay_tensor_t* t = g->tensor;
  const int64_t open =
      t->kind == ASSAY_KIND_TENSOR && t->rank && t->dims[0] % n == 0 ? t->dims[0] / n : 0;
  const int64_t d = leading(g->value) == -1 ? open : leading(g->value);
  assay_tensor_t* part = NULL;
  if (n > 1 && counts_samples(g, n)) {
    ASSAY_TRY(rows_of(g->tensor, (int64_t)k, 1, &part));
    ASSAY_TRY(drop_leading(part, &part));
    return add(to, g, part);
  }
  if (t->kind != ASSAY_KIND_TENSOR || !t->rank || d <= 0 || t->dims[0] == d) {
    if (k == 0) return add(to, g, assay_tensor_retain(g->tensor));
    return NULL;
  }
  const int64_t first = (int64_t)k * d;
  if (t->dims[0] % d != 0 || first + d > t->dims[0]) return NULL;
  ASSAY_TRY(rows_of(g->tensor, first, d, &part));
  return add(to, g, part);
}

// What golden knows of one value in sample k of several. Inner values may be known of the first
// sample alone.
static assay_status_t add_sample(const assay_golden_t* golden, const assay_golden_tensor_t* g,
                                 size_t k, size_t samples, bool of_first, assay_golden_t* to) {
  const bool output = g->value && g->value->is_output;
  bool known = false;
  assay_tensor_t* own = NULL;
  if (g->value)
    ASSAY_TRY(assay_golden_of_sample(assay_golden_runs(golden), g->name, k, samples, &known, &own));
  if (known) return own ? add(to, g, own) : NULL;
  if (of_first && !output) return k == 0 ? add(to, g, assay_tensor_retain(g->tensor)) : NULL;
  return g->value ? cut_sample(g, k, samples, to) : NULL;
}

// The fewest rows that a golden value of an open batch has.
static int64_t fewest_rows(const assay_golden_t* golden, int64_t batch, const char* name) {
  int64_t rows = batch;
  for (size_t i = 0; i < golden->n; i++) {
    const assay_golden_tensor_t* g = &golden->at[i];
    if (g->value && rows_each(g, batch, name) == 1 && g->tensor->dims[0] > 0 &&
        g->tensor->dims[0] < rows)
      rows = g->tensor->dims[0];
  }
  return rows;
}

// ---- one sample --------------------------------------------------------------------------------

// A sample cut to rows, with golden cut alike.
typedef struct part {
  assay_tensor_t** in;
  assay_golden_t golden;
} part_t;

static void part_deinit(part_t* p, const assay_graph_t* g) {
  for (size_t i = 0; p->in && i < g->n_inputs; i++) assay_tensor_release(p->in[i]);
  assay_free(p->in);
  assay_golden_deinit(&p->golden);
  *p = (part_t){0};
}

typedef struct sample {
  const assay_model_t* model;
  assay_tensor_t* const* in;
  const assay_golden_t* golden;
  int64_t batch;           // rows of an open batch; 0: none
  const char* batch_name;  // NULL: the model has none for it
} sample_t;

// An array that matches no value of the model may tell what is missing (solve/missing.h). Its rows
// are those of the batch, or so many for each of them.
static assay_status_t cut_unmatched(const sample_t* s, const assay_golden_tensor_t* g,
                                    int64_t first, int64_t n, assay_golden_t* to) {
  assay_tensor_t *t = g->tensor, *part = NULL;
  if (!s->batch || (first == 0 && n == s->batch)) return add(to, g, assay_tensor_retain(t));
  if (t->kind != ASSAY_KIND_TENSOR || !t->rank || !t->dims[0] || t->dims[0] % s->batch != 0)
    return NULL;
  const int64_t each = t->dims[0] / s->batch;
  ASSAY_TRY(rows_of(t, first * each, n * each, &part));
  return add(to, g, part);
}

// Rows [first, first + n) of the batch; batch 0: the sample as it is.
static assay_status_t cut_rows(const sample_t* s, int64_t first, int64_t n, part_t* out) {
  const assay_graph_t* g = s->model->graph;
  assay_status_t st = assay_new_array(g->n_inputs, sizeof *out->in, &out->in);
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    assay_tensor_t* t = s->in[i];
    if (s->batch && t && leading(g->inputs[i]) == -1 && t->rank && t->dims[0] == s->batch)
      st = rows_of(t, first, n, &out->in[i]);
    else
      out->in[i] = assay_tensor_retain(t);
  }
  for (size_t i = 0; !st && i < s->golden->n; i++) {
    const assay_golden_tensor_t* x = &s->golden->at[i];
    const assay_tensor_t* t = x->tensor;
    if (!x->value) {
      st = cut_unmatched(s, x, first, n, &out->golden);
      continue;
    }
    const int64_t each = rows_each(x, s->batch, s->batch_name);
    const bool is_whole = !s->batch || (first == 0 && n == s->batch);
    assay_tensor_t* part = NULL;
    // What does not go by rows of the batch is known of the whole batch only.
    if (!each && !is_whole && leading(x->value) == -1) continue;
    if (each && t->dims[0] >= (first + n) * each)
      st = rows_of(x->tensor, first * each, n * each, &part);
    else
      part = assay_tensor_retain(x->tensor);
    if (!st) st = add(&out->golden, x, part);
  }
  if (st) part_deinit(out, g);
  return st;
}

static assay_status_t check_rows(const sample_t* s, int64_t first, int64_t n, bool search,
                                 const assay_export_options_t* options, assay_export_t* out) {
  part_t part = {0};
  assay_export_options_t o = *options;
  o.no_search |= !search;
  assay_export_deinit(out);
  ASSAY_TRY(cut_rows(s, first, n, &part));
  assay_status_t st =
      part.golden.n ? assay_export_check(s->model, part.in, &part.golden, &o, out) : NULL;
  part_deinit(&part, s->model->graph);
  return st;
}

// ---- batches that mix their samples ------------------------------------------------------------

static bool differ(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->kind != ASSAY_KIND_TENSOR || b->kind != ASSAY_KIND_TENSOR || a->store != b->store ||
      a->store > ASSAY_STORE_I64 || a->rank != b->rank || !a->rank || a->dims[0] != 1)
    return false;
  if (memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0) return false;
  return memcmp(a->data, b->data, (size_t)a->size * assay_store_elem_bytes(a->store)) != 0;
}

static assay_status_t stacked(const assay_tensor_t* a, const assay_tensor_t* b,
                              assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  memcpy(dims, a->dims, (size_t)a->rank * sizeof *dims);
  dims[0] = 2;
  ASSAY_TRY(assay_tensor_create(a->type, a->rank, dims, out));
  const size_t bytes = (size_t)a->size * assay_store_elem_bytes(a->store);
  memcpy((*out)->data, a->data, bytes);
  memcpy((char*)(*out)->data + bytes, b->data, bytes);
  return NULL;
}

static assay_status_t run_row(const sample_t* s, int64_t row, const assay_export_options_t* options,
                              assay_evaluator_t** out) {
  const assay_graph_t* g = s->model->graph;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = options->unquantized,
                                           .seed = options->seed,
                                           .keep_all = true,
                                           .spill = true};
  part_t part = {0};
  ASSAY_TRY(assay_evaluator_create(s->model, &config, out));
  ASSAY_TRY(cut_rows(s, row, 1, &part));
  assay_status_t st = assay_evaluator_set_inputs_widened(*out, part.in);
  part_deinit(&part, g);
  return st ? st : assay_evaluator_run(*out);
}

// A sample's result must not depend on its neighbours: truth of two rows by themselves, one above
// the other, is golden for the batch of both, value by value. Values that are the same for both
// rows say nothing.
static assay_status_t golden_of_rows(const sample_t* s, const assay_evaluator_t* a,
                                     const assay_evaluator_t* b, assay_golden_t* out) {
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_nodes; i++) {
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++) {
      const assay_value_t* v = g->nodes[i]->outputs[k];
      const assay_tensor_t* x = v ? assay_evaluator_get(a, v) : NULL;
      const assay_tensor_t* y = v ? assay_evaluator_get(b, v) : NULL;
      assay_tensor_t* both = NULL;
      if (!x || !y || !differ(x, y)) continue;
      ASSAY_TRY(stacked(x, y, &both));
      ASSAY_TRY(add(out, &(assay_golden_tensor_t){.value = v}, both));
    }
  }
  return NULL;
}

static assay_status_t check_mixing(const sample_t* s, const assay_export_options_t* options,
                                   assay_export_t* out) {
  assay_evaluator_t *a = NULL, *b = NULL;
  sample_t two = *s;
  part_t part = {0};
  assay_golden_t golden = {0};
  assay_export_deinit(out);
  assay_status_t st = run_row(s, 0, options, &a);
  if (!st) st = run_row(s, 1, options, &b);
  if (!st) st = golden_of_rows(s, a, b, &golden);
  if (!st) st = cut_rows(&two, 0, 2, &part);
  if (!st) st = assay_export_check(s->model, part.in, &golden, options, out);
  assay_evaluator_destroy(a);
  assay_evaluator_destroy(b);
  assay_golden_deinit(&golden);
  part_deinit(&part, s->model->graph);
  return st;
}

// ---- the order of questions --------------------------------------------------------------------

static bool outputs_only(const assay_golden_t* golden) {
  for (size_t i = 0; i < golden->n; i++)
    if (golden->at[i].value && !golden->at[i].value->is_output) return false;
  return true;
}

// The first row that differs by itself; out->n is 0 if none does.
static assay_status_t first_row_at_fault(const sample_t* s, const assay_export_options_t* options,
                                         int64_t* row, assay_export_t* out) {
  const int64_t known = fewest_rows(s->golden, s->batch, s->batch_name);
  for (*row = 0; *row < known && *row < MAX_SAMPLES; ++*row) {
    ASSAY_TRY(check_rows(s, *row, 1, false, options, out));
    if (out->n) break;
  }
  return NULL;
}

// A row searched, its neighbours samples of their own beside those that there are.
static assay_status_t search_row(const sample_t* s, int64_t row,
                                 const assay_export_options_t* options, assay_export_t* out) {
  assay_other_sample_t others[ASSAY_OTHER_SAMPLES];
  part_t parts[ASSAY_OTHER_SAMPLES] = {0};
  assay_export_options_t o = *options;
  size_t n_parts = 0;
  assay_status_t st = NULL;
  for (size_t i = 0; i < options->n_others; i++) others[i] = options->others[i];
  for (int64_t d = 1; !st && outputs_only(s->golden) && d < s->batch; d++) {
    if (o.n_others == ASSAY_OTHER_SAMPLES) break;
    part_t* part = &parts[n_parts++];
    st = cut_rows(s, (row + d) % s->batch, 1, part);
    if (!st && part->golden.n)
      others[o.n_others++] = (assay_other_sample_t){.in = part->in, .golden = part->golden};
  }
  o.others = others;
  if (!st) st = check_rows(s, row, 1, true, &o, out);
  for (size_t i = 0; i < n_parts; i++) part_deinit(&parts[i], s->model->graph);
  return st;
}

// The row by itself, searched if it shows a fault; if not, two rows together.
static assay_status_t ask_rows(const sample_t* s, const assay_export_options_t* options,
                               assay_export_t* out) {
  int64_t row = 0;
  ASSAY_TRY(first_row_at_fault(s, options, &row, out));
  if (out->n) return options->no_search ? NULL : search_row(s, row, options, out);
  return check_mixing(s, options, out);
}

static assay_status_t whole(const sample_t* s, const assay_export_options_t* options,
                            assay_export_t* out) {
  const int64_t rows = s->batch ? fewest_rows(s->golden, s->batch, s->batch_name) : 0;
  const bool inner = !outputs_only(s->golden);
  if (s->batch < 2) return check_rows(s, 0, 1, true, options, out);
  assay_status_t st = check_rows(s, 0, rows, false, options, out);
  if (!st && !out->n) return NULL;
  if (!st && inner) {
    // With inner values all rows are searched together, unless only their mixing is wrong.
    assay_export_t alone = {0};
    int64_t row;
    assay_status_t alone_st = first_row_at_fault(s, options, &row, &alone);
    // Golden of the whole batch's sizes may keep a row from running by itself.
    const bool differs = alone.n > 0 || alone_st;
    assay_export_deinit(&alone);
    if (assay_status_code(alone_st) == ASSAY_NO_MEMORY) return alone_st;
    assay_status_free(alone_st);
    if (differs) return options->no_search ? NULL : check_rows(s, 0, rows, true, options, out);
  }
  // The whole batch differs, or cannot be run.
  assay_export_t by_row = {0};
  assay_status_t rows_st = ask_rows(s, options, &by_row);
  if (rows_st || !by_row.n) {
    assay_export_deinit(&by_row);
    if (st) return assay_status_free(rows_st), st;
    assay_status_free(rows_st);
    return options->no_search ? NULL : check_rows(s, 0, rows, true, options, out);
  }
  assay_status_free(st);
  assay_export_deinit(out);
  *out = by_row;
  return NULL;
}

// Rows of the dimension of this name among the inputs of a sample; 0: there is none.
static int64_t rows_called(const assay_graph_t* g, assay_tensor_t* const* inputs,
                           const char* name) {
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* type = type_of(g->inputs[i]);
    const char* its = type && type->dims[0] ? assay_dim_name(type->dims[0]) : NULL;
    if (its && inputs[i] && inputs[i]->rank && strcmp(its, name) == 0) return inputs[i]->dims[0];
  }
  return 0;
}

// Whether inner values are known of the first of several samples alone: those that have the batch's
// rows have as many as that has, not as many as all. 12 rows are 4 samples of 3, or one of 12.
static bool inner_of_first(const assay_model_t* m, const assay_samples_t* inputs,
                           const assay_golden_t* golden) {
  size_t first = 0, all = 0;
  for (size_t i = 0; i < golden->n; i++) {
    const assay_golden_tensor_t* g = &golden->at[i];
    if (!g->value || g->value->is_output || !g->tensor->rank) continue;
    const int64_t fixed = leading(g->value);
    if (fixed > 0) {
      const int64_t rows = g->tensor->dims[0];
      all += rows == fixed * (int64_t)inputs->n || counts_samples(g, (int64_t)inputs->n);
      first += rows == fixed && !counts_samples(g, (int64_t)inputs->n);
    }
    if (fixed != -1) continue;
    const assay_dim_t* d = type_of(g->value)->dims[0];
    const char* name = d ? assay_dim_name(d) : NULL;
    int64_t sum = 0;
    for (size_t k = 0; name && k < inputs->n; k++)
      sum += rows_called(m->graph, assay_samples_get(inputs, k), name);
    if (!sum) continue;
    const int64_t one = rows_called(m->graph, assay_samples_get(inputs, 0), name);
    first += g->tensor->dims[0] == one && one != sum;
    all += g->tensor->dims[0] == sum && one != sum;
  }
  return first > all;
}

// What golden knows of sample k of several.
static assay_status_t golden_of_sample(const assay_golden_t* golden, size_t k, size_t samples,
                                       bool of_first, assay_golden_t* out) {
  for (size_t i = 0; i < golden->n; i++)
    ASSAY_TRY(add_sample(golden, &golden->at[i], k, samples, of_first, out));
  return NULL;
}

// The samples besides k, those after it first, with what golden knows of their outputs.
static assay_status_t list_others(const assay_samples_t* inputs, size_t k,
                                  const assay_golden_t* golden, assay_other_sample_t* others,
                                  size_t* out_n) {
  *out_n = 0;
  for (size_t d = 1; d < inputs->n && *out_n < ASSAY_OTHER_SAMPLES; d++) {
    const size_t other = (k + d) % inputs->n;
    assay_other_sample_t* to = &others[(*out_n)++];
    *to = (assay_other_sample_t){.in = assay_samples_get(inputs, other)};
    for (size_t i = 0; i < golden->n; i++)
      if (golden->at[i].value && golden->at[i].value->is_output)
        ASSAY_TRY(add_sample(golden, &golden->at[i], other, inputs->n, false, &to->golden));
  }
  return NULL;
}

static assay_status_t one_sample(const assay_model_t* m, assay_tensor_t* const* inputs, size_t k,
                                 size_t samples, bool of_first, const assay_golden_t* golden,
                                 const assay_export_options_t* options, assay_export_t* out) {
  sample_t s = {.model = m, .in = inputs, .golden = golden};
  assay_golden_t part = {0};
  if (samples == 1) {
    s.batch = batch_of(m->graph, inputs, &s.batch_name);
    return whole(&s, options, out);
  }
  assay_status_t st = golden_of_sample(golden, k, samples, of_first, &part);
  s.golden = &part;
  if (!st && part.n) st = whole(&s, options, out);
  assay_golden_deinit(&part);
  return st;
}

assay_status_t assay_chain_run(const assay_model_t* model, const assay_samples_t* inputs,
                               const assay_golden_t* golden, const assay_export_options_t* options,
                               assay_export_t* out) {
  const size_t n = inputs->n < MAX_SAMPLES ? inputs->n : MAX_SAMPLES;
  const bool of_first = n > 1 && inner_of_first(model, inputs, golden);
  assay_status_t st = NULL;
  for (size_t k = 0; !st && !out->n && k < n; k++) {
    assay_other_sample_t others[ASSAY_OTHER_SAMPLES];
    assay_export_options_t o = *options;
    assay_export_deinit(out);
    if (!o.no_search) st = list_others(inputs, k, golden, others, &o.n_others);
    o.others = others;
    if (!st)
      st = one_sample(model, assay_samples_get(inputs, k), k, inputs->n, of_first, golden, &o, out);
    for (size_t i = 0; i < o.n_others; i++) assay_golden_deinit(&others[i].golden);
  }
  return st;
}

static bool is_same_edit(const assay_repair_edit_t* a, const assay_repair_edit_t* b) {
  if (a->kind != b->kind) return false;
  if (a->kind != ASSAY_EDIT_EXCHANGE)
    return a->input == b->input && a->other == b->other && a->formula == b->formula &&
           a->tensor == b->tensor;
  return (a->value == b->value && a->other_value == b->other_value) ||
         (a->value == b->other_value && a->other_value == b->value);
}

// Whether a fault before this one asks for the same repair: the same exchange of two constants, or
// one of a node that several outputs showed.
static bool is_repeated(const assay_export_t* e, size_t i) {
  const assay_repair_t* a = &e->faults[i].repair;
  for (size_t k = 0; k < i; k++) {
    const assay_repair_t* b = &e->faults[k].repair;
    if (!e->faults[k].restored || a->n_edits != b->n_edits) continue;
    if (a->node != b->node && a->edits[0].kind != ASSAY_EDIT_EXCHANGE) continue;
    bool same = a->cause == b->cause;
    for (size_t x = 0; same && x < a->n_edits; x++) same = is_same_edit(&a->edits[x], &b->edits[x]);
    if (same) return true;
  }
  return false;
}

assay_status_t assay_chain_repair(const assay_export_t* e, assay_model_t* model, size_t* out_n) {
  *out_n = 0;
  for (size_t i = 0; i < e->n; i++) {
    if (!e->faults[i].restored || is_repeated(e, i)) continue;
    ASSAY_TRY(assay_repair_apply(&e->faults[i].repair, model));
    (*out_n)++;
  }
  return NULL;
}
