// Where a model can be cut for debug reduce: in front of and after each of its nodes, in their
// order. What lies before such a place is one model, what lies after it another.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_CUT_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_CUT_H_

#include "base/alloc.h"
#include "ir/ir.h"

// A model with its places. Nodes whose outputs are constants, or that no output of the model needs,
// are none.
typedef struct pg_cuts {
  assay_model_t* model;  // ready to be run
  const assay_node_t** nodes;
  size_t n;
  size_t* made;  // by value id: the place of the node that makes it; SIZE_MAX: an input or constant
  size_t* used;  // by value id: the last place that reads it, + 1; 0: none
} pg_cuts_t;

// Retains the model; the rest is in the arena.
assay_status_t pg_cuts_find(assay_arena_t* arena, assay_model_t* model,
                            pg_cuts_t* out) ASSAY_MUST_USE;
void pg_cuts_release(pg_cuts_t* c);

typedef struct pg_values {
  const assay_value_t** items;
  size_t n;
} pg_values_t;

// What comes out of the first places up to `last`: what others read, and outputs of the model.
assay_status_t pg_cuts_outputs(assay_arena_t* arena, const pg_cuts_t* c, size_t last,
                               pg_values_t* out) ASSAY_MUST_USE;
// The outputs of that place alone.
assay_status_t pg_cuts_own_outputs(assay_arena_t* arena, const pg_cuts_t* c, size_t at,
                                   pg_values_t* out) ASSAY_MUST_USE;
// What goes into the places from `first` on, and the outputs of the model that these make.
assay_status_t pg_cuts_inputs(assay_arena_t* arena, const pg_cuts_t* c, size_t first,
                              pg_values_t* out_in, pg_values_t* out_out) ASSAY_MUST_USE;

// A part of the model; NULL: its own inputs, outputs. What nothing needs is left out.
assay_status_t pg_cuts_part(const pg_cuts_t* c, const pg_values_t* in, const pg_values_t* out,
                            assay_model_t** out_part) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_CUT_H_
