// Faults injected in the emulated engine, for tests: one node computes something else than the
// model says.
#include "backends/emu/inject.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"
#include "formats/format.h"

typedef enum kind {
  SET,
  OP,
  SWAP,
  SCALE,
  ADD,
  STALE,
  CONSTANT,
  TRANSPOSE,
  ENTER,
  TERMS,
  ACCUMULATE,
  ROUND,
  STORE,
  FLUSH,
  TAIL,
  SHIFT,
  PUT,
} kind_t;

static const struct {
  const char* name;
  kind_t kind;
  int numbers;  // arguments that are numbers; -1: text
} kinds[] = {
    {"set", SET, -1},
    {"op", OP, -1},
    {"swap", SWAP, 2},
    {"scale", SCALE, 2},
    {"add", ADD, 3},
    {"stale", STALE, 2},
    {"constant", CONSTANT, -1},
    {"transpose", TRANSPOSE, 1},
    {"enter", ENTER, -1},
    {"terms", TERMS, 1},
    {"accumulate", ACCUMULATE, -1},
    {"round", ROUND, -1},
    {"store", STORE, -1},
    {"flush", FLUSH, 1},
    {"tail", TAIL, 1},
    {"shift", SHIFT, 1},
    {"put", PUT, 2},
};

enum { MAX_NUMBERS = 64 };

struct assay_injection {
  const assay_node_t* node;
  kind_t kind;
  double at[3];  // numbers, in order
  char* text;    // arguments
  assay_format_t format;
  const assay_value_t* constant;
  assay_node_t changed;  // SET, OP: the node as it is evaluated
  assay_attr_t* attrs;   // of `changed`
  assay_attr_t attr;
  int64_t ints[MAX_NUMBERS];
  float floats[MAX_NUMBERS];
};

// ---- reading ------------------------------------------------------------------------------------

static assay_status_t not_a_fault(const char* text) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "'%s' is not a fault to inject; say NODE:KIND=ARGUMENTS, such as "
                     "'norm1:set=epsilon=1e-3' or 'conv1:terms=1'",
                     text);
}

// Numbers with commas; false if there is something else, or too many.
static bool read_numbers(const char* text, double* out, size_t capacity, size_t* n) {
  for (*n = 0; *text && *n < capacity; (*n)++) {
    char* end;
    out[*n] = strtod(text, &end);
    if (end == text || (*end && *end != ',')) return false;
    if (*end == ',' && !end[1]) return false;
    text = *end ? end + 1 : end;
  }
  return !*text;
}

static assay_status_t find_node(const assay_layers_t* l, const char* text, size_t length,
                                const assay_node_t** out) {
  const assay_model_t* m = l->model;
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const char* label = m->graphs[g]->nodes[i]->label;
      if (strncmp(label, text, length) != 0 || label[length]) continue;
      *out = m->graphs[g]->nodes[i];
      return NULL;
    }
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "the engine has no node '%.*s' to inject a fault in",
                     (int)length, text);
}

static assay_status_t no_memory_in(const assay_node_t* n, const char* what) {
  return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT, "the injected fault does not fit: %s", what);
}

static bool whole(double x) { return x == floor(x) && fabs(x) < 0x1p53; }

// The value of an attribute, by the type that the schema gives it.
static assay_status_t read_value(assay_injection_t* p, const char* value) {
  double x[MAX_NUMBERS];
  size_t n = 0;
  const bool numbers = read_numbers(value, x, MAX_NUMBERS, &n);
  assay_attr_t* a = &p->attr;
  a->n = 1;
  switch (a->type) {
    case ASSAY_ATTR_STRING:
      a->u.s = (assay_string_t){value, strlen(value)};
      return NULL;
    case ASSAY_ATTR_FLOAT:
      a->u.f = n == 1 ? (float)x[0] : 0;
      break;
    case ASSAY_ATTR_INT:
      if (n != 1 || !whole(x[0])) return not_a_fault(value);
      a->u.i = (int64_t)x[0];
      break;
    case ASSAY_ATTR_FLOATS:
      for (size_t i = 0; i < n; i++) p->floats[i] = (float)x[i];
      a->u.floats = p->floats;
      a->n = n;
      return numbers ? NULL : not_a_fault(value);
    case ASSAY_ATTR_INTS:
      for (size_t i = 0; i < n; i++) {
        if (!whole(x[i])) return not_a_fault(value);
        p->ints[i] = (int64_t)x[i];
      }
      a->u.ints = p->ints;
      a->n = n;
      return numbers ? NULL : not_a_fault(value);
    default:
      return no_memory_in(p->node, "attributes of this type cannot be set");
  }
  return numbers && n == 1 ? NULL : not_a_fault(value);
}

static assay_status_t read_attribute(assay_injection_t* p) {
  const assay_node_t* n = p->node;
  char* value = strchr(p->text, '=');
  if (!value) return not_a_fault(p->text);
  *value++ = 0;
  const assay_attr_spec_t* spec = n->schema ? assay_schema_attr(n->schema, p->text) : NULL;
  if (!spec) return no_memory_in(n, "the operator has no such attribute");
  p->attr = (assay_attr_t){.name = spec->name, .doc = "", .ref = "", .type = spec->type};
  ASSAY_TRY(read_value(p, value));
  ASSAY_TRY(assay_new_array(n->n_attrs + 1, sizeof *p->attrs, &p->attrs));
  size_t k = 0;
  for (size_t i = 0; i < n->n_attrs; i++)
    if (strcmp(n->attrs[i].name, spec->name) != 0) p->attrs[k++] = n->attrs[i];
  p->attrs[k++] = p->attr;
  p->changed = *n;
  p->changed.attrs = p->attrs;
  p->changed.n_attrs = k;
  return NULL;
}

static assay_status_t read_operator(assay_injection_t* p) {
  const assay_node_t* n = p->node;
  const int64_t version = assay_model_opset(n->graph->model, n->domain);
  p->changed = *n;
  p->changed.op_type = p->text;
  p->changed.op = assay_op_find(n->domain, p->text, version);
  p->changed.schema = assay_schema_find(n->domain, p->text, version, NULL);
  if (!p->changed.op || !p->changed.op->eval || !p->changed.schema)
    return no_memory_in(n, "there is no such operator");
  return NULL;
}

static assay_status_t read_constant(assay_injection_t* p) {
  const char* comma = strchr(p->text, ',');
  const assay_graph_t* g = p->node->graph->model->graph;
  if (!comma) return not_a_fault(p->text);
  p->at[0] = strtod(p->text, NULL);
  p->constant = assay_graph_find(g, comma + 1);
  if (!p->constant || !p->constant->constant)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no constant '%s'", comma + 1);
  return NULL;
}

static assay_status_t read_format(assay_injection_t* p) {
  p->format = assay_format_parse(p->text);
  if (!assay_format_info(p->format)->is_float) return not_a_fault(p->text);
  return NULL;
}

static assay_status_t read_arguments(assay_injection_t* p, int numbers) {
  size_t n = 0;
  if (numbers > 0) {
    const bool fine = read_numbers(p->text, p->at, 3, &n);
    for (size_t i = 0; i < n; i++) {
      if (p->kind == PUT && i == 1) continue;  // any value
      if (!isfinite(p->at[i]) || (!whole(p->at[i]) && p->kind != SCALE && p->kind != ADD))
        return not_a_fault(p->text);
    }
    return fine && (int)n == numbers ? NULL : not_a_fault(p->text);
  }
  switch (p->kind) {
    case SET:
      return read_attribute(p);
    case OP:
      return read_operator(p);
    case CONSTANT:
      return read_constant(p);
    case ROUND:
      return strcmp(p->text, "zero") == 0 ? NULL : not_a_fault(p->text);
    default:
      return read_format(p);
  }
}

static assay_status_t parse(const char* text, const assay_layers_t* layers, assay_injection_t* p) {
  const char* colon = strrchr(text, ':');
  const char* equals = colon ? strchr(colon, '=') : NULL;
  if (!equals) return not_a_fault(text);
  ASSAY_TRY(find_node(layers, text, (size_t)(colon - text), &p->node));
  ASSAY_TRY(assay_new_array(strlen(equals), 1, &p->text));
  strcpy(p->text, equals + 1);
  const size_t length = (size_t)(equals - colon) - 1;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strncmp(kinds[i].name, colon + 1, length) != 0 || kinds[i].name[length]) continue;
    p->kind = kinds[i].kind;
    return read_arguments(p, kinds[i].numbers);
  }
  return not_a_fault(text);
}

assay_status_t assay_injection_parse(const char* text, const assay_layers_t* layers,
                                     assay_injection_t** out) {
  assay_injection_t* p = NULL;
  ASSAY_TRY(ASSAY_NEW(&p));
  assay_status_t st = parse(text, layers, p);
  if (st) return assay_injection_destroy(p), st;
  *out = p;
  return NULL;
}

void assay_injection_destroy(assay_injection_t* p) {
  if (!p) return;
  assay_free(p->attrs);
  assay_free(p->text);
  assay_free(p);
}

bool assay_injection_is_in(const assay_injection_t* p, const assay_layer_t* layer) {
  for (size_t k = 0; p && k < layer->n_nodes; k++)
    if (layer->nodes[k] == p->node) return true;
  return false;
}

// ---- inputs -------------------------------------------------------------------------------------

// Makes a tensor canonical, and one that may be written.
static assay_status_t own(assay_tensor_t** t) {
  assay_tensor_t *wide = NULL, *copy = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_copy(wide, &copy);
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = copy;
  return NULL;
}

static bool is_numeric(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && assay_type_store(t->type) <= ASSAY_STORE_I64;
}

static assay_status_t input(const assay_injection_t* p, int which, size_t n_in, assay_tensor_t** in,
                            assay_tensor_t*** out) {
  const double i = p->at[which];
  if (!(i >= 0 && i < (double)n_in) || !is_numeric(in[(size_t)i]))
    return no_memory_in(p->node, "there is no such input");
  *out = &in[(size_t)i];
  return NULL;
}

static assay_status_t scale(const assay_injection_t* p, assay_tensor_t* t) {
  for (int64_t i = 0; t->store == ASSAY_STORE_F64 && i < t->size; i++) assay_f64(t)[i] *= p->at[1];
  return NULL;
}

static assay_status_t add(const assay_injection_t* p, assay_tensor_t* t) {
  const bool all = p->at[1] < 0;
  const int64_t k = all ? 0 : (int64_t)p->at[1], end = all ? t->size : k + 1;
  if (end > t->size) return no_memory_in(p->node, "the input has no such element");
  for (int64_t i = k; i < end; i++) {
    if (t->store == ASSAY_STORE_F64)
      assay_f64(t)[i] += p->at[2];
    else
      assay_i64(t)[i] = assay_type_wrap(t->type, assay_i64(t)[i] + (int64_t)p->at[2]);
  }
  return NULL;
}

static assay_status_t stale(const assay_injection_t* p, assay_tensor_t* t) {
  const int64_t k = (int64_t)p->at[1];
  if (t->rank == 0 || k < 0 || k >= t->dims[0])
    return no_memory_in(p->node, "the input has no such row");
  const int64_t row = t->size / t->dims[0], from = (k + t->dims[0] - 1) % t->dims[0];
  const size_t bytes = assay_store_elem_bytes(t->store) * (size_t)row;
  if (from != k)
    memcpy((char*)t->data + (size_t)k * bytes, (char*)t->data + (size_t)from * bytes, bytes);
  return NULL;
}

// Elements in the order of the transposed tensor, under the old shape.
static assay_status_t transpose(assay_tensor_t** t) {
  const assay_tensor_t* x = *t;
  const size_t bytes = assay_store_elem_bytes(x->store);
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_copy(x, &y));
  const int64_t inner = x->rank ? x->dims[x->rank - 1] : 1, outer = inner ? x->size / inner : 0;
  for (int64_t i = 0; i < outer; i++)
    for (int64_t k = 0; k < inner; k++)
      memcpy((char*)y->data + (size_t)(k * outer + i) * bytes,
             (char*)x->data + (size_t)(i * inner + k) * bytes, bytes);
  assay_tensor_release(*t);
  *t = y;
  return NULL;
}

static assay_status_t take_constant(const assay_injection_t* p, assay_tensor_t** t) {
  assay_tensor_t *wide = NULL, *as = NULL;
  ASSAY_TRY(assay_tensor_widen(p->constant->constant, &wide));
  assay_status_t st = NULL;
  if (wide->type != (*t)->type || wide->size != (*t)->size)
    st = no_memory_in(p->node, "the constant has another type or size");
  if (!st) st = assay_tensor_view(wide, (*t)->rank, (*t)->dims, &as);
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = as;
  return NULL;
}

static assay_status_t swap_inputs(const assay_injection_t* p, size_t n_in, assay_tensor_t** in) {
  assay_tensor_t **a = NULL, **b = NULL;
  ASSAY_TRY(input(p, 0, n_in, in, &a));
  ASSAY_TRY(input(p, 1, n_in, in, &b));
  assay_tensor_t* t = *a;
  *a = *b;
  *b = t;
  return NULL;
}

static assay_status_t round_all(assay_format_t format, size_t n, assay_tensor_t** t) {
  for (size_t i = 0; i < n; i++) {
    assay_tensor_t* rounded = NULL;
    if (!t[i]) continue;
    ASSAY_TRY(assay_round_tensor(t[i], format, &rounded));
    assay_tensor_release(t[i]);
    t[i] = rounded;
  }
  return NULL;
}

// ---- sums ---------------------------------------------------------------------------------------

// Sets the last k of every `length` elements, `step` apart, to 0.
static void zero_last(assay_tensor_t* t, int64_t length, int64_t step, int64_t k) {
  for (int64_t i = 0; i < t->size; i++)
    if (i / step % length >= length - k) assay_f64(t)[i] = 0;
}

// Along an axis, or all axes from it on.
static assay_status_t drop_terms(const assay_injection_t* p, assay_tensor_t** t, int64_t axis,
                                 bool and_behind) {
  ASSAY_TRY(own(t));
  const int rank = (*t)->rank;
  const int64_t a = axis < 0 ? axis + rank : axis, k = (int64_t)p->at[0];
  if (a < 0 || a >= rank || (*t)->store != ASSAY_STORE_F64 || (*t)->size == 0)
    return no_memory_in(p->node, "there is no sum over the input");
  const int64_t step = and_behind ? 1 : assay_dims_product((*t)->dims, (int)a + 1, rank);
  const int64_t length = assay_dims_product((*t)->dims, (int)a, and_behind ? rank : (int)a + 1);
  zero_last(*t, length, step, k < length ? k : length);
  return NULL;
}

static int64_t last_axis(const assay_node_t* n, size_t n_in, assay_tensor_t* const* in) {
  size_t count = 0;
  const int64_t* axes = assay_attr_ints(n, "axes", &count);
  if (count) return axes[count - 1];
  assay_tensor_t* wide = NULL;
  int64_t axis = -1;
  if (n_in > 1 && in[1] && in[1]->size && !assay_tensor_widen(in[1], &wide)) {
    if (wide->store == ASSAY_STORE_I64) axis = assay_i64(wide)[wide->size - 1];
    assay_tensor_release(wide);
  }
  return axis;
}

static assay_status_t leave_out_terms(const assay_injection_t* p, size_t n_in,
                                      assay_tensor_t** in) {
  const assay_node_t* n = p->node;
  if (!n_in || !is_numeric(in[0])) return no_memory_in(n, "there is no sum");
  if (strcmp(n->op_type, "MatMul") == 0) return drop_terms(p, &in[0], -1, false);
  if (strcmp(n->op_type, "Gemm") == 0)
    return drop_terms(p, &in[0], assay_attr_i64(n, "transA", 0) ? 0 : 1, false);
  if (strcmp(n->op_type, "Conv") == 0 && n_in > 1 && is_numeric(in[1]))
    return drop_terms(p, &in[1], 1, true);
  if (strncmp(n->op_type, "Reduce", 6) == 0)
    return drop_terms(p, &in[0], last_axis(n, n_in, in), false);
  if (strcmp(n->op_type, "GlobalAveragePool") == 0) return drop_terms(p, &in[0], 2, true);
  return no_memory_in(n, "it does not sum");
}

assay_status_t assay_injection_inputs(const assay_injection_t* p, const assay_node_t* node,
                                      size_t n_in, assay_tensor_t** in) {
  assay_tensor_t** t = NULL;
  if (!p || p->node != node) return NULL;
  switch (p->kind) {
    case SWAP:
      return swap_inputs(p, n_in, in);
    case ENTER:
      return round_all(p->format, n_in, in);
    case TERMS:
      return leave_out_terms(p, n_in, in);
    case SCALE:
    case ADD:
    case STALE:
    case CONSTANT:
    case TRANSPOSE:
      break;
    default:
      return NULL;
  }
  ASSAY_TRY(input(p, 0, n_in, in, &t));
  if (p->kind == CONSTANT) return take_constant(p, t);
  ASSAY_TRY(own(t));
  return p->kind == SCALE   ? scale(p, *t)
         : p->kind == ADD   ? add(p, *t)
         : p->kind == STALE ? stale(p, *t)
                            : transpose(t);
}

void assay_injection_evaluation(const assay_injection_t* p, const assay_node_t* node,
                                assay_eval_t* c) {
  if (!p || p->node != node) return;
  if (p->kind == SET || p->kind == OP) c->node = &p->changed;
  if (p->kind == ROUND || p->kind == ACCUMULATE) {
    c->arith = ASSAY_ARITH_NARROW;
    c->accumulator = p->kind == ROUND ? ASSAY_FORMAT_FP64 : p->format;
  }
}

// ---- outputs ------------------------------------------------------------------------------------

static void round_to_zero(assay_tensor_t* t, assay_format_t format) {
  for (int64_t i = 0; i < t->size; i++) {
    double* x = &assay_f64(t)[i];
    const double r = assay_format_round(format, *x, ASSAY_OVERFLOW_IEEE);
    if (!isfinite(*x)) continue;
    *x = fabs(r) > fabs(*x) ? assay_format_next(format, r, r > 0 ? -1 : 1) : r;
  }
}

static void flush(assay_tensor_t* t, assay_format_t format) {
  const double normal = assay_format_info(format)->min_normal;
  for (int64_t i = 0; i < t->size; i++)
    if (fabs(assay_f64(t)[i]) < normal) assay_f64(t)[i] = 0;
}

static void drop_tail(assay_tensor_t* t, int64_t k) {
  const size_t bytes = assay_store_elem_bytes(t->store);  // of floats and integers: 0 is all bits 0
  const int64_t kept = t->size > k ? t->size - k : 0;
  if (t->size) memset((char*)t->data + (size_t)kept * bytes, 0, (size_t)(t->size - kept) * bytes);
}

// Element i is element i - k, the first k stay.
static void shift(assay_tensor_t* t, int64_t k) {
  const size_t bytes = assay_store_elem_bytes(t->store);
  if (t->size > k)
    memmove((char*)t->data + (size_t)k * bytes, t->data, (size_t)(t->size - k) * bytes);
}

static assay_status_t change_output(const assay_injection_t* p, const assay_layer_t* layer,
                                    assay_tensor_t** t) {
  const int64_t k = p->at[0] > 0 ? (int64_t)p->at[0] : 0;
  // Of integers only quantized numbers, and where they are: others are sizes and places.
  const bool quantized = p->node->op && p->node->op->flags & ASSAY_OP_QUANTIZES;
  const bool moves = p->kind == TAIL || p->kind == SHIFT;
  if (!is_numeric(*t) || ((*t)->store != ASSAY_STORE_F64 && !(quantized && moves))) return NULL;
  const assay_format_t format = assay_layer_storage(layer, (*t)->type);
  if (p->kind == STORE) return round_all(p->format, 1, t);
  ASSAY_TRY(own(t));
  switch (p->kind) {
    case ROUND:
      round_to_zero(*t, format);
      break;
    case FLUSH:
      flush(*t, format);
      break;
    case TAIL:
      drop_tail(*t, k);
      break;
    case PUT:
      if (k >= (*t)->size) return no_memory_in(p->node, "the output has no such element");
      assay_f64(*t)[k] = p->at[1];
      break;
    default:
      shift(*t, k);
  }
  return NULL;
}

assay_status_t assay_injection_outputs(const assay_injection_t* p, const assay_node_t* node,
                                       const assay_layer_t* layer, size_t n_out,
                                       assay_tensor_t** out) {
  if (!p || p->node != node || p->kind < ROUND) return NULL;
  for (size_t i = 0; i < n_out; i++)
    if (out[i]) ASSAY_TRY(change_output(p, layer, &out[i]));
  return NULL;
}
