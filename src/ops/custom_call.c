// How the functions of registered operators are called, and the table of what they may call.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/bound.h"
#include "ops/custom.h"

// One of infer, eval, bound and operands is set.
struct assay_op_call {
  const assay_custom_op_t* op;
  const assay_node_t* node;
  assay_infer_t* infer;
  assay_eval_t* eval;
  assay_bound_t* bound;
  const assay_custom_operand_t *kernel_in, *kernel_out;
  // Tensors that live until the call ends.
  assay_tensor_t** held;
  size_t n_held, cap_held;
};

static assay_op_call_t begin(const assay_node_t* node) {
  return (assay_op_call_t){.op = (const assay_custom_op_t*)(const void*)node->op, .node = node};
}

// Names node and model in front of what a function failed with.
static assay_status_t end(assay_op_call_t* c, assay_status_t st) {
  for (size_t i = 0; i < c->n_held; i++) assay_tensor_release(c->held[i]);
  assay_free(c->held);
  if (!st || strncmp(assay_status_message(st), "node '", 6) == 0) return st;
  const assay_node_t* n = c->node;
  const char* path = n->graph->model->path;
  return assay_status_note(st, "node '%s' (%s%s%s)%s%s%s", n->label, n->domain,
                           *n->domain ? "." : "", n->op_type, *path ? " of '" : "", path,
                           *path ? "'" : "");
}

// Keeps a tensor until the call ends; the reference goes over, also on failure.
static assay_status_t hold(assay_op_call_t* c, assay_tensor_t* take_tensor) {
  assay_status_t st = assay_grow(&c->held, &c->cap_held, c->n_held + 1, sizeof *c->held);
  if (st) return assay_tensor_release(take_tensor), st;
  c->held[c->n_held++] = take_tensor;
  return NULL;
}

static assay_status_t not_here(const assay_op_call_t* c, const char* what) {
  return ASSAY_NODE_ERROR(c->node, ASSAY_INTERNAL,
                          "its function calls %s, which is for another of an operator's functions",
                          what);
}

static assay_op_array_t array_of(const assay_tensor_t* t) {
  const bool floats = t->store == ASSAY_STORE_F64 || t->store == ASSAY_STORE_C128;
  return (assay_op_array_t){.type = t->type,
                            .rank = t->rank,
                            .dims = t->dims,
                            .size = t->size,
                            .f64 = floats ? t->data : NULL,
                            .i64 = t->store == ASSAY_STORE_I64 ? t->data : NULL};
}

static bool give(const assay_tensor_t* t, assay_op_array_t* out) {
  if (!t || t->kind != ASSAY_KIND_TENSOR) return false;
  *out = array_of(t);
  return true;
}

// ---- in every function --------------------------------------------------------------------------

static assay_status_t call_error(assay_code_t code, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return assay_status_create(code, text);
}

static const char* call_node(const assay_op_call_t* c) { return c->node->label; }
static int call_since(const assay_op_call_t* c) { return c->op->row.since; }
static size_t call_inputs(const assay_op_call_t* c) { return c->node->n_inputs; }
static size_t call_outputs(const assay_op_call_t* c) { return c->node->n_outputs; }

static bool call_has(const assay_op_call_t* c, size_t i) {
  return i < c->node->n_inputs && c->node->inputs[i];
}

static bool call_wants(const assay_op_call_t* c, size_t i) {
  return i < c->node->n_outputs && c->node->outputs[i];
}

static int64_t call_int(const assay_op_call_t* c, const char* name, int64_t otherwise) {
  return assay_attr_i64(c->node, name, otherwise);
}

static double call_float(const assay_op_call_t* c, const char* name, double otherwise) {
  return assay_attr_f64(c->node, name, otherwise);
}

static const char* call_text(const assay_op_call_t* c, const char* name, const char* otherwise) {
  return assay_attr_str(c->node, name, otherwise);
}

static const int64_t* call_ints(const assay_op_call_t* c, const char* name, size_t* out_n) {
  return assay_attr_ints(c->node, name, out_n);
}

static const float* call_floats(const assay_op_call_t* c, const char* name, size_t* out_n) {
  return assay_attr_floats(c->node, name, out_n);
}

static const char* call_text_at(const assay_op_call_t* c, const char* name, size_t i,
                                size_t* out_length) {
  size_t n;
  const assay_string_t* s = assay_attr_strings(c->node, name, &n);
  if (i >= n) return NULL;
  *out_length = s[i].len;
  return s[i].text;
}

static assay_status_t call_tensor(assay_op_call_t* c, const char* name, assay_op_array_t* out) {
  assay_tensor_t *t = assay_attr_tensor(c->node, name), *wide = NULL;
  if (!t) return ASSAY_ERROR(ASSAY_NOT_FOUND, "attribute '%s' is not set", name);
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  ASSAY_TRY(hold(c, wide));
  *out = array_of(wide);
  return NULL;
}

// ---- infer --------------------------------------------------------------------------------------

static const assay_valtype_t* type_of(const assay_op_call_t* c, size_t i) {
  const assay_valtype_t* t = call_has(c, i) ? c->node->inputs[i]->type : NULL;
  return t && t->kind == ASSAY_KIND_TENSOR ? t : NULL;
}

static assay_type_t call_input_type(const assay_op_call_t* c, size_t i) {
  const assay_valtype_t* t = type_of(c, i);
  return t ? t->elem : ASSAY_TYPE_UNDEFINED;
}

static int call_input_rank(const assay_op_call_t* c, size_t i) {
  const assay_valtype_t* t = type_of(c, i);
  return t && t->has_shape ? t->rank : -1;
}

static const assay_op_size_t* call_input_dim(const assay_op_call_t* c, size_t i, int d) {
  return d >= 0 && d < call_input_rank(c, i) ? type_of(c, i)->dims[d] : NULL;
}

static bool call_constant(const assay_op_call_t* c, size_t i, assay_op_array_t* out) {
  return c->infer && give(assay_infer_constant(c->infer, i), out);
}

static assay_dims_t* pool(const assay_op_call_t* c) { return c->node->graph->model->dims; }

// Expressions are made in inference only: runs may have several threads.
static const assay_op_size_t* call_size(assay_op_call_t* c, int64_t value) {
  return c->infer ? assay_dim_const(pool(c), value) : NULL;
}

static const assay_op_size_t* call_new_size(assay_op_call_t* c, const char* hint) {
  return c->infer ? assay_dim_fresh(pool(c), hint) : NULL;
}

static const assay_op_size_t* call_add(assay_op_call_t* c, const assay_op_size_t* a,
                                       const assay_op_size_t* b) {
  return c->infer ? assay_dim_add(pool(c), a, b) : NULL;
}

static const assay_op_size_t* call_subtract(assay_op_call_t* c, const assay_op_size_t* a,
                                            const assay_op_size_t* b) {
  return c->infer ? assay_dim_sub(pool(c), a, b) : NULL;
}

static const assay_op_size_t* call_multiply(assay_op_call_t* c, const assay_op_size_t* a,
                                            const assay_op_size_t* b) {
  return c->infer ? assay_dim_mul(pool(c), a, b) : NULL;
}

static const assay_op_size_t* call_divide(assay_op_call_t* c, const assay_op_size_t* a,
                                          const assay_op_size_t* b) {
  return c->infer ? assay_dim_floordiv(pool(c), a, b) : NULL;
}

// An output's type has to be one of the schema's.
static assay_status_t check_type(const assay_op_call_t* c, size_t i, assay_type_t type) {
  const assay_param_t* p = assay_schema_output(c->op->schema, i);
  if (p && type > ASSAY_TYPE_UNDEFINED && type < ASSAY_TYPE_COUNT && p->types.tensor >> type & 1)
    return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "output %zu is made as %s, which its schema does not say", i,
                          assay_type_name(type));
}

static assay_status_t check_rank(const assay_op_call_t* c, size_t i, int rank) {
  if (rank >= 0 && rank <= ASSAY_MAX_RANK) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "output %zu has rank %d; there is 0 to %d", i, rank, ASSAY_MAX_RANK);
}

static assay_status_t call_set_output(assay_op_call_t* c, size_t i, assay_type_t type, int rank,
                                      const assay_op_size_t* const* dims) {
  assay_shape_t shape = {.known = rank >= 0, .rank = rank};
  if (!c->infer) return not_here(c, "set_output()");
  if (!call_wants(c, i)) return NULL;
  if (type) ASSAY_TRY(check_type(c, i, type));
  if (rank < 0) return assay_infer_set(c->infer, i, type, NULL);
  ASSAY_TRY(check_rank(c, i, rank));
  for (int d = 0; d < rank; d++) {
    int64_t size;
    if (assay_dim_value(dims[d], &size) && size < 0)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "dimension %d of output %zu comes out as %lld", d, i,
                              (long long)size);
    shape.dims[d] = dims[d];
  }
  return assay_infer_set(c->infer, i, type, &shape);
}

static assay_status_t call_set_same(assay_op_call_t* c, size_t output, size_t input) {
  const int rank = call_input_rank(c, input);
  return call_set_output(c, output, call_input_type(c, input), rank,
                         rank < 0 ? NULL : type_of(c, input)->dims);
}

// ---- evaluate -----------------------------------------------------------------------------------

static const assay_tensor_t* input_of(const assay_op_call_t* c, size_t i) {
  if (c->eval) return i < c->eval->n_in ? c->eval->in[i] : NULL;
  return c->bound && i < c->bound->n_in ? c->bound->in[i] : NULL;
}

static bool call_input(const assay_op_call_t* c, size_t i, assay_op_array_t* out) {
  return give(input_of(c, i), out);
}

static const char* call_string(const assay_op_call_t* c, size_t i, int64_t k, size_t* out_length) {
  const assay_tensor_t* t = input_of(c, i);
  if (!t || t->store != ASSAY_STORE_STR || k < 0 || k >= t->size) return NULL;
  *out_length = assay_strings(t)[k].len;
  return assay_strings(t)[k].text;
}

static assay_status_t call_output(assay_op_call_t* c, size_t i, assay_type_t type, int rank,
                                  const int64_t* dims, void* out_elements) {
  assay_tensor_t* t = NULL;
  void* elements = NULL;
  if (!c->eval) return not_here(c, "output()");
  ASSAY_TRY(check_type(c, i, type));
  ASSAY_TRY(check_rank(c, i, rank));
  if (call_wants(c, i)) {
    ASSAY_TRY(assay_eval_output(c->eval, i, type, rank, dims, &t));
  } else {  // elements that nobody reads
    ASSAY_TRY(assay_tensor_create(type, rank, dims, &t));
    ASSAY_TRY(hold(c, t));
  }
  if (t->store != ASSAY_STORE_STR) {
    elements = t->data;
    memset(t->data, 0, (size_t)t->size * assay_store_elem_bytes(t->store));
  }
  memcpy(out_elements, &elements, sizeof elements);
  return NULL;
}

static assay_status_t call_set_string(assay_op_call_t* c, size_t i, int64_t k, const char* text,
                                      size_t length) {
  if (!c->eval) return not_here(c, "set_string()");
  if (!call_wants(c, i)) return NULL;
  assay_tensor_t* t = c->eval->out[i];
  if (!t || t->store != ASSAY_STORE_STR || k < 0 || k >= t->size)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "output %zu has no string %lld", i,
                            (long long)k);
  return assay_tensor_set_string(t, k, text, length);
}

static double call_accumulate(const assay_op_call_t* c, double x) {
  return c->eval ? assay_acc(c->eval, x) : x;
}

static bool call_accumulates(const assay_op_call_t* c) {
  return c->eval && c->eval->arith != ASSAY_ARITH_F64 &&
         c->eval->arith != ASSAY_ARITH_DOUBLE_DOUBLE;
}

// ---- bound --------------------------------------------------------------------------------------

static bool call_truth(const assay_op_call_t* c, size_t i, assay_op_array_t* out) {
  return c->bound && i < c->bound->n_out && give(c->bound->out[i], out);
}

static bool call_input_limits(const assay_op_call_t* c, size_t i, const double** out_guaranteed,
                              const double** out_probable) {
  const assay_limits_t* l =
      c->bound && c->bound->in_error && i < c->bound->n_in ? &c->bound->in_error[i] : NULL;
  if (!l || !l->guaranteed || !l->probable) return false;
  *out_guaranteed = assay_f64(l->guaranteed);
  *out_probable = assay_f64(l->probable);
  return true;
}

static assay_status_t call_limits(assay_op_call_t* c, size_t i, double** out_guaranteed,
                                  double** out_probable) {
  *out_guaranteed = *out_probable = NULL;
  if (!c->bound) return not_here(c, "limits()");
  return assay_bound_output(c->bound, i, out_guaranteed, out_probable);
}

static double call_unit(const assay_op_call_t* c) {
  return c->bound ? assay_bound_unit(c->bound->rounding->compute) : 0;
}

static double call_smallest(const assay_op_call_t* c) {
  return c->bound ? assay_bound_tiny(c->bound->rounding, c->bound->rounding->compute) : 0;
}

static void give_factor(assay_factor_t f, double* guaranteed, double* probable) {
  *guaranteed = f.guaranteed;
  *probable = f.probable;
}

static void call_sum_factor(const assay_op_call_t* c, double n, double* guaranteed,
                            double* probable) {
  const assay_factor_t none = {0};
  give_factor(c->bound ? assay_bound_sum(c->bound->rounding, n) : none, guaranteed, probable);
}

static void call_roundings_factor(const assay_op_call_t* c, double n, double* guaranteed,
                                  double* probable) {
  const assay_factor_t none = {0};
  give_factor(c->bound ? assay_bound_ops(c->bound->rounding, n) : none, guaranteed, probable);
}

static void call_function_factor(const assay_op_call_t* c, double* guaranteed, double* probable) {
  const assay_factor_t none = {0};
  give_factor(c->bound ? assay_bound_function(c->bound->rounding) : none, guaranteed, probable);
}

static assay_status_t call_monotone(assay_op_call_t* c, double roundings, double functions) {
  if (!c->bound) return not_here(c, "bound_monotone()");
  const assay_rounding_t* r = c->bound->rounding;
  const assay_factor_t f = assay_bound_function(r), n = assay_bound_ops(r, fmax(roundings, 0));
  const double k = fmax(functions, 0);
  return assay_bound_monotone(
      c->bound, assay_factor_add(n, (assay_factor_t){k * f.guaranteed, k * f.probable}));
}

// ---- kernel -------------------------------------------------------------------------------------

static bool call_kernel_input(const assay_op_call_t* c, size_t i, assay_op_array_t* out,
                              const void** out_data) {
  if (!c->kernel_in || i >= c->node->n_inputs || !c->kernel_in[i].there) return false;
  *out = c->kernel_in[i].array;
  *out_data = c->kernel_in[i].data;
  return true;
}

static bool call_kernel_output(const assay_op_call_t* c, size_t i, assay_op_array_t* out,
                               void** out_data) {
  if (!c->kernel_out || i >= c->node->n_outputs || !c->kernel_out[i].there) return false;
  *out = c->kernel_out[i].array;
  *out_data = c->kernel_out[i].data;
  return true;
}

const assay_ops_api_t assay_custom_api = {.struct_size = sizeof assay_custom_api,
                                          .version = ASSAY_OPS_VERSION,
                                          .add = assay_custom_add,
                                          .error = call_error,
                                          .node = call_node,
                                          .since_version = call_since,
                                          .input_count = call_inputs,
                                          .output_count = call_outputs,
                                          .has_input = call_has,
                                          .wants_output = call_wants,
                                          .attr_int = call_int,
                                          .attr_float = call_float,
                                          .attr_string = call_text,
                                          .attr_ints = call_ints,
                                          .attr_floats = call_floats,
                                          .attr_string_at = call_text_at,
                                          .attr_tensor = call_tensor,
                                          .input_type = call_input_type,
                                          .input_rank = call_input_rank,
                                          .input_dim = call_input_dim,
                                          .constant = call_constant,
                                          .size = call_size,
                                          .new_size = call_new_size,
                                          .add_sizes = call_add,
                                          .subtract_sizes = call_subtract,
                                          .multiply_sizes = call_multiply,
                                          .divide_sizes = call_divide,
                                          .size_value = assay_dim_value,
                                          .sizes_differ = assay_dim_differ,
                                          .set_output = call_set_output,
                                          .set_same = call_set_same,
                                          .input = call_input,
                                          .string = call_string,
                                          .output = call_output,
                                          .set_string = call_set_string,
                                          .accumulate = call_accumulate,
                                          .accumulates = call_accumulates,
                                          .truth = call_truth,
                                          .input_limits = call_input_limits,
                                          .limits = call_limits,
                                          .unit = call_unit,
                                          .smallest = call_smallest,
                                          .sum_factor = call_sum_factor,
                                          .roundings_factor = call_roundings_factor,
                                          .function_factor = call_function_factor,
                                          .bound_monotone = call_monotone,
                                          .kernel_input = call_kernel_input,
                                          .kernel_output = call_kernel_output};

// ---- a row's functions --------------------------------------------------------------------------

static assay_status_t infer(assay_infer_t* c) {
  assay_op_call_t call = begin(c->node);
  call.infer = c;
  return end(&call, call.op->spec.infer(&call, &assay_custom_api, call.op->spec.user));
}

// What backends reserve memory by has to be what comes.
static bool is_as_inferred(const assay_eval_t* c, size_t i, const assay_tensor_t* t) {
  const assay_valtype_t* want = c->node->outputs[i]->type;
  if (!want || want->kind != ASSAY_KIND_TENSOR) return true;
  const bool real = c->unquantized && assay_type_is_float(t->type);
  if (want->elem && want->elem != t->type && !real) return false;
  if (want->has_shape && want->rank != t->rank) return false;
  for (int d = 0; want->has_shape && d < t->rank; d++) {
    int64_t size;
    if (assay_dim_value(want->dims[d], &size) && size != t->dims[d]) return false;
  }
  return true;
}

static assay_status_t finish_outputs(const assay_eval_t* c) {
  for (size_t i = 0; i < c->n_out; i++) {
    assay_tensor_t* t = c->out[i];
    if (!c->node->outputs[i]) continue;
    if (!t)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "its function `evaluate` has not made output %zu: call api->output",
                              i);
    if (!is_as_inferred(c, i, t))
      return ASSAY_NODE_ERROR(
          c->node, ASSAY_INVALID_ARGUMENT,
          "its function `evaluate` has made output %zu as %s%s, and `infer` had "
          "said %s",
          i, assay_type_name(t->type), ASSAY_DIMS_TEXT(t),
          ASSAY_VALTYPE_TEXT(c->node->outputs[i]->type));
    for (int64_t k = 0; t->store == ASSAY_STORE_I64 && k < t->size; k++)
      assay_i64(t)[k] = assay_type_wrap(t->type, assay_i64(t)[k]);
  }
  return NULL;
}

static assay_status_t eval(assay_eval_t* c) {
  assay_op_call_t call = begin(c->node);
  call.eval = c;
  assay_status_t st = call.op->spec.evaluate(&call, &assay_custom_api, call.op->spec.user);
  if (!st) st = finish_outputs(c);
  return end(&call, st);
}

static assay_status_t bound(assay_bound_t* c) {
  assay_op_call_t call = begin(c->node);
  call.bound = c;
  return end(&call, call.op->spec.bound(&call, &assay_custom_api, call.op->spec.user));
}

static void cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_op_call_t call = begin(c->node);
  assay_eval_t shapes = *c;
  call.eval = &shapes;
  const double flops = call.op->spec.flops(&call, &assay_custom_api, call.op->spec.user);
  assay_status_free(end(&call, NULL));
  out->flops = flops > 0 ? flops : 0;
}

void assay_custom_make_row(assay_custom_op_t* op) {
  const assay_op_spec_t* s = &op->spec;
  op->row = (assay_op_t){
      .domain = s->domain,
      .name = s->name,
      .since = s->since_version,
      .flags =
          (s->flags & ASSAY_OP_SPEC_MOVES ? (uint32_t)(ASSAY_OP_MOVES | ASSAY_OP_SELECTS) : 0) |
          (s->flags & ASSAY_OP_SPEC_RANDOM ? (uint32_t)ASSAY_OP_RANDOM : 0),
      .discrete = s->discrete,
      .infer = s->infer ? infer : NULL,
      .eval = eval,
      .bound = s->bound ? bound : NULL,
      .cost = s->flops ? cost : NULL,
  };
}

// ---- kernels ------------------------------------------------------------------------------------

assay_status_t assay_custom_run_kernel(const assay_node_t* node, const assay_custom_operand_t* in,
                                       const assay_custom_operand_t* out) {
  assay_op_call_t call = begin(node);
  call.kernel_in = in;
  call.kernel_out = out;
  return end(&call, call.op->spec.kernel(&call, &assay_custom_api, call.op->spec.user));
}

bool assay_custom_takes(const assay_node_t* node, const assay_custom_operand_t* in,
                        const assay_custom_operand_t* out) {
  assay_op_call_t call = begin(node);
  bool all_float = true;
  call.kernel_in = in;
  call.kernel_out = out;
  if (call.op->spec.takes) {
    const bool takes = call.op->spec.takes(&call, &assay_custom_api, call.op->spec.user);
    assay_status_free(end(&call, NULL));
    return takes;
  }
  for (size_t i = 0; i < node->n_inputs; i++)
    all_float &= !in[i].there || in[i].array.type == ASSAY_TYPE_FLOAT;
  for (size_t i = 0; i < node->n_outputs; i++)
    all_float &= !out[i].there || out[i].array.type == ASSAY_TYPE_FLOAT;
  return all_float;
}
