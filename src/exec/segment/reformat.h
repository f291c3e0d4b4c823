// Elements put into another form: type, layout or both. How that is done is each backend's.
#ifndef ASSAY_EXEC_SEGMENT_REFORMAT_H_
#define ASSAY_EXEC_SEGMENT_REFORMAT_H_

#include "exec/kernel.h"

typedef struct assay_reformat {
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
  int64_t size;
  assay_storage_t from, to;
  assay_type_t through;  // float elements are rounded to this type before they become to.type
} assay_reformat_t;

// Whether the bytes stay what they are.
bool assay_reformat_is_copy(const assay_reformat_t* m);
// Bytes of what is read, or written; elements are packed.
size_t assay_reformat_bytes(const assay_reformat_t* m, assay_type_t type);

#endif  // ASSAY_EXEC_SEGMENT_REFORMAT_H_
