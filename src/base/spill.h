// Blocks that are kept for later: in a file without a name, once they would take more memory than
// the work before them did.
#ifndef ASSAY_BASE_SPILL_H_
#define ASSAY_BASE_SPILL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct assay_spilled assay_spilled_t;

// Whether a block of so many bytes, which is in memory and will stay for long, should not be:
// blocks that are too small for it never; others where the allocator has given out more than half
// of what the process had at most when this was first asked (the other half is for what comes and
// goes).
bool assay_spill_is_due(size_t bytes);
// A copy in a file in the folder for temporary files (TMPDIR, else /tmp), mapped; NULL where there
// is no room for it, or no such folder, or the user does not allow it: then the block stays where
// it is. Nothing is left of the file when the process ends, however it does.
assay_spilled_t* assay_spill(const void* data, size_t bytes);
void* assay_spilled_data(const assay_spilled_t* s);
void assay_spilled_release(void* spilled);  // as tensors call it

// Called now and then by who reads such blocks: pages that were read need not count as this
// process's memory; they are in the page cache as long as there is room. Cheap where there are
// none. Blocks may be read meanwhile.
void assay_spill_trim(void);

// For tests: from how many bytes in use on blocks are spilled; 0: as above. Returns what was set.
int64_t assay_spill_set_limit(int64_t bytes);
// For tests: blocks that are there.
size_t assay_spill_count(void);

#endif  // ASSAY_BASE_SPILL_H_
