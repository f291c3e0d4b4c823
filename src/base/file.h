// Files: mapped for reading, replaced whole when written.
#ifndef ASSAY_BASE_FILE_H_
#define ASSAY_BASE_FILE_H_

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// A file mapped read-only; counted, since tensors point into it.
typedef struct assay_mapping assay_mapping_t;
assay_status_t assay_mapping_open(const char* path, assay_mapping_t** out) ASSAY_MUST_USE;
// The same for bytes in memory, which are copied (for models that do not come from a file).
assay_status_t assay_mapping_copy(const void* data, size_t size,
                                  assay_mapping_t** out) ASSAY_MUST_USE;
// So many zero bytes, which take no memory until they are read.
assay_status_t assay_mapping_zeros(size_t size, assay_mapping_t** out) ASSAY_MUST_USE;
// Bytes [offset, offset + size) of a mapping, which stays as long as the part does.
assay_status_t assay_mapping_part(assay_mapping_t* whole, size_t offset, size_t size,
                                  assay_mapping_t** out) ASSAY_MUST_USE;
void assay_mapping_retain(assay_mapping_t* m);
void assay_mapping_release(assay_mapping_t* m);   // NULL is allowed
void assay_mapping_release_owner(void* mapping);  // the same, as tensors call it
// Bytes that have been read and are not needed soon need not count as this process's memory: they
// are read from the file again when they are. Pages that hold other bytes, too, stay.
void assay_mapping_forget(const assay_mapping_t* m, const void* at, size_t n);
const uint8_t* assay_mapping_data(const assay_mapping_t* m);
size_t assay_mapping_size(const assay_mapping_t* m);

// Writes a file without a name in the same folder, and puts it in place when it is complete and on
// disk: readers see the old file or the new one, whatever happens. A process that is killed leaves
// nothing, unless it was about to replace a file, between two system calls: then the new file is
// whole beside the old one, as PATH.assay-part. Where the file system has no files without names
// (O_TMPFILE), or there is no /proc, it has a name from the first, PATH.assay-part1, -part2 ...,
// and stays there if the process is killed. The next writer of the same path removes what was left.
// A symbolic link stays, and what it leads to is replaced; a device or a pipe (/dev/null,
// /dev/stdout) is written as it is.
typedef struct assay_writer assay_writer_t;
assay_status_t assay_writer_open(const char* path, assay_writer_t** out) ASSAY_MUST_USE;
assay_status_t assay_writer_write(assay_writer_t* w, const void* data, size_t n) ASSAY_MUST_USE;
uint64_t assay_writer_offset(const assay_writer_t* w);
// Ends the file and puts it in place. The writer is gone either way.
assay_status_t assay_writer_commit(assay_writer_t* w) ASSAY_MUST_USE;
// The same without waiting until the disk has the bytes: for large files that can be made again and
// are checked when they are read. A process killed at any moment still leaves the old file or the
// new one; a machine that loses its power may leave a damaged one.
assay_status_t assay_writer_commit_soon(assay_writer_t* w) ASSAY_MUST_USE;
// Throws the temporary file away; NULL is allowed.
void assay_writer_abandon(assay_writer_t* w);

// Makes a folder, and those that it lies in; one that is there is fine.
assay_status_t assay_folder_make(const char* path) ASSAY_MUST_USE;

assay_status_t assay_file_write(const char* path, const void* data, size_t n) ASSAY_MUST_USE;

#endif  // ASSAY_BASE_FILE_H_
