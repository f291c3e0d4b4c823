// Models that declare float16 or bfloat16: the same model with float32 values, and the format that
// each node has instead.
#ifndef ASSAY_PASSES_FLOAT_TYPES_H_
#define ASSAY_PASSES_FLOAT_TYPES_H_

#include "passes/pass.h"

// Whether some value of a model is declared float16 or bfloat16.
bool assay_float_types_has_narrow(const assay_model_t* m);

// The format that a node of a rewritten model has by the types that the original model declared;
// NONE: these say nothing, as precision says. Of a node that stands for several nodes of different
// types it is that of the last one if all that it reads is stored in that format, else FP32.
assay_format_t assay_rewrite_declared_format(const assay_rewrite_t* r, const assay_node_t* node);

// Whether a node is a Cast to float32 that rounds, since its layer has a 16-bit format: what it
// reads may be other numbers than what it makes.
bool assay_rewrite_rounds(const assay_rewrite_t* r, const assay_node_t* node);

// Whether two nodes that could become one are declared, or asked for, in the same format.
bool assay_pass_same_format(const assay_pass_context_t* c, const assay_node_t* a,
                            const assay_node_t* b);

#endif  // ASSAY_PASSES_FLOAT_TYPES_H_
