// The registry of operators, attributes, and what evaluation functions share.
#include "ops/op.h"

#include <stdio.h>
#include <string.h>

#include "ops/custom.h"
#include "ops/families.h"
#include "ops/running_bound.h"

static const assay_op_t* const families[] = {
#define ASSAY_OP_FAMILY(name) assay_ops_##name,
#include "ops/families.inc"
#undef ASSAY_OP_FAMILY
};

size_t assay_op_family_count(void) { return sizeof families / sizeof *families; }
const assay_op_t* assay_op_family(size_t i) { return families[i]; }

const assay_op_t* assay_op_find(const char* domain, const char* name, int64_t version) {
  const assay_op_t* found = NULL;
  for (size_t f = 0; f < assay_op_family_count(); f++)
    for (const assay_op_t* op = families[f]; op->name; op++)
      if (op->since <= version && (!found || op->since > found->since) &&
          strcmp(op->name, name) == 0 && strcmp(op->domain, domain) == 0)
        found = op;
  return found ? found : assay_custom_find(domain, name, version);
}

assay_status_t assay_node_error(const char* file, int line, const assay_node_t* node,
                                assay_code_t code, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return assay_status_make(file, line, code, "node '%s' (%s%s%s): %s", node->label, node->domain,
                           *node->domain ? "." : "", node->op_type, text);
}

// ---- attributes -----------------------------------------------------------------------------

// The attribute if it is set with this type; NULL otherwise.
static const assay_attr_t* typed(const assay_node_t* n, const char* name, assay_attr_type_t type) {
  const assay_attr_t* a = assay_node_attr(n, name);
  return a && a->type == type ? a : NULL;
}

static const assay_attr_spec_t* default_of(const assay_node_t* n, const char* name,
                                           assay_attr_type_t type) {
  const assay_attr_spec_t* s = n->schema ? assay_schema_attr(n->schema, name) : NULL;
  return s && s->has_default && s->type == type ? s : NULL;
}

int64_t assay_attr_i64(const assay_node_t* n, const char* name, int64_t otherwise) {
  const assay_attr_t* a = typed(n, name, ASSAY_ATTR_INT);
  if (a) return a->u.i;
  const assay_attr_spec_t* s = default_of(n, name, ASSAY_ATTR_INT);
  return s ? s->i : otherwise;
}

double assay_attr_f64(const assay_node_t* n, const char* name, double otherwise) {
  const assay_attr_t* a = typed(n, name, ASSAY_ATTR_FLOAT);
  if (a) return (double)a->u.f;
  const assay_attr_spec_t* s = default_of(n, name, ASSAY_ATTR_FLOAT);
  // A float attribute is float32: left out, it is the float32 nearest to the default of the text.
  return (double)(float)(s ? s->f : otherwise);
}

const char* assay_attr_str(const assay_node_t* n, const char* name, const char* otherwise) {
  const assay_attr_t* a = typed(n, name, ASSAY_ATTR_STRING);
  if (a) return a->u.s.text;
  const assay_attr_spec_t* s = default_of(n, name, ASSAY_ATTR_STRING);
  return s ? s->s : otherwise;
}

const int64_t* assay_attr_ints(const assay_node_t* n, const char* name, size_t* out_n) {
  const assay_attr_t* a = typed(n, name, ASSAY_ATTR_INTS);
  *out_n = a ? a->n : 0;
  return a ? a->u.ints : NULL;
}

const float* assay_attr_floats(const assay_node_t* n, const char* name, size_t* out_n) {
  const assay_attr_t* a = typed(n, name, ASSAY_ATTR_FLOATS);
  *out_n = a ? a->n : 0;
  return a ? a->u.floats : NULL;
}

const assay_string_t* assay_attr_strings(const assay_node_t* n, const char* name, size_t* out_n) {
  const assay_attr_t* a = typed(n, name, ASSAY_ATTR_STRINGS);
  *out_n = a ? a->n : 0;
  return a ? a->u.strings : NULL;
}

assay_tensor_t* assay_attr_tensor(const assay_node_t* n, const char* name) {
  const assay_attr_t* a = assay_node_attr(n, name);
  return a && (a->type == ASSAY_ATTR_TENSOR || a->type == ASSAY_ATTR_SPARSE_TENSOR) ? a->u.t : NULL;
}

assay_graph_t* assay_attr_graph(const assay_node_t* n, const char* name) {
  const assay_attr_t* a = typed(n, name, ASSAY_ATTR_GRAPH);
  return a ? a->u.g : NULL;
}

bool assay_attr_is(const assay_node_t* n, const char* name, const char* text) {
  const char* s = assay_attr_str(n, name, NULL);
  return s && strcmp(s, text) == 0;
}

bool assay_attr_has(const assay_node_t* n, const char* name) {
  return assay_node_attr(n, name) != NULL;
}

// ---- evaluation -----------------------------------------------------------------------------

assay_type_t assay_eval_out_type(const assay_eval_t* c, size_t i, assay_type_t otherwise) {
  const assay_value_t* v = i < c->n_out ? c->node->outputs[i] : NULL;
  if (!v || !v->type || v->type->kind != ASSAY_KIND_TENSOR || !v->type->elem) return otherwise;
  // Real numbers in place of integers stay real (quant.h).
  if (c->unquantized && assay_type_is_float(otherwise) && !assay_type_is_float(v->type->elem))
    return otherwise;
  return v->type->elem;
}

assay_status_t assay_eval_output(assay_eval_t* c, size_t i, assay_type_t type, int rank,
                                 const int64_t* dims, assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  assay_status_t st = NULL;
  double elems = 1;
  for (int k = 0; k < rank; k++) elems *= (double)dims[k];
  if (c->max_elems > 0 && elems > (double)c->max_elems)
    st = ASSAY_ERROR(ASSAY_NO_MEMORY, "%.0f elements; at most %lld are wanted", elems,
                     (long long)c->max_elems);
  if (!st) st = assay_tensor_create(type, rank, dims, &t);
  if (st) {
    const assay_value_t* v = i < c->n_out ? c->node->outputs[i] : NULL;
    return assay_status_note(st, "node '%s' (%s): output %zu '%s'", c->node->label,
                             c->node->op_type, i, v ? v->name : "");
  }
  if (c->running) st = assay_running_bound_output(c, i, t);
  if (!st && c->arith == ASSAY_ARITH_DOUBLE_DOUBLE && c->low && i == 0) {
    assay_tensor_release(c->low[0]);
    c->low[0] = NULL;
    st = assay_tensor_create_zero(type, rank, dims, &c->low[0]);
  }
  if (st) return assay_tensor_release(t), st;
  assay_tensor_release(c->out[i]);
  c->out[i] = t;
  *out = t;
  return NULL;
}

void assay_eval_set(assay_eval_t* c, size_t i, assay_tensor_t* t) {
  assay_tensor_retain(t);
  assay_tensor_release(c->out[i]);
  c->out[i] = t;
}

assay_status_t assay_eval_want_rank(const assay_eval_t* c, size_t i, int min, int max) {
  if (!assay_eval_has(c, i)) return NULL;
  const assay_tensor_t* t = c->in[i];
  if (t->kind == ASSAY_KIND_TENSOR && t->rank >= min && t->rank <= max) return NULL;
  const assay_param_t* p = c->node->schema ? assay_schema_input(c->node->schema, i) : NULL;
  char wanted[48];
  snprintf(wanted, sizeof wanted, min == max ? "rank %d" : "rank %d to %d", min, max);
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input %zu%s%s has shape %s; %s is expected", i, p ? " " : "",
                          p ? p->name : "", ASSAY_DIMS_TEXT(t), wanted);
}

static assay_status_t normalize_axis(const assay_node_t* node, const char* what, int64_t axis,
                                     int rank, int* out) {
  if (axis < -rank || axis >= rank)
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "%s is %lld; it must be in [%d, %d] for a tensor of rank %d", what,
                            (long long)axis, -rank, rank - 1, rank);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}

assay_status_t assay_eval_axis(const assay_eval_t* c, const char* what, int64_t axis, int rank,
                               int* out) {
  return normalize_axis(c->node, what, axis, rank, out);
}

assay_status_t assay_infer_axis(const assay_infer_t* c, const char* what, int64_t axis, int rank,
                                int* out) {
  return normalize_axis(c->node, what, axis, rank, out);
}

assay_status_t assay_eval_broadcast(const assay_eval_t* c, size_t n, assay_tensor_t* const* t,
                                    int* out_rank, int64_t* out_dims) {
  int rank = 0;
  for (size_t k = 0; k < n; k++)
    if (t[k] && t[k]->rank > rank) rank = t[k]->rank;
  for (int i = 0; i < rank; i++) out_dims[i] = 1;
  for (size_t k = 0; k < n; k++) {
    if (!t[k]) continue;
    for (int i = 0; i < t[k]->rank; i++) {
      int64_t d = t[k]->dims[i], *o = &out_dims[rank - t[k]->rank + i];
      if (d == 1 || d == *o) continue;
      if (*o != 1)
        return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                                "input %zu has shape %s, which does not broadcast with the others "
                                "(%lld against %lld)",
                                k, ASSAY_DIMS_TEXT(t[k]), (long long)d, (long long)*o);
      *o = d;
    }
  }
  *out_rank = rank;
  return NULL;
}

void assay_broadcast_strides(const assay_tensor_t* t, int out_rank, const int64_t* out_dims,
                             int64_t* strides) {
  int lead = out_rank - t->rank;
  int64_t stride = 1;
  for (int i = 0; i < lead; i++) strides[i] = 0;
  for (int i = t->rank - 1; i >= 0; i--) {
    strides[lead + i] = t->dims[i] == 1 && out_dims[lead + i] != 1 ? 0 : stride;
    stride *= t->dims[i];
  }
}

// The draw is a hash of the exact sum: the same on every machine and for any number of threads,
// without a state that elements would have to share.
// Source of the hash: splitmix64, G. Steele, D. Lea, C. Flood, 'Fast Splittable Pseudorandom Number
// Generators', OOPSLA 2014.
static double draw(uint64_t seed, double x) {
  uint64_t z;
  memcpy(&z, &x, sizeof z);
  z += seed * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

double assay_acc_narrow(const assay_eval_t* c, double x) {
  if (c->arith == ASSAY_ARITH_STOCHASTIC)
    return assay_format_round_stochastic(c->accumulator, x, draw(c->draws, x));
  return assay_format_round(c->accumulator, x, ASSAY_OVERFLOW_IEEE);
}
