// Whether a path can be written, asked before the work whose result goes there.
#ifndef ASSAY_BASE_WRITABLE_H_
#define ASSAY_BASE_WRITABLE_H_

#include "base/status.h"

// A file that assay_writer_open could write. Nothing is made, and nothing changes.
// Errors: DEVICE, with the reason and what to do about it; the path is not named.
assay_status_t assay_writable_file(const char* path) ASSAY_MUST_USE;
// A folder that assay_folder_make could make, or that is there, for files in it. The same errors.
assay_status_t assay_writable_folder(const char* path) ASSAY_MUST_USE;

#endif  // ASSAY_BASE_WRITABLE_H_
