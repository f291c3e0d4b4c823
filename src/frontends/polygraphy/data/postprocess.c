// --postprocess and --postprocess-func-script: outputs made into others before they are compared.
#include "frontends/polygraphy/data/postprocess.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontends/polygraphy/data/script.h"
#include "io/saved.h"

typedef struct top {
  int64_t k, axis;
} top_t;

// "top-5,axis=1", or with '_' or '='.
static assay_status_t parse_top(const char* text, top_t* out) {
  char* end = NULL;
  bool good = strncmp(text, "top-", 4) == 0;
  *out = (top_t){.axis = -1};
  if (good) out->k = strtoll(text + 4, &end, 10);
  good = good && end != text + 4 && out->k > 0;
  if (good && strncmp(end, ",axis=", 6) == 0) {
    const char* axis = end + 6;
    out->axis = strtoll(axis, &end, 10);
    good = end != axis;
  }
  if (good && !*end) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "--postprocess: '%s' is neither top-K nor top-K,axis=A, such as top-5,axis=1",
                     text);
}

typedef struct entry {
  double x;
  int64_t i;
} entry_t;

// The largest first; NaN counts as larger than all, as in NumPy's sorting.
static int compare(const void* p, const void* q) {
  const entry_t *a = p, *b = q;
  const bool na = isnan(a->x), nb = isnan(b->x);
  if (na != nb) return na ? -1 : 1;
  if (!na && a->x != b->x) return a->x > b->x ? -1 : 1;
  return a->i < b->i ? -1 : a->i > b->i;
}

static double element(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : (double)assay_i64(t)[i];
}

static assay_status_t sort_rows(const assay_tensor_t* t, int axis, assay_tensor_t* out) {
  const int64_t n = t->dims[axis], k = out->dims[axis];
  const int64_t inner = assay_dims_product(t->dims, axis + 1, t->rank),
                outer = assay_dims_product(t->dims, 0, axis);
  entry_t* row = NULL;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *row, &row));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t c = 0; c < inner; c++) {
      for (int64_t i = 0; i < n; i++) row[i] = (entry_t){element(t, (o * n + i) * inner + c), i};
      qsort(row, (size_t)n, sizeof *row, compare);
      for (int64_t i = 0; i < k; i++) assay_i64(out)[(o * k + i) * inner + c] = row[i].i;
    }
  assay_free(row);
  return NULL;
}

static assay_status_t take_top(const char* name, assay_tensor_t* given, const top_t* top,
                               assay_tensor_t** out) {
  assay_tensor_t *t = NULL, *made = NULL;
  int64_t dims[ASSAY_MAX_RANK];
  const int64_t axis = top->axis < 0 ? top->axis + given->rank : top->axis;
  if (given->kind != ASSAY_KIND_TENSOR || axis < 0 || axis >= given->rank)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--postprocess: '%s'%s has no axis %lld", name,
                       ASSAY_DIMS_TEXT(given), (long long)top->axis);
  ASSAY_TRY(assay_tensor_widen(given, &t));
  memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
  if (top->k < dims[axis]) dims[axis] = top->k;
  assay_status_t st =
      t->store == ASSAY_STORE_F64 || t->store == ASSAY_STORE_I64
          ? assay_tensor_create(ASSAY_TYPE_INT64, t->rank, dims, &made)
          : ASSAY_ERROR(ASSAY_UNSUPPORTED, "--postprocess: '%s' holds no numbers", name);
  if (!st) st = sort_rows(t, (int)axis, made);
  assay_tensor_release(t);
  if (st) return assay_tensor_release(made), st;
  *out = made;
  return NULL;
}

// ---- a function of the user's -------------------------------------------------------------------

static assay_status_t take_answer(assay_saved_t* answer, assay_set_t* out) {
  for (size_t i = 0; i < answer->runs[0].n; i++)
    ASSAY_TRY(assay_set_add(out, answer->runs[0].names[i],
                            assay_tensor_retain(answer->runs[0].tensors[i])));
  return NULL;
}

static assay_status_t call_script(pg_job_t* j, const char* script, const char* runner,
                                  const assay_set_t* from, assay_set_t* out) {
  const pg_script_call_t call = {
      .flag = "--postprocess-func-script",
      .script = script,
      .function = "postprocess_outputs",
      .driver =
          "result = function(sets[0])\n"
          "json.dump([{k: array(v) for k, v in result.items()}], out)\n"
          "out.close()\n",
      .sets = {from},
      .runners = {runner},
      .n_sets = 1,
      .instead =
          "without one, save the outputs (--save-outputs), change them, and compare them "
          "(--load-outputs)"};
  assay_str_t text = {0};
  assay_saved_t answer = {0};
  assay_status_t st = pg_script_call(j, &call, &text);
  if (!st)
    st = assay_status_note(assay_saved_parse_json(assay_str_get(&text), text.len, NULL, &answer),
                           "%s", call.flag);
  if (!st && answer.n != 1)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' gave no outputs", call.flag, script);
  if (!st) st = take_answer(&answer, out);
  assay_saved_deinit(&answer);
  assay_str_deinit(&text);
  return st;
}

// ---- both ---------------------------------------------------------------------------------------

assay_status_t pg_postprocess(pg_job_t* j, const char* runner, const assay_set_t* from,
                              assay_set_t* out) {
  const pg_words_t* words = pg_words(j->args, PG_FLAG_postprocess);
  const char* script = pg_text(j->args, PG_FLAG_postprocess_func_script);
  if (script) return call_script(j, script, runner, from, out);
  for (size_t i = 0; i < from->n; i++) {
    const char* asked = NULL;
    assay_tensor_t* t = NULL;
    top_t top;
    ASSAY_TRY(pg_pair_find(j->arena, words, from->names[i], &asked));
    if (asked) ASSAY_TRY(parse_top(asked, &top));
    if (asked)
      ASSAY_TRY(take_top(from->names[i], from->tensors[i], &top, &t));
    else
      t = assay_tensor_retain(from->tensors[i]);
    ASSAY_TRY(assay_set_add(out, from->names[i], t));
  }
  return NULL;
}
