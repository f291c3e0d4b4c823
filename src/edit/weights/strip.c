// Models without the data of their weights, for where only their structure is wanted, and random
// data in their place.
#include "edit/weights/strip.h"

#include <string.h>

#include "base/random.h"
#include "onnx/onnx.h"
#include "ops/schema.h"

enum { LARGE = 1024 };  // elements from which on other operators' weights go

// ---- stripping ----------------------------------------------------------------------------------

// Which inputs of an operator are weights.
static const struct {
  const char* op;
  size_t first, last;
  int64_t min;  // elements
} rows[] = {{"Conv", 0, 2, 1},   {"ConvTranspose", 0, 2, 1}, {"Gemm", 0, 2, 1},
            {"MatMul", 0, 1, 1}, {"Gather", 0, 1, LARGE},    {"Slice", 0, 0, LARGE}};

typedef struct stripping {
  assay_model_t* m;
  const assay_sparse_weight_t* sparse;
  size_t n_sparse;
  const char* const* kept;
  size_t n_kept;
  bool* found;
  size_t n;
} stripping_t;

static bool is_kept(stripping_t* s, const char* name) {
  for (size_t i = 0; i < s->n_kept; i++)
    if (strcmp(s->kept[i], name) == 0) return s->found[i] = true;
  return false;
}

static assay_status_t is_sparse(const stripping_t* s, const assay_value_t* v, bool* out) {
  *out = false;
  for (size_t i = 0; i < s->n_sparse; i++)
    if (s->sparse[i].value == v) return assay_sparsity_check(&s->sparse[i], out);
  return NULL;
}

static assay_status_t strip(stripping_t* s, assay_value_t* v, int64_t min) {
  bool sparse;
  if (!v || v->graph != s->m->graph || !v->constant || v->producer || v->is_stripped ||
      v->is_sparse_initializer)
    return NULL;
  const assay_tensor_t* t = v->constant;
  if (t->type == ASSAY_TYPE_UINT8 || t->type == ASSAY_TYPE_STRING || t->size < min ||
      is_kept(s, v->name))
    return NULL;
  ASSAY_TRY(is_sparse(s, v, &sparse));
  v->is_stripped = true;
  v->external_location = NULL;
  v->tensor_doc = sparse ? ASSAY_ONNX_STRIPPED "/SPARSE_2_4" : ASSAY_ONNX_STRIPPED "/";
  s->n++;
  return NULL;
}

// The value after Transpose, QuantizeLinear and DequantizeLinear.
static assay_value_t* trace_back(const assay_graph_t* g, assay_value_t* v) {
  while (v && v->graph == g && v->producer && v->producer->n_inputs) {
    const char* op = v->producer->op_type;
    if (strcmp(op, "Transpose") != 0 && strcmp(op, "QuantizeLinear") != 0 &&
        strcmp(op, "DequantizeLinear") != 0)
      return NULL;
    v = v->producer->inputs[0];
  }
  return v;
}

static assay_status_t visit(stripping_t* s, const assay_node_t* n) {
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    if (*n->domain || strcmp(n->op_type, rows[r].op) != 0) continue;
    for (size_t i = rows[r].first; i <= rows[r].last && i < n->n_inputs; i++)
      ASSAY_TRY(strip(s, trace_back(s->m->graph, n->inputs[i]), rows[r].min));
    return NULL;
  }
  if (n->function || assay_schema_newest(n->domain)) return NULL;
  for (size_t i = 0; i < n->n_inputs; i++) ASSAY_TRY(strip(s, n->inputs[i], LARGE));
  return NULL;
}

assay_status_t assay_strip_weights(assay_model_t* m, const char* const* kept, size_t n_kept,
                                   bool* found, size_t* out_stripped) {
  stripping_t s = {.m = m, .kept = kept, .n_kept = n_kept, .found = found};
  assay_sparse_weight_t* weights = NULL;
  ASSAY_TRY(assay_sparsity_find(m, &weights, &s.n_sparse));
  s.sparse = weights;
  for (size_t i = 0; i < m->graph->n_nodes; i++) ASSAY_TRY(visit(&s, m->graph->nodes[i]));
  if (s.n)
    ASSAY_TRY(assay_arena_printf(m->arena, &m->doc, "%s%s" ASSAY_ONNX_STRIPPED, m->doc,
                                 *m->doc ? "-" : ""));
  *out_stripped = s.n;
  return NULL;
}

// ---- filling ------------------------------------------------------------------------------------

static assay_status_t fill(assay_model_t* m, assay_value_t* v, uint64_t seed) {
  const assay_random_t random = assay_random_make(seed, v->name, 0);
  const assay_tensor_t* old = v->constant;
  assay_tensor_t *wide = NULL, *packed = NULL;
  ASSAY_TRY(assay_tensor_create_zero(old->type, old->rank, old->dims, &wide));
  for (int64_t i = 0; i < wide->size; i++) {
    const double x = assay_random_normal(&random, (uint64_t)i);
    if (wide->store == ASSAY_STORE_F64) assay_f64(wide)[i] = x;
    if (wide->store == ASSAY_STORE_I64) assay_i64(wide)[i] = (int64_t)x;
  }
  assay_status_t st = assay_tensor_pack(wide, &packed);
  assay_tensor_release(wide);
  if (!st) st = assay_model_take_tensor(m, packed);
  if (st) return st;
  v->constant = packed;
  v->is_stripped = false;
  return NULL;
}

assay_status_t assay_strip_fill(assay_model_t* m, uint64_t seed, size_t* out_filled) {
  assay_sparse_weight_t* weights = NULL;
  size_t n = 0;
  *out_filled = 0;
  ASSAY_TRY(assay_sparsity_find(m, &weights, &n));
  for (size_t i = 0; i < m->graph->n_initializers; i++) {
    assay_value_t* v = m->graph->initializers[i];
    if (!v->is_stripped) continue;
    ASSAY_TRY(fill(m, v, seed));
    ++*out_filled;
    for (size_t k = 0; k < n; k++)
      if (weights[k].value == v && strstr(v->tensor_doc, "SPARSE_2_4"))
        ASSAY_TRY(assay_sparsity_prune(&weights[k]));
  }
  return NULL;
}
