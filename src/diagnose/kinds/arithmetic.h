// The arithmetic that golden was computed in, where it is not float32: products of a GPU in TF32,
// of an accelerator in bfloat16 (each number in one part or in two), of a network run under
// autocast or wholly in 16 bits, with sums in 16 bits, or with weights that are stored in 16 bits.
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
  ASSAY_ARITHMETIC_WEIGHTS,       // constants that products read: stored so, all else float32
  ASSAY_ARITHMETIC_CONSTANTS,     // all constants
  // From here on single places, all else float32 (arithmetic_places.c).
  ASSAY_ARITHMETIC_SHARES,       // what a softmax gives, where it is multiplied
  ASSAY_ARITHMETIC_SCORES,       // what a softmax reads
  ASSAY_ARITHMETIC_CACHE,        // the right one of two computed matrices: keys, values
  ASSAY_ARITHMETIC_ACTIVATIONS,  // what products read, but for weights
  ASSAY_ARITHMETIC_NORMS,        // what normalizations give
  ASSAY_ARITHMETIC_INPUTS,       // what the network is given
  ASSAY_ARITHMETIC_TABLES,       // rows that are looked up
} assay_golden_arithmetic_scope_t;

// Products by what switches their arithmetic: cuDNN's and cuBLAS's are apart in PyTorch, and lists
// of what is cast by itself have convolutions and matrix products, some recurrent layers as well.
// Layers' matrix products, by a weight on the right, are apart from those of two computed matrices
// (attention) and of a constant by what is computed (a transform).
enum {
  ASSAY_PRODUCTS_CONVOLUTION = 1,
  ASSAY_PRODUCTS_MATRIX = 2,
  ASSAY_PRODUCTS_RECURRENT = 4,
  ASSAY_PRODUCTS_COMPUTED = 8,
  ASSAY_PRODUCTS_ANY = 15,
  ASSAY_PRODUCTS_WRITTEN = 16  // a Mul whose only reader sums: a product in golden's network
};

typedef struct assay_golden_arithmetic {
  assay_format_t format;  // NONE: float32 throughout
  bool truncates;         // operands are cut, not rounded
  assay_golden_arithmetic_scope_t scope;
  unsigned products;    // which of them
  bool spares_vectors;  // products of a matrix and a single row or column stay in float32
  bool spares_biases;   // of what products read, a bias is added in float32, as the sums are
  int parts;    // 2: operands are sums of two numbers, and the product of the small ones is left
                // out; 0 and 1: they are one
  int addends;  // so many products are added up exactly, their sum to the others' in the format;
                // 0: all, in float32
  bool sums_apart;  // the sum of those is rounded before it is added to the others
  uint64_t draw;    // rounds up or down by chance, by the draw of this number; 0: to the nearest
} assay_golden_arithmetic_t;

// Which kind of product a node is; 0: it is none.
unsigned assay_golden_arithmetic_products(const assay_node_t* n);
// Of a product's inputs, how many are its operands: a bias after them is added in float32.
size_t assay_golden_arithmetic_operands(const assay_node_t* n);
// Whether a value is known before a run: a constant, or made of constants.
bool assay_golden_arithmetic_is_weight(const assay_value_t* v);
// Whether a node sums a written product.
bool assay_golden_arithmetic_sums_written(const assay_node_t* n);
// Whether a product's result has one row or one column; a batch by one matrix counts as rows.
bool assay_golden_arithmetic_is_by_vector(const assay_node_t* n, size_t n_in,
                                          assay_tensor_t* const* in);
// The only reader of a value; NULL: there are more or none.
const assay_node_t* assay_golden_arithmetic_reader(const assay_value_t* v);

// Of scopes that are single places: whether input i of a node is one; whether a node is a
// normalization; whether a model has any.
bool assay_golden_arithmetic_is_place(const assay_golden_arithmetic_t* a, const assay_node_t* n,
                                      size_t i);
bool assay_golden_arithmetic_is_norm(const assay_node_t* n);
bool assay_golden_arithmetic_has_place(const assay_golden_arithmetic_t* a, const assay_model_t* m);

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
// Makes a product once more, from the inputs it was made from, whose parts or sums the arithmetic
// has: what rounding its inputs does not show. in: as rounded.
assay_status_t assay_golden_arithmetic_redo(const assay_golden_arithmetic_t* a,
                                            const assay_node_t* n, size_t n_in,
                                            assay_tensor_t* const* in,
                                            assay_tensor_t** out) ASSAY_MUST_USE;
// The large part of a number of two, and a sum in the format.
assay_status_t assay_golden_arithmetic_large_part(const assay_golden_arithmetic_t* a,
                                                  const assay_node_t* n, size_t i,
                                                  assay_tensor_t** t) ASSAY_MUST_USE;
// Whether all numbers are of the arithmetic's format.
assay_status_t assay_golden_arithmetic_holds(const assay_golden_arithmetic_t* a, assay_tensor_t* t,
                                             bool* out) ASSAY_MUST_USE;

// "with convolutions in TF32", "wholly in bf16", "with its weights in fp16": after "computed".
const char* assay_golden_arithmetic_text(const assay_golden_arithmetic_t* a);
// "tf32", "bf16 products", "bf16x3 products", "fp16 sums", "fp16 weights", "fp16": for programs.
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
  bool faint;  // the arithmetic's errors are little larger than float32's
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

// How likely it is that some of the arithmetic is golden's, of all products or of a part: the
// larger, the likelier.
double assay_golden_arithmetic_likeness(const assay_golden_arithmetic_probe_t* p,
                                        bool outputs_only);
// Whether inner values are as emulated, each that differs from truth, and several do.
bool assay_golden_arithmetic_is_whole(const assay_golden_arithmetic_probe_t* p);
// The largest correlation of one value's errors with the emulation's.
double assay_golden_arithmetic_trace(const assay_golden_arithmetic_probe_t* p);

// The correlation of golden's errors with the emulation's over all outputs, each in units of its
// own; 0: none is known.
double assay_golden_arithmetic_correlation(const assay_golden_arithmetic_probe_t* p);
// The logarithm of how many times as large the one is as the other (squares), without its sign.
double assay_golden_arithmetic_size(const assay_golden_arithmetic_probe_t* p);
// Whether so much is no chance, where errors of other draws have a mean square of `by_chance`.
bool assay_golden_arithmetic_is_sure(double correlation, double size, double by_chance);

// The arithmetics that are tried, the last one's format NONE; products is ANY. Sums in few bits
// are not among them (arithmetic_find.c).
extern const assay_golden_arithmetic_t assay_golden_arithmetics[];
// Of single places, likewise.
extern const assay_golden_arithmetic_t assay_golden_arithmetic_places[];

#endif  // ASSAY_DIAGNOSE_KINDS_ARITHMETIC_H_
