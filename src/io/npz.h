// NumPy's archive of arrays: a zip file of npy members.
#ifndef ASSAY_IO_NPZ_H_
#define ASSAY_IO_NPZ_H_

#include "io/set.h"

// Reads all arrays, in the archive's order, under the members' names without ".npy". Stored members
// stay in the mapped file. Checksums, sizes and bounds are checked; what no honest file does
// (members that overlap, sizes that deflate cannot reach) is refused.
assay_status_t assay_npz_read(const char* path, assay_set_t* out) ASSAY_MUST_USE;
assay_status_t assay_npz_parse(const void* data, size_t size, assay_set_t* out) ASSAY_MUST_USE;

// Equal sets give equal files.
assay_status_t assay_npz_write(const char* path, const assay_set_t* set,
                               bool compress) ASSAY_MUST_USE;

#endif  // ASSAY_IO_NPZ_H_
