// Statistics of saved tensors, by the names of the values that they are of: what is shown beside a
// model's values.
#ifndef ASSAY_REPORT_TENSOR_INFO_H_
#define ASSAY_REPORT_TENSOR_INFO_H_

#include "base/alloc.h"
#include "base/str.h"
#include "compare/numeric.h"

typedef struct assay_tensor_stats {
  const char* name;
  const char* text;  // "mean=0.2, std-dev=..." as Polygraphy says it; "" where they are not numbers
  assay_numeric_stats_t numbers;
  assay_type_t type;
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  bool met;  // the model has a value of this name
} assay_tensor_stats_t;

// Starts as {0}. Fields are read freely.
typedef struct assay_tensor_info {
  assay_arena_t* arena;         // all below lives in it
  assay_tensor_stats_t* items;  // in the file's order
  size_t n;
  size_t n_runs;  // iterations and runners that the file holds; it is the first one's tensors that
                  // are told
  assay_map_t by_name;
} assay_tensor_info_t;

// Reads a file of any format that tensors are kept in (data/tensor_files.h). Errors: as there;
// NOT_FOUND it holds none.
assay_status_t assay_tensor_info_read(const char* path, assay_tensor_info_t* out) ASSAY_MUST_USE;
void assay_tensor_info_deinit(assay_tensor_info_t* info);
// NULL: there is no such tensor, or no info.
assay_tensor_stats_t* assay_tensor_info_find(const assay_tensor_info_t* info, const char* name);

#endif  // ASSAY_REPORT_TENSOR_INFO_H_
