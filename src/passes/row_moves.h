// Nodes that only give whole rows of a tensor other places, as windows are cut and joined (Swin):
// Transposes that keep the last dimensions, Splits, Slices and Concats along the others, and
// Reshapes. Backends read rows where they lie, and write them where they go
// (backends/layers/moved_rows.h).
#ifndef ASSAY_PASSES_ROW_MOVES_H_
#define ASSAY_PASSES_ROW_MOVES_H_

#include "passes/pass.h"

// Rows shorter than that are moved by layers of their own, which are good at single elements.
enum { ASSAY_ROW_COLUMNS = 16, ASSAY_ROW_MOVES = 12 };

// Whether a node is one of these, by constants; shapes may follow from sizes, too. of_sizes: by
// node id (assay_mark_of_sizes). *out_columns: so many elements stay side by side; 0: all of them,
// it is a Reshape.
bool assay_moves_rows(const assay_node_t* n, const bool* of_sizes, int64_t* out_columns);
// The marks of a pass's model, freed with assay_free.
assay_status_t assay_row_moves_sizes(const assay_pass_context_t* c, bool** out) ASSAY_MUST_USE;
// The inputs that it moves are the first so many.
size_t assay_moved_inputs(const assay_node_t* n);
// What stays side by side in both; 0: all.
int64_t assay_common_columns(int64_t a, int64_t b);

// The nodes that make a value of one other.
typedef struct assay_row_moves {
  assay_node_t* nodes[ASSAY_ROW_MOVES];  // the last one first
  size_t n;
  int64_t columns;
  const assay_value_t* source;
} assay_row_moves_t;

// Those above a value that one node reads, once, as far as nobody else reads what they make; n 0:
// there are none that move anything.
void assay_row_moves_above(const assay_pass_context_t* c, const assay_uses_t* uses,
                           const bool* of_sizes, const assay_value_t* v, assay_row_moves_t* out);

#endif  // ASSAY_PASSES_ROW_MOVES_H_
