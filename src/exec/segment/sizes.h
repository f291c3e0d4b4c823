// Sizes of dimensions while a model runs: names are bound as values that have them come into being.
#ifndef ASSAY_EXEC_SEGMENT_SIZES_H_
#define ASSAY_EXEC_SEGMENT_SIZES_H_

#include "base/str.h"
#include "ir/ir.h"

enum { ASSAY_INFERRED_RANK = 8 };

// The dimensions of a value that the model's own types do not tell; rank -1: nobody does.
typedef struct assay_inferred_dims {
  int rank;
  int64_t dims[ASSAY_INFERRED_RANK];
} assay_inferred_dims_t;

// A dimension that grows from run to run. The capacity is of the dimension itself, or of a size
// that is made of it in a run, such as P + S.
typedef struct assay_growth {
  const char* name;           // the model's
  const assay_dim_t* within;  // NULL: itself
  int64_t capacity;
} assay_growth_t;

typedef struct assay_sizes {
  assay_map_t index;  // of a name in `size`
  const char** name;  // the model's
  int64_t* size;
  size_t n, cap, cap_names;
  assay_inferred_dims_t* reports;  // by value id; NULL: nothing was asked for yet
  size_t n_inferred;
} assay_sizes_t;

void assay_sizes_deinit(assay_sizes_t* s);
void assay_sizes_clear(assay_sizes_t* s);
// A value of this type has these dimensions.
assay_status_t assay_sizes_bind(assay_sizes_t* s, const assay_valtype_t* type, int rank,
                                const int64_t* dims);
// What an expression is with them; false if it has names that are not bound.
bool assay_sizes_eval(const assay_sizes_t* s, const assay_dim_t* d, int64_t* out);
// A copy; whether two have the same names bound to the same sizes, in the same order.
assay_status_t assay_sizes_copy(const assay_sizes_t* s, assay_sizes_t* out);
bool assay_sizes_same(const assay_sizes_t* a, const assay_sizes_t* b);
// Whether two have the same names, in the same order, bound to sizes that differ in growing
// dimensions only, which are within their capacity in b.
bool assay_sizes_grow(const assay_sizes_t* a, const assay_sizes_t* b, const assay_growth_t* growth,
                      size_t n);
// A copy with each growing dimension at its capacity, and `more`.
assay_status_t assay_sizes_at_capacity(const assay_sizes_t* s, const assay_growth_t* growth,
                                       size_t n, int64_t more, assay_sizes_t* out);
// Asks the model for these sizes of its inputs what no expression says: sizes that follow from
// others through floats, or through more than inference keeps track of. Once between two clears.
assay_status_t assay_sizes_ask(assay_sizes_t* s, const assay_model_t* model);
// The dimensions of a value; false if they are not all known yet, or more than max.
bool assay_sizes_of(const assay_sizes_t* s, const assay_value_t* v, int max, int* out_rank,
                    int64_t* out_dims);

#endif  // ASSAY_EXEC_SEGMENT_SIZES_H_
