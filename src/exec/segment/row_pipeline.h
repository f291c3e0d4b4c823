// Row pipelines: kernels one after the other, each of which makes rows out of rows of the one
// before (assay_by_rows_t), that take turns a few rows at a time, so that what one hands to the
// next is still in the cache and needs no memory of the arena. Bits are those of the kernels by
// themselves.
#ifndef ASSAY_EXEC_SEGMENT_ROW_PIPELINE_H_
#define ASSAY_EXEC_SEGMENT_ROW_PIPELINE_H_

#include "exec/kernel.h"

enum { ASSAY_PIPELINE_KERNELS = 4 };

typedef struct assay_pipeline {
  int first, n;   // layers [first, first + n)
  int64_t rows;   // of the last output, made at once
  int max_parts;  // threads that share its rows
  int64_t work;   // vector operations of all of them
  // Where in a thread's memory the rows lie that kernel i hands on, how many there is room for, and
  // where the scratch memory of all kernels begins.
  size_t window[ASSAY_PIPELINE_KERNELS];
  int64_t capacity[ASSAY_PIPELINE_KERNELS];
  size_t scratch, thread_bytes;
} assay_pipeline_t;

static inline int assay_pipeline_last(const assay_pipeline_t* t) { return t->first + t->n - 1; }

#endif  // ASSAY_EXEC_SEGMENT_ROW_PIPELINE_H_
