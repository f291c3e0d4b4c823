// Files below a folder, opened so that no link leads out of it, whatever changes meanwhile.
#ifndef ASSAY_BASE_BENEATH_H_
#define ASSAY_BASE_BENEATH_H_

#include "base/file.h"

// A folder that is held open: it stays the same one if its path comes to name another.
typedef struct assay_folder assay_folder_t;
// The path may hold symbolic links: it is the user's.
assay_status_t assay_folder_open(const char* path, assay_folder_t** out) ASSAY_MUST_USE;
void assay_folder_close(assay_folder_t* f);  // NULL is allowed

typedef enum assay_beneath {
  ASSAY_BENEATH_HARD_LINKS = 1,  // the file may have several names
  ASSAY_BENEATH_WALK = 2,        // folder by folder, as on systems without openat2 (for tests)
} assay_beneath_t;

// Maps the file that a relative path names below the folder. Symbolic links on the way are not
// followed, '..' is refused, and so is a file with several names (hard links), one of which may lie
// anywhere, unless flags allow it. What is checked is the open file, so that nothing can be put in
// its place after the check.
// Errors: NOT_FOUND; CORRUPT a link, or a path that leaves the folder; UNSUPPORTED no regular file
assay_status_t assay_mapping_open_beneath(const assay_folder_t* folder, const char* path,
                                          unsigned flags, assay_mapping_t** out) ASSAY_MUST_USE;

// Maps an open file, which can then be closed. path: for messages.
assay_status_t assay_mapping_of_file(int fd, const char* path,
                                     assay_mapping_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BASE_BENEATH_H_
