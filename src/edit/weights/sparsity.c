// Weights of which two of every four are zero, along the axis that products sum over.
#include "edit/weights/sparsity.h"

#include <math.h>
#include <string.h>

#include "ops/op.h"

// ---- which weights ------------------------------------------------------------------------------

typedef struct finding {
  assay_model_t* m;
  assay_sparse_weight_t* list;
  size_t n;
} finding_t;

static bool is_one_of(const char* name, const char* const* names, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static bool can_be_sparse(const assay_tensor_t* t, int axis) {
  const bool is_float = t->type == ASSAY_TYPE_FLOAT || t->type == ASSAY_TYPE_FLOAT16 ||
                        t->type == ASSAY_TYPE_BFLOAT16;
  return is_float && t->dims[axis] % 4 == 0;
}

static void add(finding_t* f, assay_value_t* v, int axis) {
  if (axis < 0 || axis >= v->constant->rank) return;
  for (size_t i = 0; i < f->n; i++)
    if (f->list[i].value == v) return;
  f->list[f->n++] = (assay_sparse_weight_t){v, axis, can_be_sparse(v->constant, axis)};
}

// Looks back through what leaves the elements along the axis together.
static void trace(finding_t* f, assay_value_t* v, int axis) {
  static const char* const passing[] = {"QuantizeLinear", "DequantizeLinear",
                                        "TRT_FP8QuantizeLinear", "TRT_FP8DequantizeLinear", "Cast"};
  while (v && v->graph == f->m->graph) {
    const assay_node_t* n = v->producer;
    if (!n && v->constant) add(f, v, axis);
    if (!n || !n->n_inputs) return;
    if (strcmp(n->op_type, "Transpose") == 0) {
      const assay_attr_t* perm = assay_node_attr(n, "perm");
      if (!perm || perm->type != ASSAY_ATTR_INTS || axis < 0 || (size_t)axis >= perm->n) return;
      axis = (int)perm->u.ints[axis];
    } else if (!is_one_of(n->op_type, passing, sizeof passing / sizeof *passing)) {
      return;
    }
    v = n->inputs[0];
  }
}

static int rank_of(const assay_value_t* v) {
  return v->constant                             ? v->constant->rank
         : v->declared && v->declared->has_shape ? v->declared->rank
                                                 : 2;
}

static void visit(finding_t* f, const assay_node_t* n) {
  if (*n->domain || n->n_inputs < 2 || !n->inputs[0] || !n->inputs[1]) return;
  if (strcmp(n->op_type, "Conv") == 0) {
    trace(f, n->inputs[1], 1);
  } else if (strcmp(n->op_type, "MatMul") == 0) {
    trace(f, n->inputs[0], rank_of(n->inputs[0]) - 1);
    trace(f, n->inputs[1], rank_of(n->inputs[1]) > 1 ? rank_of(n->inputs[1]) - 2 : 0);
  } else if (strcmp(n->op_type, "Gemm") == 0) {
    trace(f, n->inputs[0], assay_attr_i64(n, "transA", 0) ? 0 : 1);
    trace(f, n->inputs[1], assay_attr_i64(n, "transB", 0) ? 1 : 0);
  }
}

assay_status_t assay_sparsity_find(assay_model_t* m, assay_sparse_weight_t** out, size_t* out_n) {
  finding_t f = {.m = m};
  ASSAY_TRY(assay_arena_new(m->arena, 2 * m->graph->n_nodes, sizeof *f.list, &f.list));
  for (size_t i = 0; i < m->graph->n_nodes; i++) visit(&f, m->graph->nodes[i]);
  *out = f.list;
  *out_n = f.n;
  return NULL;
}

// ---- elements -----------------------------------------------------------------------------------

// The places of the two smallest of four.
static void smallest(const double* x, int64_t stride, int* out_a, int* out_b) {
  int a = 0, b = -1;
  for (int i = 1; i < 4; i++)
    if (fabs(x[i * stride]) < fabs(x[a * stride])) a = i;
  for (int i = 0; i < 4; i++)
    if (i != a && (b < 0 || fabs(x[i * stride]) < fabs(x[b * stride]))) b = i;
  *out_a = a;
  *out_b = b;
}

// Goes through all groups of four. Pruned: zeros are put in; else *out_sparse says whether they are
// there.
static void each_four(const assay_sparse_weight_t* w, assay_tensor_t* t, bool prune,
                      bool* out_sparse) {
  const int64_t length = t->dims[w->axis];
  const int64_t stride = assay_dims_product(t->dims, w->axis + 1, t->rank);
  const int64_t outer = assay_dims_product(t->dims, 0, w->axis);
  *out_sparse = true;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < stride; i++)
      for (int64_t k = 0; k + 4 <= length; k += 4) {
        double* x = assay_f64(t) + (o * length + k) * stride + i;
        int a, b;
        smallest(x, stride, &a, &b);
        *out_sparse &= x[a * stride] == 0 && x[b * stride] == 0;
        if (prune) x[a * stride] = x[b * stride] = 0;
      }
}

assay_status_t assay_sparsity_check(const assay_sparse_weight_t* w, bool* out) {
  assay_tensor_t* wide = NULL;
  if (!w->fits || w->value->is_stripped) return *out = false, NULL;
  ASSAY_TRY(assay_tensor_widen(w->value->constant, &wide));
  each_four(w, wide, false, out);
  assay_tensor_release(wide);
  return NULL;
}

assay_status_t assay_sparsity_prune(const assay_sparse_weight_t* w) {
  assay_tensor_t *wide = NULL, *copy = NULL, *packed = NULL;
  bool was;
  if (!w->fits) return NULL;
  ASSAY_TRY(assay_tensor_widen(w->value->constant, &wide));
  assay_status_t st = assay_tensor_copy(wide, &copy);
  if (!st) each_four(w, copy, true, &was);
  if (!st) st = assay_tensor_pack(copy, &packed);
  if (!st) st = assay_model_take_tensor(w->value->graph->model, packed);
  if (!st) w->value->constant = packed;
  assay_tensor_release(copy);
  assay_tensor_release(wide);
  return st;
}
