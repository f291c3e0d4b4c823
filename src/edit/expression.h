// An operator written out in others, as text: the counterpart of passes/assemble/pattern.h.
//
//   x scale       an input of the node, by the name that the row gives it
//   0.5 -1        a constant of one element, of the type of the row's first input
//   $alpha        the same, an attribute of the node; with its default
//   Op(a, b)      a new node of ai.onnx
//   u=Op(a)       its output gets a name, and can be read again
//   Op?name(a, b) only if: `name` is an input and is there; or an integer attribute that is not 0;
//   or
//                 a float attribute that is not 1. Otherwise just `a`
//   Name(a)       a helper of the table in expression.c: Mean, Sum and Largest over the node's
//   axes,
//                 Channels, Groups, ShapedLike, Up, Down
#ifndef ASSAY_EDIT_EXPRESSION_H_
#define ASSAY_EDIT_EXPRESSION_H_

#include "passes/edit.h"

enum { ASSAY_EXPRESSION_INPUTS = 8 };

typedef struct assay_expression {
  const char* text;
  const char* inputs[ASSAY_EXPRESSION_INPUTS];  // names, by the node's inputs; ends with NULL
  // The axes that Mean and the like reduce; set before a node is built.
  int axes[ASSAY_MAX_RANK];
  int n_axes;
} assay_expression_t;

// Replaces a node by what the text says; its first output is what the outermost operator makes. The
// others must not be read.
// Errors: INTERNAL a text that cannot be read; UNSUPPORTED an operator that the model's operator
// set lacks.
assay_status_t assay_expression_build(assay_edit_t* e, assay_node_t* node,
                                      const assay_expression_t* x) ASSAY_MUST_USE;
// Whether the model's operator set has all operators of the text; NULL, or the first that it lacks,
// in `lacks` of 32 bytes.
bool assay_expression_fits(const assay_edit_t* e, const char* text, char lacks[32]);

#endif  // ASSAY_EDIT_EXPRESSION_H_
