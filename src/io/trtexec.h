// trtexec's JSON of outputs (--exportOutput): one set.
//
// Numbers have no type there: whole ones become int64, others double.
#ifndef ASSAY_IO_TRTEXEC_H_
#define ASSAY_IO_TRTEXEC_H_

#include "io/json.h"
#include "io/saved.h"

bool assay_trtexec_is(const json_t* root);
assay_status_t assay_trtexec_read(const json_t* root, assay_saved_t* out) ASSAY_MUST_USE;
// With as many digits as it takes to read every value back; NaN, Infinity and -Infinity as Python
// has them. float8 and the like are written as their values.
assay_status_t assay_trtexec_write(const char* path, const assay_set_t* set) ASSAY_MUST_USE;

#endif  // ASSAY_IO_TRTEXEC_H_
