#include "cli/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/npy.h"
#include "io/npz.h"
#include "onnx/onnx.h"

// ---- shapes -------------------------------------------------------------------------------------

void cli_shapes_free(cli_shapes_t* s) {
  for (size_t i = 0; i < s->n; i++) {
    assay_free((void*)(uintptr_t)s->shapes[i].name);
    assay_free((void*)(uintptr_t)s->shapes[i].dims);
  }
  assay_free(s->shapes);
  *s = (cli_shapes_t){0};
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
    char* end;
    errno = 0;
    long long d = strtoll(p, &end, 10);
    if (end == p || errno || d < 0 || rank == ASSAY_MAX_RANK ||
        (*end && *end != 'x' && *end != ','))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "shape '%s': '%s' is not a list of sizes", text,
                         equals + 1);
    dims[rank++] = d;
    p = *end ? end + 1 : end;
  }
  size_t n = (size_t)(equals - text);
  char* name = assay_malloc(n + 1);
  int64_t* copy = assay_malloc((size_t)rank * sizeof *copy);
  if (!name || !copy) return assay_free(name), assay_free(copy), assay_status_no_memory();
  memcpy(name, text, n);
  name[n] = 0;
  memcpy(copy, dims, (size_t)rank * sizeof *copy);
  *out = (assay_input_shape_t){name, rank, copy};
  return NULL;
}

assay_status_t cli_shapes_parse(const opt_list_t* texts, cli_shapes_t* out) {
  ASSAY_TRY(assay_new_array(texts->n, sizeof *out->shapes, &out->shapes));
  for (size_t i = 0; i < texts->n; i++, out->n++) {
    assay_status_t st = parse_shape(texts->items[i], &out->shapes[i]);
    if (st) return cli_shapes_free(out), st;
  }
  return NULL;
}

// ---- arrays -------------------------------------------------------------------------------------

static bool ends_with(const char* text, const char* end) {
  size_t n = strlen(text), k = strlen(end);
  return n >= k && strcmp(text + n - k, end) == 0;
}

// The value that a file without a name is for: the only input that has no initializer.
static const assay_value_t* only_input(const assay_model_t* m) {
  const assay_value_t* found = NULL;
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    if (m->graph->inputs[i]->constant) continue;
    if (found) return NULL;
    found = m->graph->inputs[i];
  }
  return found;
}

static assay_status_t read_single(const char* text, const assay_model_t* m, assay_set_t* out) {
  const char* equals = strchr(text, '=');
  const char* path = equals ? equals + 1 : text;
  const assay_value_t* v = only_input(m);
  char name[1024] = "";
  if (equals) {
    if ((size_t)(equals - text) >= sizeof name)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s': the name is too long", text);
    memcpy(name, text, (size_t)(equals - text));
    v = assay_graph_find(m->graph, name);
  }
  if (!v)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       equals ? "'%s': the model has no such input"
                              : "'%s': the model has several inputs; say NAME=FILE",
                       text);
  assay_tensor_t* t = NULL;
  if (ends_with(path, ".pb"))
    ASSAY_TRY(assay_onnx_read_value(path, v->declared, &t));
  else
    ASSAY_TRY(assay_npy_read(path, &t));
  return assay_set_add(out, v->name, t);
}

assay_status_t cli_read_arrays(const opt_list_t* files, const assay_model_t* model,
                               assay_set_t* out) {
  for (size_t i = 0; i < files->n; i++) {
    const char* f = files->items[i];
    if (ends_with(f, ".npz"))
      ASSAY_TRY(assay_npz_read(f, out));
    else if (ends_with(f, ".npy") || ends_with(f, ".pb"))
      ASSAY_TRY(read_single(f, model, out));
    else
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "'%s': inputs are read from .npz, .npy and .pb files", f);
  }
  return NULL;
}

assay_status_t cli_samples(const opt_list_t* files, const assay_model_t* model, uint64_t seed,
                           assay_samples_t* out) {
  const assay_graph_t* g = model->graph;
  bool any = false;
  for (size_t i = 0; i < g->n_inputs; i++) any |= !g->inputs[i]->constant;
  if (!files->n) {
    if (any)
      fputs("assay: no inputs given: random ones are used, which show no accuracy on real data "
            "(ranges, masks and indices differ)\n", stderr);
    return assay_samples_generate(model, seed, out);
  }
  assay_set_t set = {0};
  assay_status_t st = cli_read_arrays(files, model, &set);
  if (!st) st = assay_samples_from_set(&set, g->inputs, g->n_inputs, true, out);
  if (!st && out->notes.len) fputs(assay_str_get(&out->notes), stderr);
  assay_set_deinit(&set);
  return st;
}
