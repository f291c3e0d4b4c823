// Operators of one's own: what the custom operators of a model mean, told by a program or by a
// library that `assay --ops LIB.so` opens.
//
// An operator is a schema and functions: its outputs' types and shapes, their elements, and if
// wanted a bound on rounding errors and a kernel for the CPU. The one function for elements serves
// truth, native mode and the emulated engine. docs/custom-operators.md has an example.
//
// All that these functions call is in a table that they are given, so that a library needs nothing
// to link with. The table and the structs only grow at their ends.
#ifndef ASSAY_OPS_H_
#define ASSAY_OPS_H_

#include <assay/status.h>
#include <assay/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_OPS_VERSION 1  // of this interface; another one is another interface

typedef struct assay_ops_api assay_ops_api_t;    // all that operators may call
typedef struct assay_ops_list assay_ops_list_t;  // of operators being registered
typedef struct assay_op_call assay_op_call_t;    // one call of an operator's function
typedef struct assay_dim assay_op_size_t;        // a size that may be open: a number, N, 2*N + 1

// The functions of an operator. A failure names the node and the model in front of its message.
//   call   valid until the function returns; so is all that is read by way of it
//   user   of the spec
// Threads: any, and several at a time
typedef assay_status_t assay_op_fn_t(assay_op_call_t* call, const assay_ops_api_t* api, void* user);
// Multiplications, additions and function values of a run, each 1; input() gives shapes only.
typedef double assay_op_flops_t(assay_op_call_t* call, const assay_ops_api_t* api, void* user);
// Whether the kernel is for these inputs and outputs: kernel_input, kernel_output without elements.
typedef bool assay_op_takes_t(assay_op_call_t* call, const assay_ops_api_t* api, void* user);

enum {
  ASSAY_OP_SPEC_MOVES = 1,   // moves or selects elements and computes none: rounding error 0
  ASSAY_OP_SPEC_RANDOM = 2,  // two runs may differ: it is neither folded nor merged with its like
};

// An operator. Texts are copied; `user` must live as long as the program.
typedef struct assay_op_spec {
  size_t struct_size;
  uint32_t version;    // ASSAY_OPS_VERSION of the header that it is compiled with
  const char* domain;  // such as "com.example"
  const char* name;
  int since_version;  // of the domain, 1 or more: the spec holds from it to the next one's
  // "X:T, bias?:T, rest*:T -> Y:T, count:int64 | alpha:f=0.5, axis:i!, mode:s=linear |
  // T=float float16 double": inputs and outputs, attributes, type variables.
  //   inputs, outputs  name:type; ? optional, * any number of them (the last one only)
  //   attributes       name:kind; kinds i f s t is fs ss; ! required, = default
  //   variables        ONNX's type names, FLOAT (float float16 bfloat16 double), INT (8 to 64 bits)
  const char* schema;
  const char* revision;  // of this implementation, such as "1.2": a plan remembers it, and is
                         // refused where it is another one; NULL: ""
  uint32_t flags;
  uint32_t discrete;  // bit i: output i is a discrete choice (an index, a comparison, a rounding)
  void* user;
  assay_op_fn_t* infer;     // types and shapes; NULL: types by the schema, shapes known in a run
  assay_op_fn_t* evaluate;  // elements
  assay_op_fn_t* bound;     // limits on rounding errors; NULL: none are known, unless MOVES or
                            // discrete
  assay_op_flops_t* flops;  // NULL: none
  assay_op_fn_t* kernel;    // the CPU's; NULL: layers are evaluated
  assay_op_takes_t* takes;  // NULL: the kernel takes float, as all it is given and gives
} assay_op_spec_t;
#define ASSAY_OP_SPEC_INIT \
  { sizeof(assay_op_spec_t), ASSAY_OPS_VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// A tensor. Of its elements one pointer is set: floats of all types are doubles, integers and bools
// int64_t (uint64 by its bits), complex ones two doubles each. Strings: api->string().
typedef struct assay_op_array {
  assay_type_t type;
  int rank;
  const int64_t* dims;
  int64_t size;  // elements
  const double* f64;
  const int64_t* i64;
} assay_op_array_t;

struct assay_ops_api {
  size_t struct_size;
  uint32_t version;  // ASSAY_OPS_VERSION

  // ---- registering ------------------------------------------------------------------------------
  // Errors: INVALID_ARGUMENT what is missing or wrong in the spec, and operators that there are
  assay_status_t (*add)(assay_ops_list_t* list, const assay_op_spec_t* spec);

  // ---- in every function ------------------------------------------------------------------------
  assay_status_t (*error)(assay_code_t code, const char* format, ...);  // as printf
  const char* (*node)(const assay_op_call_t* call);
  int (*since_version)(const assay_op_call_t* call);  // of the spec in force
  size_t (*input_count)(const assay_op_call_t* call);
  size_t (*output_count)(const assay_op_call_t* call);
  bool (*has_input)(const assay_op_call_t* call, size_t i);
  bool (*wants_output)(const assay_op_call_t* call, size_t i);
  // The node's attribute, else the schema's default, else `otherwise`; lists: NULL and 0. A float's
  // default is the float32 nearest to it.
  int64_t (*attr_int)(const assay_op_call_t* call, const char* name, int64_t otherwise);
  double (*attr_float)(const assay_op_call_t* call, const char* name, double otherwise);
  const char* (*attr_string)(const assay_op_call_t* call, const char* name, const char* otherwise);
  const int64_t* (*attr_ints)(const assay_op_call_t* call, const char* name, size_t* out_n);
  const float* (*attr_floats)(const assay_op_call_t* call, const char* name, size_t* out_n);
  // String i of a list; NULL past its end. It may hold NULs and does not end in one for sure.
  const char* (*attr_string_at)(const assay_op_call_t* call, const char* name, size_t i,
                                size_t* out_length);
  // Errors: NOT_FOUND not set
  assay_status_t (*attr_tensor)(assay_op_call_t* call, const char* name, assay_op_array_t* out);

  // ---- infer ------------------------------------------------------------------------------------
  assay_type_t (*input_type)(const assay_op_call_t* call, size_t i);  // UNDEFINED: not known
  int (*input_rank)(const assay_op_call_t* call, size_t i);           // -1: not known
  // Dimension d; NULL: not known. Sizes that are equal for every input are one pointer.
  const assay_op_size_t* (*input_dim)(const assay_op_call_t* call, size_t i, int d);
  // The elements of an input that are known before the run, if they are few; false: they are not.
  bool (*constant)(const assay_op_call_t* call, size_t i, assay_op_array_t* out);
  // Arithmetic of sizes; of what is not known it gives NULL.
  const assay_op_size_t* (*size)(assay_op_call_t* call, int64_t value);
  const assay_op_size_t* (*new_size)(assay_op_call_t* call,
                                     const char* hint);  // known only in a run
  const assay_op_size_t* (*add_sizes)(assay_op_call_t* call, const assay_op_size_t* a,
                                      const assay_op_size_t* b);
  const assay_op_size_t* (*subtract_sizes)(assay_op_call_t* call, const assay_op_size_t* a,
                                           const assay_op_size_t* b);
  const assay_op_size_t* (*multiply_sizes)(assay_op_call_t* call, const assay_op_size_t* a,
                                           const assay_op_size_t* b);
  const assay_op_size_t* (*divide_sizes)(assay_op_call_t* call, const assay_op_size_t* a,
                                         const assay_op_size_t* b);  // rounded down
  bool (*size_value)(const assay_op_size_t* a, int64_t* out);        // false: not one number
  bool (*sizes_differ)(const assay_op_size_t* a, const assay_op_size_t* b);  // for every input
  // Types and shapes. type UNDEFINED: by the schema's type variable; rank -1: not known.
  assay_status_t (*set_output)(assay_op_call_t* call, size_t i, assay_type_t type, int rank,
                               const assay_op_size_t* const* dims);
  assay_status_t (*set_same)(assay_op_call_t* call, size_t output, size_t input);

  // ---- evaluate (input and string: also in bound)
  // --------------------------------------------------
  bool (*input)(const assay_op_call_t* call, size_t i, assay_op_array_t* out);  // false: left out
  // Element k of an input of strings; NULL if k is out of range.
  const char* (*string)(const assay_op_call_t* call, size_t i, int64_t k, size_t* out_length);
  // Makes output i, of zeros, and gives its elements: double* or int64_t*, NULL for strings.
  // Results need no rounding, nor wrapping to their integer type. What inference said must hold.
  // Where the output is left out, there is nothing to be made.
  assay_status_t (*output)(assay_op_call_t* call, size_t i, assay_type_t type, int rank,
                           const int64_t* dims, void* out_elements);
  assay_status_t (*set_string)(assay_op_call_t* call, size_t i, int64_t k, const char* text,
                               size_t length);
  // A running sum as the accumulator keeps it: wrap each sum in it that an engine would round.
  double (*accumulate)(const assay_op_call_t* call, double x);
  // Whether accumulate() changes anything: truth and native mode sum in float64.
  bool (*accumulates)(const assay_op_call_t* call);

  // ---- bound: limits on |what an engine computes - truth on the same inputs|
  // ---------------------- `guaranteed` no rounding can pass; `probable` fewer than one in 10^6
  // elements pass. Truth of output i on the inputs.
  bool (*truth)(const assay_op_call_t* call, size_t i, assay_op_array_t* out);
  // How far the engine's input may lie from what input() gives, element by element; false: it is
  // the same. A function that does not follow inputs that differ fails with UNSUPPORTED then.
  bool (*input_limits)(const assay_op_call_t* call, size_t i, const double** out_guaranteed,
                       const double** out_probable);
  // Makes the limits of output i, to be filled; NULLs where it has none: left out, strings.
  assay_status_t (*limits)(assay_op_call_t* call, size_t i, double** out_guaranteed,
                           double** out_probable);
  double (*unit)(const assay_op_call_t* call);      // relative error of one rounding
  double (*smallest)(const assay_op_call_t* call);  // absolute error of one in the subnormal range
  // Factors on sum|terms| of a sum of n products; on |result| of n roundings in a row, and of one
  // library function.
  void (*sum_factor)(const assay_op_call_t* call, double n, double* guaranteed, double* probable);
  void (*roundings_factor)(const assay_op_call_t* call, double n, double* guaranteed,
                           double* probable);
  void (*function_factor)(const assay_op_call_t* call, double* guaranteed, double* probable);
  // All of it, inputs that differ too, for results of so many roundings in a row and library
  // functions, without cancellation, that are monotone in each input.
  assay_status_t (*bound_monotone)(assay_op_call_t* call, double roundings, double functions);

  // ---- kernel, takes: elements as in ONNX's raw_data
  // ---------------------------------------------- Floats of 16 bits come and go as float. data:
  // NULL in takes, and where it is left out.
  bool (*kernel_input)(const assay_op_call_t* call, size_t i, assay_op_array_t* out,
                       const void** out_data);
  bool (*kernel_output)(const assay_op_call_t* call, size_t i, assay_op_array_t* out,
                        void** out_data);
};

// What registers operators: calls api->add(list, ...) for each. If it fails, none is registered.
// A library for --ops and assay_ops_load defines one of the name assay_register_ops.
typedef assay_status_t assay_ops_fn_t(const assay_ops_api_t* api, assay_ops_list_t* list);
#define ASSAY_OPS_SYMBOL "assay_register_ops"
assay_ops_fn_t assay_register_ops;  // define it with ASSAY_API, so that it can be found

// Registers operators for all models that this process loads from now on. origin: what messages
// call their source; NULL: "the program".
// Errors: those of the function, and of api->add
// Threads: any
ASSAY_API assay_status_t assay_ops_register(assay_ops_fn_t* fn, const char* origin);
// Opens a library, which stays open, and registers its operators. One that was loaded already: OK.
// Errors: NOT_FOUND no such file; CORRUPT no library, or without assay_register_ops; those of
// assay_ops_register
ASSAY_API assay_status_t assay_ops_load(const char* path);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_OPS_H_
