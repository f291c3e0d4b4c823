// What the files of src/ir share.
#ifndef ASSAY_IR_INTERNAL_H_
#define ASSAY_IR_INTERNAL_H_

#include "ir/ir.h"

// Deeper nesting than this is refused, so that walks over graphs and types may recurse.
enum { IR_MAX_GRAPH_DEPTH = 64, IR_MAX_TYPE_DEPTH = 32 };

// Makes room in an array that lives in the arena. The old array stays there until the model goes;
// growing geometrically, that is at most as much again.
assay_status_t ir_grow(assay_arena_t* arena, void* array, size_t* capacity, size_t need,
                       size_t size) ASSAY_MUST_USE;

// A node without label and index, everything else as assay_node_create.
assay_status_t ir_node_alloc(assay_graph_t* g, const char* domain, const char* op_type,
                             const char* name, size_t n_inputs, size_t n_outputs, size_t n_attrs,
                             assay_node_t** out) ASSAY_MUST_USE;

// The domain in its one spelling: "" for "ai.onnx".
const char* ir_domain(const char* domain);

// Text that is cut where the buffer ends. capacity is at least 1.
typedef struct ir_cut {
  char* text;
  size_t capacity, len;
} ir_cut_t;
void ir_put(ir_cut_t* c, const char* s);

#endif  // ASSAY_IR_INTERNAL_H_
