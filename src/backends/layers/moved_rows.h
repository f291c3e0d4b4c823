// Nodes of a layer that only give the rows of a tensor other places: Transposes, rolls (Splits or
// Slices that are joined again) and Reshapes between them (passes/row_moves.h). They move nothing
// by themselves: what reads their result, or makes what they start from, finds each row by a table.
#ifndef ASSAY_BACKENDS_LAYERS_MOVED_ROWS_H_
#define ASSAY_BACKENDS_LAYERS_MOVED_ROWS_H_

#include "exec/kernel.h"

// A value that they start from.
typedef struct moved_source {
  const assay_value_t* value;
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
} moved_source_t;

// Where rows are: row i is row rows[i % period] + i - i % period, as each sample is moved alike. A
// table serves all batches so.
typedef struct moved_table {
  int32_t* rows;  // `period` of them, freed with assay_free; NULL: there is no table
  int64_t period;
} moved_table_t;

static inline int64_t moved_row(const moved_table_t* t, int64_t i) {
  const int64_t within = i % t->period;
  return t->rows[within] + (i - within);
}

// Whether a node is a Reshape, Transpose or Concat: a Split or Slice belongs to them where one of
// these reads it.
bool layer_is_move(const assay_node_t* n);
// The value from which nodes of the layer make `v`; NULL: they do not only move it.
const assay_value_t* layer_moved_source(const assay_sized_layer_t* l, const assay_value_t* v);

// The most elements that stay side by side wherever nodes of the layer move them on the way from
// the source to `moved`, whose dimensions are out_dims; 0: they do not only move it, something is
// not known before the run, or there is nothing to move.
int64_t layer_moved_columns(const assay_sized_layer_t* l, const moved_source_t* from,
                            const assay_value_t* moved, int* out_rank, int64_t* out_dims);
// In rows of `columns` elements, which divides that: the row of the source by row of `moved`. *out
// has no table where there are too many.
assay_status_t layer_moved_rows(const assay_sized_layer_t* l, const moved_source_t* from,
                                const assay_value_t* moved, int64_t columns,
                                moved_table_t* out) ASSAY_MUST_USE;

// Of a layer that moves whole rows of `columns` elements of what its first node makes, which has
// the dimensions of operand x: the row of the output by row of that. *out has no table where the
// layer does something else.
assay_status_t layer_moved_places(const assay_sized_layer_t* l, const assay_operand_t* x,
                                  int64_t columns, moved_table_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_LAYERS_MOVED_ROWS_H_
