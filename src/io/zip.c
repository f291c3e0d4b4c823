// Source: PKWARE APPNOTE.TXT 6.3.10: 4.3.7 local headers, 4.3.12 directory, 4.3.14 to 4.3.16 its
// end, 4.5.3 zip64.
#include "io/zip.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"

enum {
  LOCAL = 0x04034b50,
  DIRECTORY = 0x02014b50,
  END = 0x06054b50,
  END64 = 0x06064b50,
  LOCATOR64 = 0x07064b50,
  LOCAL_BYTES = 30,
  DIRECTORY_BYTES = 46,
  END_BYTES = 22,
  END64_BYTES = 56,
  LOCATOR64_BYTES = 20,
  STORED = 0,
  DEFLATED = 8,
  // Deflate makes at most 258 bytes of 2 bits.
  MAX_RATIO = 1032,
};

static uint64_t get(const uint8_t* p, size_t bytes) {
  uint64_t v = 0;
  memcpy(&v, p, bytes);  // little-endian, as this machine is
  return v;
}

// ---- reading ----------------------------------------------------------------------------------

typedef struct end {
  uint64_t n, size, offset;  // of the directory
} end_t;

static assay_status_t find_end(const uint8_t* data, size_t size, end_t* out) {
  if (size < END_BYTES) return ASSAY_ERROR(ASSAY_CORRUPT, "no zip archive: it has %zu bytes", size);
  // A comment of up to 64 KiB may follow.
  size_t at = size - END_BYTES, min = at > 0xffff ? at - 0xffff : 0;
  while (get(data + at, 4) != END || get(data + at + 20, 2) != size - at - END_BYTES)
    if (at-- == min)
      return ASSAY_ERROR(ASSAY_CORRUPT, "no zip archive, or cut off: it has no directory");
  *out = (end_t){get(data + at + 10, 2), get(data + at + 12, 4), get(data + at + 16, 4)};
  if (get(data + at + 4, 2) || get(data + at + 6, 2) || get(data + at + 8, 2) != out->n)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "the zip archive is spread over several files");
  bool wide = at >= LOCATOR64_BYTES && get(data + at - LOCATOR64_BYTES, 4) == LOCATOR64;
  if (!wide) return NULL;
  uint64_t end64 = get(data + at - LOCATOR64_BYTES + 8, 8);
  if (size < END64_BYTES || end64 > size - END64_BYTES || get(data + end64, 4) != END64)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "the zip archive's 64-bit directory end is not where it says");
  *out = (end_t){get(data + end64 + 32, 8), get(data + end64 + 40, 8), get(data + end64 + 48, 8)};
  return NULL;
}

// Fills in what stands in the extra field of zip64: those of the numbers that are all ones.
static bool read_zip64(const uint8_t* extra, size_t len, assay_zip_member_t* m) {
  uint64_t* const fields[] = {&m->size, &m->packed, &m->header};
  bool open[3];
  for (int i = 0; i < 3; i++) open[i] = *fields[i] == 0xffffffff;
  if (!open[0] && !open[1] && !open[2]) return true;
  for (size_t at = 0; len - at >= 4;) {
    size_t id = get(extra + at, 2), n = get(extra + at + 2, 2);
    at += 4;
    if (n > len - at) return false;
    if (id == 1) {
      for (int i = 0; i < 3; i++) {
        if (!open[i]) continue;
        if (n < 8) return false;
        *fields[i] = get(extra + at, 8);
        at += 8;
        n -= 8;
      }
      return true;
    }
    at += n;
  }
  return false;
}

// Where the bytes of a member start, from its local header.
static assay_status_t find_data(const uint8_t* data, size_t size, assay_zip_member_t* m) {
  if (size < LOCAL_BYTES || m->header > size - LOCAL_BYTES || get(data + m->header, 4) != LOCAL)
    return ASSAY_ERROR(ASSAY_CORRUPT, "member '%s' is not where the directory says", m->name);
  m->data = m->header + LOCAL_BYTES + get(data + m->header + 26, 2) + get(data + m->header + 28, 2);
  if (m->data > size || m->packed > size - m->data)
    return ASSAY_ERROR(ASSAY_CORRUPT, "member '%s' ends past the end of the archive", m->name);
  if (m->flags & 1) return ASSAY_ERROR(ASSAY_UNSUPPORTED, "member '%s' is encrypted", m->name);
  if (m->method != STORED && m->method != DEFLATED)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "member '%s' is compressed by method %d; stored and deflated can be read",
                       m->name, m->method);
  bool fits = m->method == STORED ? m->size == m->packed : m->size / MAX_RATIO <= m->packed;
  if (!fits)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "member '%s' cannot have %llu bytes, from %llu in the archive", m->name,
                       (unsigned long long)m->size, (unsigned long long)m->packed);
  return NULL;
}

static int by_offset(const void* a, const void* b) {
  const assay_zip_member_t *const *x = a, *const *y = b;
  return (*x)->header < (*y)->header ? -1 : (*x)->header > (*y)->header;
}

// Members that share bytes make large output of a small file.
static assay_status_t check_overlap(const assay_zip_t* z) {
  const assay_zip_member_t** sorted = NULL;
  ASSAY_TRY(assay_new_array(z->n, sizeof(void*), &sorted));
  for (size_t i = 0; i < z->n; i++) sorted[i] = &z->members[i];
  qsort(sorted, z->n, sizeof *sorted, by_offset);
  assay_status_t st = NULL;
  for (size_t i = 1; !st && i < z->n; i++)
    if (sorted[i - 1]->data + sorted[i - 1]->packed > sorted[i]->header)
      st = ASSAY_ERROR(ASSAY_CORRUPT, "members '%s' and '%s' overlap", sorted[i - 1]->name,
                       sorted[i]->name);
  assay_free(sorted);
  return st;
}

static assay_status_t read_directory(const uint8_t* data, size_t size, const end_t* end,
                                     assay_zip_t* z) {
  const uint8_t* p = data + end->offset;
  uint64_t left = end->size;
  char* name = z->names;
  for (; z->n < end->n; z->n++) {
    if (left < DIRECTORY_BYTES || get(p, 4) != DIRECTORY)
      return ASSAY_ERROR(ASSAY_CORRUPT, "the zip directory ends after %zu of %llu members", z->n,
                         (unsigned long long)end->n);
    size_t name_len = get(p + 28, 2), extra_len = get(p + 30, 2);
    uint64_t entry = DIRECTORY_BYTES + name_len + extra_len + get(p + 32, 2);
    if (left < entry) return ASSAY_ERROR(ASSAY_CORRUPT, "the zip directory is cut off");
    memcpy(name, p + DIRECTORY_BYTES, name_len);
    name[name_len] = 0;
    if (memchr(name, 0, name_len))
      return ASSAY_ERROR(ASSAY_CORRUPT, "a name in the zip directory has a NUL");
    assay_zip_member_t* m = &z->members[z->n];
    *m = (assay_zip_member_t){.name = name,
                              .flags = (uint16_t)get(p + 8, 2),
                              .method = (uint16_t)get(p + 10, 2),
                              .crc = (uint32_t)get(p + 16, 4),
                              .packed = get(p + 20, 4),
                              .size = get(p + 24, 4),
                              .header = get(p + 42, 4)};
    if (!read_zip64(p + DIRECTORY_BYTES + name_len, extra_len, m))
      return ASSAY_ERROR(ASSAY_CORRUPT, "member '%s' has no valid 64-bit sizes", name);
    ASSAY_TRY(find_data(data, size, m));
    name += name_len + 1;
    p += entry;
    left -= entry;
  }
  return check_overlap(z);
}

assay_status_t assay_zip_open(const uint8_t* data, size_t size, assay_zip_t* out) {
  end_t end = {0};
  ASSAY_TRY(find_end(data, size, &end));
  if (end.offset > size || end.size > size - end.offset || end.n > end.size / DIRECTORY_BYTES)
    return ASSAY_ERROR(ASSAY_CORRUPT, "the zip directory is not where the archive says");
  assay_zip_t z = {0};
  assay_status_t st = assay_new_array((size_t)end.n, sizeof *z.members, &z.members);
  // A NUL more for each name than there are bytes in the directory.
  if (!st && !(z.names = assay_malloc((size_t)end.size + (size_t)end.n + 1)))
    st = assay_status_no_memory();
  if (!st) st = read_directory(data, size, &end, &z);
  if (st) return assay_zip_close(&z), st;
  *out = z;
  return NULL;
}

void assay_zip_close(assay_zip_t* zip) {
  assay_free(zip->members);
  assay_free(zip->names);
  *zip = (assay_zip_t){0};
}

static void* zip_alloc(void* user, unsigned n, unsigned size) {
  (void)user;
  return assay_calloc(n, size);
}

static void zip_free(void* user, void* p) {
  (void)user;
  assay_free(p);
}

// zlib counts in 32 bits: as much of n as it takes.
static unsigned some(uint64_t n) { return n > (1u << 30) ? 1u << 30 : (unsigned)n; }

static uint32_t crc_of(uint32_t crc, const uint8_t* p, uint64_t n) {
  for (; n; p += some(n), n -= some(n)) crc = (uint32_t)crc32(crc, p, some(n));
  return crc;
}

// The same of a member in a mapped file, which does not come into memory as a whole by that; nor do
// many members, one after the other, but for SMALL ones.
static uint32_t crc_in(const assay_mapping_t* file, const uint8_t* p, uint64_t n) {
  enum { PIECE = 1 << 24, SMALL = 1 << 16 };
  const bool forgets = n > SMALL;
  uint32_t crc = 0;
  while (n) {
    const uint64_t k = n < PIECE ? n : PIECE;
    crc = crc_of(crc, p, k);
    if (forgets) assay_mapping_forget(file, p, (size_t)k);
    p += k;
    n -= k;
  }
  return crc;
}

static assay_status_t inflate_all(const uint8_t* from, uint64_t packed, uint8_t* to,
                                  uint64_t size) {
  z_stream z = {.zalloc = zip_alloc, .zfree = zip_free};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return assay_status_no_memory();
  uint8_t past;
  int rc = Z_OK;
  uint64_t in = 0, out = 0;
  while (rc == Z_OK) {
    unsigned have = some(packed - in), capacity = some(size - out);
    z.next_in = (z_const Bytef*)(from + in);
    z.avail_in = have;
    // Past its declared size a stream may only end.
    z.next_out = capacity ? to + out : &past;
    z.avail_out = capacity ? capacity : 1;
    rc = inflate(&z, Z_NO_FLUSH);
    in += have - z.avail_in;
    if (!capacity && !z.avail_out) break;
    if (capacity) out += capacity - z.avail_out;
    if (rc == Z_BUF_ERROR || (rc == Z_OK && have == z.avail_in && z.avail_out)) break;
  }
  inflateEnd(&z);
  if (rc == Z_MEM_ERROR) return assay_status_no_memory();
  if (rc != Z_STREAM_END || out != size || in != packed)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "its compressed data are damaged, or not of the size that "
                       "the archive says");
  return NULL;
}

assay_status_t assay_zip_extract(const uint8_t* data, const assay_mapping_t* file,
                                 const assay_zip_member_t* m, const uint8_t** out,
                                 void** out_owned) {
  const uint8_t* bytes = data + m->data;
  uint8_t* owned = NULL;
  assay_status_t st = NULL;
  if (m->method == DEFLATED) {
    if (m->size > SIZE_MAX || !(owned = assay_malloc((size_t)m->size)))
      return assay_status_no_memory();
    st = inflate_all(bytes, m->packed, owned, m->size);
    bytes = owned;
  }
  const bool in_file = file && !owned;
  if (!st && (in_file ? crc_in(file, bytes, m->size) : crc_of(0, bytes, m->size)) != m->crc)
    st = ASSAY_ERROR(ASSAY_CORRUPT, "its checksum is wrong: the file is damaged");
  if (st) return assay_free(owned), assay_status_note(st, "member '%s'", m->name);
  *out = bytes;
  *out_owned = owned;
  return NULL;
}

// ---- writing ----------------------------------------------------------------------------------

static void put(assay_str_t* s, uint64_t v, size_t bytes) {
  assay_str_append_n(s, (const char*)&v, bytes);
}

static uint32_t clip(uint64_t v) { return v >= 0xffffffff ? 0xffffffff : (uint32_t)v; }

typedef struct entry {
  const char* name;
  int method;
  uint32_t crc;
  uint64_t packed, size, header;
} entry_t;

// What local header and directory have in common, up to the lengths of name and extra field.
// A header says zip64 as a whole: both sizes stand there.
static void put_common(assay_str_t* s, const entry_t* e, bool wide, size_t extra_len) {
  enum { VERSION = 20, VERSION64 = 45, UTF8 = 1 << 11, DATE_1980 = 1 << 5 | 1 };
  put(s, wide ? VERSION64 : VERSION, 2);
  put(s, UTF8, 2);
  put(s, (uint64_t)e->method, 2);
  put(s, 0, 2);  // midnight
  put(s, DATE_1980, 2);
  put(s, e->crc, 4);
  put(s, wide ? 0xffffffff : e->packed, 4);
  put(s, wide ? 0xffffffff : e->size, 4);
  put(s, strlen(e->name), 2);
  put(s, extra_len, 2);
}

static void put_local(assay_str_t* s, const entry_t* e) {
  bool wide = e->packed >= 0xffffffff || e->size >= 0xffffffff;
  put(s, LOCAL, 4);
  put_common(s, e, wide, wide ? 20 : 0);
  assay_str_append(s, e->name);
  if (!wide) return;
  put(s, 1, 2);
  put(s, 16, 2);
  put(s, e->size, 8);
  put(s, e->packed, 8);
}

static void put_directory(assay_str_t* s, const entry_t* e) {
  enum { MADE_BY_UNIX = 3 << 8 | 45, FILE_MODE = 0100644 };
  bool wide = e->packed >= 0xffffffff || e->size >= 0xffffffff, far = e->header >= 0xffffffff;
  size_t extra = (wide ? 16u : 0) + (far ? 8u : 0);
  put(s, DIRECTORY, 4);
  put(s, MADE_BY_UNIX, 2);
  put_common(s, e, wide, extra ? extra + 4 : 0);
  put(s, 0, 2);  // no comment
  put(s, 0, 2);  // first file
  put(s, 0, 2);  // not text
  put(s, (uint64_t)FILE_MODE << 16, 4);
  put(s, clip(e->header), 4);
  assay_str_append(s, e->name);
  if (!extra) return;
  put(s, 1, 2);
  put(s, extra, 2);
  if (wide) put(s, e->size, 8);
  if (wide) put(s, e->packed, 8);
  if (far) put(s, e->header, 8);
}

// Compresses two parts as one.
static assay_status_t deflate_all(const void* head, size_t head_len, const void* body,
                                  size_t body_len, assay_str_t* out) {
  z_stream z = {.zalloc = zip_alloc, .zfree = zip_free};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return assay_status_no_memory();
  enum { CHUNK = 1 << 16 };
  uint8_t* chunk = assay_malloc(CHUNK);
  assay_status_t st = chunk ? NULL : assay_status_no_memory();
  for (int part = 0; !st && part < 2; part++) {
    const uint8_t* from = part ? body : head;
    uint64_t left = part ? body_len : head_len;
    int rc = Z_OK;
    do {
      unsigned n = some(left);
      z.next_in = (z_const Bytef*)from;
      z.avail_in = n;
      from += n;
      left -= n;
      int flush = part && !left ? Z_FINISH : Z_NO_FLUSH;
      do {
        z.next_out = chunk;
        z.avail_out = CHUNK;
        rc = deflate(&z, flush);
        assay_str_append_n(out, (const char*)chunk, CHUNK - z.avail_out);
      } while (!z.avail_out);
    } while (left);
    if (rc == Z_STREAM_ERROR) st = ASSAY_ERROR(ASSAY_INTERNAL, "deflate failed");
    if (!st) st = assay_str_status(out);
  }
  deflateEnd(&z);
  assay_free(chunk);
  return st;
}

assay_status_t assay_zip_append(assay_zip_writer_t* z, const char* name, bool compress,
                                const void* head, size_t head_len, const void* body,
                                size_t body_len) {
  assay_str_t local = {0}, packed = {0};
  if (strlen(name) > 0xffff)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a name of %zu bytes is too long for a zip archive",
                       strlen(name));
  entry_t e = {.name = name,
               .method = compress ? DEFLATED : STORED,
               .crc = crc_of(crc_of(0, head, head_len), body, body_len),
               .size = (uint64_t)head_len + body_len,
               .header = assay_writer_offset(z->writer)};
  assay_status_t st = compress ? deflate_all(head, head_len, body, body_len, &packed) : NULL;
  e.packed = compress ? packed.len : e.size;
  put_local(&local, &e);
  put_directory(&z->directory, &e);
  if (!st) st = assay_str_status(&local);
  if (!st) st = assay_writer_write(z->writer, local.text, local.len);
  if (!st && compress) st = assay_writer_write(z->writer, packed.text, packed.len);
  if (!st && !compress) st = assay_writer_write(z->writer, head, head_len);
  if (!st && !compress) st = assay_writer_write(z->writer, body, body_len);
  assay_str_deinit(&local);
  assay_str_deinit(&packed);
  z->n++;
  return st;
}

assay_status_t assay_zip_finish(assay_zip_writer_t* z) {
  assay_str_t end = {0};
  uint64_t offset = assay_writer_offset(z->writer), size = z->directory.len;
  if (z->n >= 0xffff || offset >= 0xffffffff || size >= 0xffffffff) {
    put(&end, END64, 4);
    put(&end, END64_BYTES - 12, 8);
    put(&end, 45, 2);
    put(&end, 45, 2);
    put(&end, 0, 8);  // one file
    put(&end, z->n, 8);
    put(&end, z->n, 8);
    put(&end, size, 8);
    put(&end, offset, 8);
    put(&end, LOCATOR64, 4);
    put(&end, 0, 4);
    put(&end, offset + size, 8);
    put(&end, 1, 4);
  }
  uint64_t n = z->n >= 0xffff ? 0xffff : z->n;
  put(&end, END, 4);
  put(&end, 0, 4);
  put(&end, n, 2);
  put(&end, n, 2);
  put(&end, clip(size), 4);
  put(&end, clip(offset), 4);
  put(&end, 0, 2);
  assay_status_t st = assay_str_status(&z->directory);
  if (!st) st = assay_str_status(&end);
  if (!st) st = assay_writer_write(z->writer, assay_str_get(&z->directory), z->directory.len);
  if (!st) st = assay_writer_write(z->writer, end.text, end.len);
  assay_str_deinit(&end);
  assay_str_deinit(&z->directory);
  return st;
}
