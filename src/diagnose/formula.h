// Nodes that a model lacks: a small expression over its values, in ai.onnx's operators.
//
// Written as a program of words, from left to right on a stack (reverse Polish):
//   x           the source: the value in whose place the result stands, or another
//   v, u        the formula's other values
//   c, d        its constants
//   1.702       a number, in the source's type
//   + - * / ^ max min > < >= <= == and or xor matmul   of the two on top
//   dup         the one on top again
//   cast        the one on top in the source's type
//   bool        the one on top as a condition: whether it is not 0;   int: in 64-bit integers
//   not         of booleans
//   where       of condition, x, y
//   mean, sum, highest, lowest, product, length, magnitude, squares, logsumexp
//               over the formula's axes, whose dimensions stay as 1; with a dot after it (mean.)
//               they go. length: of a vector, ReduceL2; magnitude: ReduceL1; squares: their sum
//   softmax, logsoftmax   over its one axis
//   gather      elements `c` along its one axis;   gather2: elements `d` along the second
//   take        of data and indices: elements of data along the formula's one axis
//   scatter, scatter+   of data, indices and updates: ScatterND, which sets or adds
//   put, put+   the same by ScatterElements along the formula's one axis
//   reverse     of data and lengths: ReverseSequence, the formula's axes being those of the batch
//               and of the steps
//   unsqueeze   one more dimension at its one axis
//   reshape:0,8,-1   in this shape, 0 and -1 as in Reshape
//   pad:0,1,0,1   with so many zeros before and behind each dimension, as Pad has it
//   maxpool:2,3,2,1,1,0   MaxPool over 2 dimensions by windows of 3, in steps of 2, with 1 of
//   padding
//                     on either side;   meanpool: AveragePool, the last number being whether
//                     padding counts
//   transpose:0,2,1   with its dimensions in this order
//   w:0, k:0          the formula's further values and constants;   none: an input that is left out
//   slice:2,0,5,1     elements 0 to before 5 of dimension 2, in steps of 1
//   concat:2,3        the three on top joined along dimension 2
//   reversed:0,1      of data and lengths: rows along dimension 0 turned round, one for each of 1
//   cumsum:1,0,0     sums of all before along dimension 1; without the element itself; from the end
//   last:1            of data and indices: GatherND with so many dimensions of the batch
//   like:3,0,0        an operator on the three on top, as node 0 of the formula's has it with its
//                     attributes: its output 0
//   Relu, Erf ...     another word is a unary operator without attributes
// "x 0.5 * Erf 1 + x *" is x (1 + erf(x / 2)).
#ifndef ASSAY_DIAGNOSE_FORMULA_H_
#define ASSAY_DIAGNOSE_FORMULA_H_

#include "ops/op.h"

struct assay_evaluator;

typedef struct assay_formula assay_formula_t;

enum { ASSAY_FORMULA_STEPS = 24, ASSAY_FORMULA_TEXT = 320, ASSAY_FORMULA_MORE = 8 };

// What a program's words stand for. Texts are copied, tensors retained.
typedef struct assay_formula_terms {
  const char* program;
  const assay_value_t* source;  // NULL: what the result takes the place of
  const assay_value_t *value, *value2;
  // The same made by other formulas, where the model has no such value; retained.
  assay_formula_t *source_made, *value_made, *value2_made;
  const assay_value_t* more[ASSAY_FORMULA_MORE];
  assay_formula_t* more_made[ASSAY_FORMULA_MORE];
  assay_tensor_t* constants[ASSAY_FORMULA_MORE];
  const assay_node_t* like[ASSAY_FORMULA_MORE];
  assay_tensor_t *c, *d;
  int64_t axes[ASSAY_MAX_RANK];  // 0 or more
  int n_axes;
} assay_formula_terms_t;

// Appends a word and, behind a colon, its numbers to a program of ASSAY_FORMULA_TEXT; the new end,
// or ASSAY_FORMULA_TEXT where there is no room, which is no program.
size_t assay_formula_append(char* program, size_t used, const char* word, const int64_t* list,
                            int n);
assay_status_t assay_formula_create(const assay_formula_terms_t* terms,
                                    assay_formula_t** out) ASSAY_MUST_USE;
assay_formula_t* assay_formula_retain(assay_formula_t* f);
void assay_formula_release(assay_formula_t* f);  // NULL is allowed

// Marks the values that it reads, by id; false: there are none.
bool assay_formula_mark(const assay_formula_t* f, bool* read);

// The formula of other values. to: by id of a value, what takes its place; NULL: constants and
// inputs of the graph stay what they are. *out NULL: a value that a node makes has no other.
assay_status_t assay_formula_translate(const assay_formula_t* f, const assay_value_t* const* to,
                                       assay_formula_t** out) ASSAY_MUST_USE;

// The value on other data than the model's own; NULL: what the result takes the place of.
const assay_value_t* assay_formula_source(const assay_formula_t* f);

// From now on each of its nodes rounds what it makes to its type, as a run does, or not: what
// rounding makes of the result is the difference.
void assay_formula_set_rounding(assay_formula_t* f, bool rounds);

// The result with `x` as source, in truth. Values are read from the evaluator's slots. `like`: a
// node of the top graph of the model, which the formula's nodes are to stand beside.
// Errors: those of evaluating; NOT_FOUND where the model's version lacks an operator.
assay_status_t assay_formula_evaluate(const assay_formula_t* f, struct assay_evaluator* m,
                                      const assay_node_t* like, assay_tensor_t* x,
                                      assay_tensor_t** out) ASSAY_MUST_USE;

// Puts the nodes into a graph of the same names before position *at, which moves on.
//   type  of the source's elements
//   in    the value in whose place the result stands
//   result  the value that the last node makes; NULL: a new one
//   *out  the value that holds the result
assay_status_t assay_formula_insert(const assay_formula_t* f, assay_graph_t* g, assay_type_t type,
                                    assay_value_t* in, assay_value_t* result, size_t* at,
                                    assay_value_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_FORMULA_H_
