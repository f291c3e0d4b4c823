// The table of operators: one row each, and what the functions of a row are given.
//
// A row holds from `since` (a version of its domain) until the next row of its name: a version
// that changes behaviour is a row of its own, a version that only widens types is not (the schema
// knows types). Rows stand at the end of the file that defines their functions; families.inc lists
// the files. Adding an operator: docs/add-an-operator.md.
#ifndef ASSAY_OPS_OP_H_
#define ASSAY_OPS_OP_H_

#include "formats/format.h"
#include "ir/ir.h"
#include "ops/schema.h"
#include "tensor/tensor.h"

typedef struct assay_infer assay_infer_t;
typedef struct assay_eval assay_eval_t;
typedef struct assay_bound assay_bound_t;                  // ops/bound.h
typedef struct assay_running_bound assay_running_bound_t;  // ops/running_bound.h
typedef struct assay_dd_eval assay_dd_eval_t;              // ops/dd_array.h

enum {
  ASSAY_OP_MOVES = 1 << 0,      // moves or selects elements, computes nothing: rounding error 0
  ASSAY_OP_RANDOM = 1 << 1,     // draws numbers
  ASSAY_OP_CONTROL = 1 << 2,    // has subgraphs
  ASSAY_OP_POINTWISE = 1 << 3,  // output element = function of the broadcast input elements
  ASSAY_OP_PACKED = 1 << 4,     // eval takes float inputs as they are stored (PACKED) too
  ASSAY_OP_QUANTIZES =
      1 << 5,  // makes or takes quantized tensors: knows truth 'unquantized' (quant.h)
  ASSAY_OP_KEEPS_TYPE = 1 << 6,  // the outputs' format is given by the model, never by --precision
  ASSAY_OP_CONTRACTS = 1 << 7,  // sums products of two operands: what tensor cores do (tf32 applies
                                // to `factors`)
  ASSAY_OP_SELECTS = 1 << 8,  // with MOVES: which element comes out hangs on what they are; NaN may
                              // come out or not
};

typedef struct assay_cost {
  double flops;  // multiplications, additions and function values, each 1
  double bytes;  // read and written once, in the declared types
} assay_cost_t;

typedef struct assay_op {
  const char* domain;  // "" for ai.onnx
  const char* name;
  int since;
  uint32_t flags;
  uint32_t factors;    // with CONTRACTS: bit i: input i is multiplied in these sums; 0: all are
  uint32_t discrete;   // bit i: output i is a discrete choice (index, comparison, rounding)
  const char* schema;  // text form, for operators that the onnx package lacks; NULL: generated
  // Types and shapes of the outputs. NULL: as many outputs as there are, types by the schema's
  // variables, shapes unknown.
  assay_status_t (*infer)(assay_infer_t* c);
  // The outputs' elements. NULL: cannot be evaluated; said so when the model is checked.
  assay_status_t (*eval)(assay_eval_t* c);
  // Rounding bound of each output element: ops/bound.h. NULL: 0, for operators that move elements
  // and for discrete outputs.
  assay_status_t (*bound)(assay_bound_t* c);
  // The outputs in twice the precision of float64: ops/dd_array.h. NULL: only where nothing is
  // rounded.
  void (*dd)(assay_dd_eval_t* c);
  // NULL: no flops, all inputs and outputs once.
  void (*cost)(const assay_eval_t* c, assay_cost_t* out);
} assay_op_t;

// The row in force for a domain's version; NULL if none.
const assay_op_t* assay_op_find(const char* domain, const char* name, int64_t version);
size_t assay_op_family_count(void);
const assay_op_t* assay_op_family(size_t i);  // ends with a row without name

// ---- attributes, for infer and eval ------------------------------------------------------------
// The node's value, else the schema's default, else what is said here. The checker has made sure
// that types are right and required ones are there. Floats are float32, defaults too: a model
// that writes a default out and one that leaves it out mean the same number.

int64_t assay_attr_i64(const assay_node_t* n, const char* name, int64_t otherwise);
double assay_attr_f64(const assay_node_t* n, const char* name, double otherwise);
const char* assay_attr_str(const assay_node_t* n, const char* name, const char* otherwise);
// Lists: NULL with *out_n = 0 if not set.
const int64_t* assay_attr_ints(const assay_node_t* n, const char* name, size_t* out_n);
const float* assay_attr_floats(const assay_node_t* n, const char* name, size_t* out_n);
const assay_string_t* assay_attr_strings(const assay_node_t* n, const char* name, size_t* out_n);
assay_tensor_t* assay_attr_tensor(const assay_node_t* n, const char* name);
assay_graph_t* assay_attr_graph(const assay_node_t* n, const char* name);
bool assay_attr_is(const assay_node_t* n, const char* name, const char* text);  // string equal
bool assay_attr_has(const assay_node_t* n, const char* name);  // set on the node itself

// ---- inference -------------------------------------------------------------------------------

struct assay_infer {
  assay_model_t* model;
  assay_graph_t* graph;
  const assay_node_t* node;
  assay_dims_t* dims;
  // Infers a subgraph of the node whose inputs have these types (NULL: as declared); then its
  // outputs' types can be read from graph->outputs[i]->type.
  assay_status_t (*infer_graph)(assay_infer_t* c, assay_graph_t* graph, size_t n_inputs,
                                const assay_valtype_t* const* input_types);
  void* driver;
};

// An error about this node: "node 'conv1' (Conv): ..." in front. For wrong models.
#define ASSAY_NODE_ERROR(node, code, ...) \
  assay_node_error(__FILE__, __LINE__, (node), (code), __VA_ARGS__)
assay_status_t assay_node_error(const char* file, int line, const assay_node_t* node,
                                assay_code_t code, const char* format, ...)
    ASSAY_PRINTF(5, 6) ASSAY_MUST_USE;

// A shape being read or made. known: the rank is known. dims[i] NULL: that one is not.
typedef struct assay_shape {
  bool known;
  int rank;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
} assay_shape_t;

bool assay_infer_has(const assay_infer_t* c, size_t input);     // input is there (not left out)
bool assay_infer_wants(const assay_infer_t* c, size_t output);  // output is there
const assay_valtype_t* assay_infer_type(const assay_infer_t* c, size_t input);  // NULL: unknown
assay_type_t assay_infer_elem(const assay_infer_t* c, size_t input);  // UNDEFINED if unknown
assay_shape_t assay_infer_shape(const assay_infer_t* c, size_t input);
// Elements of an integer input of rank 0 or 1 as expressions, from a constant or from content.
// False: unknown. Floats that are whole numbers count (Resize's scales do not: use _constant).
bool assay_infer_content(const assay_infer_t* c, size_t input, assay_content_t* out);
// The input as a canonical tensor if it is constant before running, else NULL. Borrowed.
const assay_tensor_t* assay_infer_constant(const assay_infer_t* c, size_t input);
// Fails unless the input's rank is unknown or in [min, max].
assay_status_t assay_infer_want_rank(const assay_infer_t* c, size_t input, int min,
                                     int max) ASSAY_MUST_USE;
// Normalizes an axis of [-rank, rank): error naming the attribute otherwise.
assay_status_t assay_infer_axis(const assay_infer_t* c, const char* what, int64_t axis, int rank,
                                int* out) ASSAY_MUST_USE;

// Sets output i. elem UNDEFINED: as the schema's type variable says. shape NULL: unknown rank.
// An output that is left out is skipped.
assay_status_t assay_infer_set(assay_infer_t* c, size_t output, assay_type_t elem,
                               const assay_shape_t* shape) ASSAY_MUST_USE;
assay_status_t assay_infer_set_type(assay_infer_t* c, size_t output,
                                    const assay_valtype_t* type) ASSAY_MUST_USE;
// n elements (borrowed during the call).
assay_status_t assay_infer_set_content(assay_infer_t* c, size_t output, int rank, int64_t n,
                                       const assay_dim_t* const* elems) ASSAY_MUST_USE;
// NumPy broadcasting of two shapes into *out; error naming both if they do not fit.
assay_status_t assay_infer_broadcast(const assay_infer_t* c, const assay_shape_t* a,
                                     const assay_shape_t* b, assay_shape_t* out) ASSAY_MUST_USE;
const assay_dim_t* assay_shape_size(assay_dims_t* p, const assay_shape_t* s, int from, int to);

// Ready-made ones.
assay_status_t assay_infer_same(assay_infer_t* c);  // outputs: type and shape of input 0
assay_status_t assay_infer_broadcasts(
    assay_infer_t* c);  // output 0: all inputs broadcast; type by schema
assay_status_t assay_infer_bool_broadcasts(assay_infer_t* c);  // the same, bool

// ---- evaluation ------------------------------------------------------------------------------

// What arithmetic a kernel does.
typedef enum assay_arith {
  ASSAY_ARITH_F64 = 0,  // truth and native: double, in any order that does not depend on threads
  ASSAY_ARITH_F32,      // emu: products and sums in fp32, in the order of the documentation
  ASSAY_ARITH_NARROW,   // the same with each sum rounded to `accumulator` (--accumulate F, doubles)
  ASSAY_ARITH_STOCHASTIC,  // as NARROW, rounded up or down by chance: to see what rounding can do
  ASSAY_ARITH_DOUBLE_DOUBLE,  // in double-double (base/double_double.h): what assay_dd_products
                              // evaluates
} assay_arith_t;

typedef enum assay_mode {
  ASSAY_MODE_TRUTH = 0,  // the design's truth: float64 whatever the graph's types say
  ASSAY_MODE_NATIVE,     // as truth, and each output rounded to its declared type (by the driver)
  ASSAY_MODE_PLAN,       // a backend's layer: outputs rounded to the layer's format by the driver
} assay_mode_t;

struct assay_eval {
  const assay_node_t* node;
  assay_mode_t mode;
  bool unquantized;  // truth: quantizers do not round (quant.h)
  assay_arith_t arith;
  assay_format_t accumulator;      // of NARROW and STOCHASTIC
  bool backwards;                  // not F64: products are summed from the last term to the first
  uint64_t draws;                  // of STOCHASTIC: which draws
  int64_t max_elems;               // outputs of more elements are refused; 0: none is
  bool coarse;                     // F64: products of matrices may be computed in fp32 (for bounds)
  uint64_t seed;                   // of the run, for random operators
  uint64_t iteration;              // of the loops around the node (assay_random_iteration); 0: none
  uint64_t round;                  // set by a loop before run_graph: 1, 2, ...; 0: no loop
  assay_running_bound_t* running;  // limits on rounding are made, too; NULL: they are not
  assay_tensor_t** low;  // of DD: the low parts of the outputs; output 0's is made with it
  size_t n_in, n_out;
  assay_tensor_t** in;   // canonical (or PACKED where the row says so); NULL: left out
  assay_tensor_t** out;  // to be filled; wants() says which; the driver releases them
  // Runs a subgraph of the node: inputs by position, all outputs retained into out[].
  assay_status_t (*run_graph)(assay_eval_t* c, assay_graph_t* graph, size_t n_in,
                              assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out);
  void* driver;
};

static inline bool assay_eval_has(const assay_eval_t* c, size_t i) {
  return i < c->n_in && c->in[i] != NULL;
}
static inline bool assay_eval_wants(const assay_eval_t* c, size_t i) {
  return i < c->n_out && c->node->outputs[i] != NULL;
}
// The declared type of an output: from inference, else the one given (usually the input's).
assay_type_t assay_eval_out_type(const assay_eval_t* c, size_t i, assay_type_t otherwise);
// Makes output i (canonical, elements not set) and gives it. Fails cleanly on absurd shapes.
assay_status_t assay_eval_output(assay_eval_t* c, size_t i, assay_type_t type, int rank,
                                 const int64_t* dims, assay_tensor_t** out) ASSAY_MUST_USE;
// Makes output i a tensor that exists already (retained).
void assay_eval_set(assay_eval_t* c, size_t i, assay_tensor_t* t);
// Normalizes an axis of [-rank, rank); an error naming it otherwise.
assay_status_t assay_eval_axis(const assay_eval_t* c, const char* what, int64_t axis, int rank,
                               int* out) ASSAY_MUST_USE;
// Fails unless the input is left out or a tensor of rank in [min, max].
assay_status_t assay_eval_want_rank(const assay_eval_t* c, size_t input, int min,
                                    int max) ASSAY_MUST_USE;
// The broadcast shape of tensors (NULLs are skipped).
assay_status_t assay_eval_broadcast(const assay_eval_t* c, size_t n, assay_tensor_t* const* t,
                                    int* out_rank, int64_t* out_dims) ASSAY_MUST_USE;

// A running sum's rounding in the arithmetic asked for: wrap every sum and product that an engine
// would round in its accumulator. F64: the value itself.
double assay_acc_narrow(const assay_eval_t* c, double x);
static inline double assay_acc(const assay_eval_t* c, double x) {
  if (c->arith == ASSAY_ARITH_F64 || c->arith == ASSAY_ARITH_DOUBLE_DOUBLE) return x;
  if (c->arith == ASSAY_ARITH_F32) return (double)(float)x;
  if (c->accumulator == ASSAY_FORMAT_FP64) return x;
  return assay_acc_narrow(c, x);
}

// Iterates over an output shape with broadcast inputs: offsets step by these strides (in elements;
// 0 where the input is broadcast). strides has out_rank entries.
void assay_broadcast_strides(const assay_tensor_t* t, int out_rank, const int64_t* out_dims,
                             int64_t* strides);

#endif  // ASSAY_OPS_OP_H_
