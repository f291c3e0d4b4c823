// The arithmetic that golden was computed in, where it is not float32: products of a GPU in TF32,
// of an accelerator in bfloat16, of a network run under autocast or wholly in 16 bits.
//
// Such golden is off truth by far more than float32's rounding explains, at every product, and the
// export is not to blame. It is told by emulation: the same nodes on the same inputs in that
// arithmetic miss truth by the same, element for element.
#ifndef ASSAY_DIAGNOSE_KINDS_ARITHMETIC_H_
#define ASSAY_DIAGNOSE_KINDS_ARITHMETIC_H_

#include "formats/format.h"
#include "ir/ir.h"
#include "tensor/tensor.h"

// What the format is a format of.
typedef enum assay_golden_arithmetic_scope {
  ASSAY_ARITHMETIC_OPERANDS = 0,  // what products read; sums and results are float32
  ASSAY_ARITHMETIC_PRODUCTS,      // the same, and what they give
  ASSAY_ARITHMETIC_AUTOCAST,      // the same, and what goes on from that in 16 bits
  ASSAY_ARITHMETIC_ALL,           // every value
} assay_golden_arithmetic_scope_t;

// Products by what switches their arithmetic: cuDNN's and cuBLAS's are apart in PyTorch, and lists
// of what is cast by itself have convolutions and matrix products, some recurrent layers as well.
enum {
  ASSAY_PRODUCTS_CONVOLUTION = 1,
  ASSAY_PRODUCTS_MATRIX = 2,
  ASSAY_PRODUCTS_RECURRENT = 4,
  ASSAY_PRODUCTS_ANY = 7
};

typedef struct assay_golden_arithmetic {
  assay_format_t format;  // NONE: float32 throughout
  bool truncates;         // operands are cut, not rounded
  assay_golden_arithmetic_scope_t scope;
  unsigned products;    // which of them
  bool spares_vectors;  // products of a matrix and a single row or column stay in float32
  bool spares_biases;   // of what products read, a bias is added in float32, as the sums are
  uint64_t draw;  // rounds up or down by chance, by the draw of this number; 0: to the nearest
} assay_golden_arithmetic_t;

// Which kind of product a node is; 0: it is none.
unsigned assay_golden_arithmetic_products(const assay_node_t* n);

// Rounds what a node reads, and what it gives, as the arithmetic does. in[i], out[i] are replaced.
assay_status_t assay_golden_arithmetic_round_inputs(const assay_golden_arithmetic_t* a,
                                                    const assay_node_t* n, size_t n_in,
                                                    assay_tensor_t** in) ASSAY_MUST_USE;
assay_status_t assay_golden_arithmetic_round_outputs(const assay_golden_arithmetic_t* a,
                                                     const assay_node_t* n, size_t n_in,
                                                     assay_tensor_t* const* in, size_t n_out,
                                                     assay_tensor_t** out) ASSAY_MUST_USE;
// One output, whichever node it is of.
assay_status_t assay_golden_arithmetic_round_output(const assay_golden_arithmetic_t* a,
                                                    const assay_node_t* n, size_t i,
                                                    assay_tensor_t** t) ASSAY_MUST_USE;
// Whether all numbers are of the arithmetic's format.
assay_status_t assay_golden_arithmetic_holds(const assay_golden_arithmetic_t* a, assay_tensor_t* t,
                                             bool* out) ASSAY_MUST_USE;

// "TF32 convolutions and matrix products", "bf16 throughout": after "computed in" or "with".
const char* assay_golden_arithmetic_text(const assay_golden_arithmetic_t* a);
// "tf32", "bf16 products", "fp16": for programs.
const char* assay_golden_arithmetic_name(const assay_golden_arithmetic_t* a);

// ---- evidence ----------------------------------------------------------------------------------

// What golden's values say of an arithmetic, summed over elements. With d = golden - truth and
// e = emulated - truth, both from the same inputs:
typedef struct assay_golden_arithmetic_sums {
  const assay_value_t* value;
  double de, dd, ee, rr;  // of d e, d d, e e, (d - e)^2
  double ref;             // of golden's squares
  double n;
} assay_golden_arithmetic_sums_t;

// A walk beside golden that measures instead of looking for faults.
typedef struct assay_golden_arithmetic_probe {
  assay_golden_arithmetic_sums_t* at;  // by value id
  size_t n;
} assay_golden_arithmetic_probe_t;

// Adds a value's elements. Values of other shapes, and that are not float, say nothing.
assay_status_t assay_golden_arithmetic_probe_add(assay_golden_arithmetic_probe_t* p,
                                                 const assay_value_t* v,
                                                 const assay_tensor_t* truth,
                                                 const assay_tensor_t* golden,
                                                 assay_tensor_t* emulated) ASSAY_MUST_USE;

// How well an arithmetic explains what golden is off truth by; 0: it does not. The largest wins.
//   outputs_only   golden has no inner values: outputs show the sum of all that went before
double assay_golden_arithmetic_judge(const assay_golden_arithmetic_probe_t* p, bool outputs_only);

// The correlation of golden's errors with the emulation's over all outputs, each in units of its
// own; 0: none is known.
double assay_golden_arithmetic_correlation(const assay_golden_arithmetic_probe_t* p);
// Whether so much is no chance, where errors of other draws have a mean square of `by_chance`.
bool assay_golden_arithmetic_is_sure(double correlation, double by_chance);

// The arithmetics that are tried, the last one's format NONE; products is ANY.
extern const assay_golden_arithmetic_t assay_golden_arithmetics[];

#endif  // ASSAY_DIAGNOSE_KINDS_ARITHMETIC_H_
