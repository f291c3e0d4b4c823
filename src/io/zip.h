// Zip archives, as far as npz needs them: stored and deflated members, zip64.
#ifndef ASSAY_IO_ZIP_H_
#define ASSAY_IO_ZIP_H_

#include "base/file.h"
#include "base/str.h"

typedef struct assay_zip_member {
  const char* name;
  uint16_t method, flags;
  uint32_t crc;
  uint64_t packed, size;  // bytes in the archive, and as they were
  uint64_t header, data;  // offsets
} assay_zip_member_t;

// The members of an archive, in its directory's order. Free with assay_zip_close.
typedef struct assay_zip {
  assay_zip_member_t* members;
  size_t n;
  char* names;
} assay_zip_t;
assay_status_t assay_zip_open(const uint8_t* data, size_t size, assay_zip_t* out) ASSAY_MUST_USE;
void assay_zip_close(assay_zip_t* zip);

// The bytes of a member, checked: in place if it is stored (*out_owned NULL), else in *out_owned.
// file: whose bytes `data` are, which then need not all be in memory; NULL: they are no file's.
assay_status_t assay_zip_extract(const uint8_t* data, const assay_mapping_t* file,
                                 const assay_zip_member_t* m, const uint8_t** out,
                                 void** out_owned) ASSAY_MUST_USE;

// Appends a member whose bytes are those of two parts; keeps what the directory will need.
typedef struct assay_zip_writer {
  assay_writer_t* writer;  // borrowed
  assay_str_t directory;
  uint64_t n;
} assay_zip_writer_t;
assay_status_t assay_zip_append(assay_zip_writer_t* z, const char* name, bool compress,
                                const void* head, size_t head_len, const void* body,
                                size_t body_len) ASSAY_MUST_USE;
// Writes the directory. Frees what the writer holds in any case.
assay_status_t assay_zip_finish(assay_zip_writer_t* z) ASSAY_MUST_USE;

#endif  // ASSAY_IO_ZIP_H_
