// Sizes of inputs on the command line: --shape, --dim and --batch are parsed, settled and told.
#include "cli/shapes.h"

#include <assay/memory.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "onnx/onnx.h"
#include "onnx/sizes.h"

void cli_shapes_free(cli_shapes_t* s) {
  for (size_t i = 0; i < s->n; i++) {
    assay_free((void*)(uintptr_t)s->shapes[i].name);
    assay_free((void*)(uintptr_t)s->shapes[i].dims);
  }
  for (size_t i = 0; i < s->n_dims; i++) assay_free((void*)(uintptr_t)s->dims[i].name);
  assay_free(s->shapes);
  assay_free(s->dims);
  *s = (cli_shapes_t){0};
}

const char* cli_shapes_given(const cli_shape_args_t* a) {
  return a->shapes.n ? "--shape" : a->dims.n ? "--dim" : a->batch ? "--batch" : NULL;
}

// ---- parsing ------------------------------------------------------------------------------------

static assay_status_t copy_name(const char* text, size_t n, char** out) {
  char* name = assay_malloc(n + 1);
  if (!name) return assay_status_no_memory();
  memcpy(name, text, n);
  name[n] = 0;
  *out = name;
  return NULL;
}

static assay_status_t copy_shape(const char* name, size_t name_bytes, int rank, const int64_t* dims,
                                 assay_input_shape_t* out) {
  char* own = NULL;
  int64_t* sizes = assay_malloc((size_t)rank * sizeof *sizes);
  if (!sizes) return assay_status_no_memory();
  assay_status_t st = copy_name(name, name_bytes, &own);
  if (st) return assay_free(sizes), st;
  memcpy(sizes, dims, (size_t)rank * sizeof *sizes);
  *out = (assay_input_shape_t){own, rank, sizes};
  return NULL;
}

// A size, or ? for -1. Moves on after it.
static bool parse_size(const char** at, int64_t* out) {
  char* end;
  if (**at == '?') return *out = -1, (*at)++, true;
  errno = 0;
  *out = strtoll(*at, &end, 10);
  const bool fine = end != *at && !errno && *out >= 0;
  *at = end;
  return fine;
}

static assay_status_t parse_shape(const char* text, assay_input_shape_t* out) {
  const char* equals = strrchr(text, '=');
  if (!equals) equals = strrchr(text, ':');
  if (!equals || equals == text)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "shape '%s' is not NAME=DIMS, such as image=1x3x224x224", text);
  int64_t dims[ASSAY_MAX_RANK];
  int rank = 0;
  for (const char* p = equals + 1; *p;) {
    int64_t d;
    if (rank == ASSAY_MAX_RANK || !parse_size(&p, &d) || (*p && *p != 'x' && *p != ','))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "shape '%s': '%s' is not a list of sizes", text,
                         equals + 1);
    dims[rank++] = d;
    if (*p) p++;
  }
  return copy_shape(text, (size_t)(equals - text), rank, dims, out);
}

// A whole number of 1 and more.
static assay_status_t parse_count(const char* option, const char* text, const char* number,
                                  int64_t* out) {
  char* end;
  errno = 0;
  const long long n = strtoll(number, &end, 10);
  if (end == number || *end || errno)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is not a number, as %s needs", text, option);
  if (n < 1)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s %s: a size is at least 1", option, text);
  *out = n;
  return NULL;
}

static assay_status_t parse_dim(const char* text, assay_dim_size_t* out) {
  const char* equals = strrchr(text, '=');
  char* name = NULL;
  if (!equals || equals == text)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--dim '%s' is not NAME=N, such as seq=128", text);
  ASSAY_TRY(parse_count("--dim", text, equals + 1, &out->size));
  ASSAY_TRY(copy_name(text, (size_t)(equals - text), &name));
  out->name = name;
  return NULL;
}

assay_status_t cli_shapes_parse(const cli_shape_args_t* a, cli_shapes_t* out) {
  cli_shapes_t made = {0};
  assay_status_t st = assay_new_array(a->shapes.n, sizeof *made.shapes, &made.shapes);
  if (!st) st = assay_new_array(a->dims.n, sizeof *made.dims, &made.dims);
  for (size_t i = 0; !st && i < a->shapes.n; i++)
    if (!(st = parse_shape(a->shapes.items[i], &made.shapes[i]))) made.n++;
  for (size_t i = 0; !st && i < a->dims.n; i++)
    if (!(st = parse_dim(a->dims.items[i], &made.dims[i]))) made.n_dims++;
  if (!st && a->batch) st = parse_count("--batch", a->batch, a->batch, &made.batch);
  if (st) return cli_shapes_free(&made), st;
  *out = made;
  return NULL;
}

// ---- a model's ----------------------------------------------------------------------------------

static assay_status_t copy_all(const assay_settled_t* from, cli_shapes_t* out) {
  ASSAY_TRY(assay_new_array(from->n, sizeof *out->shapes, &out->shapes));
  for (; out->n < from->n; out->n++) {
    const assay_input_shape_t* s = &from->shapes[out->n];
    ASSAY_TRY(copy_shape(s->name, strlen(s->name), s->rank, s->dims, &out->shapes[out->n]));
  }
  return NULL;
}

assay_status_t cli_shapes_settle(const assay_model_t* model, cli_shapes_t* s) {
  const assay_open_sizes_t sizes = {.n_shapes = s->n,
                                    .shapes = s->shapes,
                                    .n_dims = s->n_dims,
                                    .dims = s->dims,
                                    .batch = s->batch};
  assay_settled_t settled = {0};
  cli_shapes_t own = {0};
  ASSAY_TRY(assay_sizes_settle(model, &sizes, &settled));
  assay_status_t st = copy_all(&settled, &own);
  if (!st && settled.batch_is_nowhere)
    fprintf(stderr,
            "assay: --batch %lld sets nothing: no input leaves its leading dimension open\n",
            (long long)s->batch);
  assay_settled_deinit(&settled);
  if (st) return cli_shapes_free(&own), st;
  cli_shapes_free(s);
  *s = own;
  return NULL;
}

void cli_warn_of_model(const char* path, const assay_model_t* model) {
  const char* warning;
  for (size_t i = 0; (warning = assay_model_warning(model, i)); i++)
    assay_print(stderr, "assay: %s: %s\n", path, warning);
}

assay_status_t cli_shapes_load(const char* path, bool known, cli_shapes_t* s, assay_model_t** out) {
  assay_model_t* raw = NULL;
  ASSAY_TRY(assay_onnx_read(path, &raw));  // names the file itself
  assay_status_t st = cli_shapes_settle(raw, s);
  if (!st) st = assay_onnx_open(raw, known, s->n, s->shapes, out);
  if (!st) cli_warn_of_model(path, *out);
  assay_model_release(raw);
  return assay_status_note(st, "'%s'", path);
}

static void report_ones(const char* ones, const char* before) {
  if (*ones)
    fprintf(stderr, "%s%s: %s; --dim NAME=N, --batch or --shape give others\n",
            *before ? before : "assay", *before ? "; open sizes are 1" : ": open sizes are 1",
            ones);
  else if (*before)
    fprintf(stderr, "%s\n", before);
}

assay_status_t cli_shapes_report_ones(const assay_model_t* model, const char* before) {
  char* ones = NULL;
  ASSAY_TRY(assay_model_open_sizes(model, &ones));
  report_ones(ones, before);
  assay_text_free(ones);
  return NULL;
}

assay_status_t cli_shapes_close(assay_model_t* model, size_t n_settled,
                                const assay_input_shape_t* settled, assay_model_t** out) {
  const assay_open_sizes_t sizes = {.n_shapes = n_settled, .shapes = settled, .close = true};
  assay_settled_t s = {0};
  ASSAY_TRY(assay_sizes_settle(model, &sizes, &s));
  report_ones(assay_str_get(&s.ones), "");
  assay_status_t st = NULL;
  if (s.n)
    st = assay_onnx_reshape(model, s.n, s.shapes, out);
  else
    *out = assay_model_retain(model);
  assay_settled_deinit(&s);
  return st;
}
