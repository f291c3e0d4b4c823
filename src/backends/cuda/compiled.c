// Compiled kernels on disk. A file: `head_t`, the key with its zero, the code.
#include "backends/cuda/compiled.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"

static const char magic[8] = "assayK1";

typedef struct head {
  char magic[8];
  uint64_t key_bytes, code_bytes, hash;  // of key and code
} head_t;

static const char* find_folder(void) {
  const char* folder = getenv("ASSAY_KERNEL_CACHE");
  return folder && *folder ? folder : NULL;
}

static void print_path(const char* folder, const char* key, assay_str_t* out) {
  const size_t n = strlen(key);
  assay_str_printf(out, "%s/%016llx%016llx.kernel", folder,
                   (unsigned long long)assay_hash(key, n, 1),
                   (unsigned long long)assay_hash(key, n, 2));
}

static uint64_t hash_of(const char* key, size_t key_bytes, const void* code, size_t bytes) {
  return assay_hash(code, bytes, assay_hash(key, key_bytes, 0));
}

// The code in a file, if it is whole and of this key; NULL else.
static const void* find_code(const assay_mapping_t* m, const char* key, size_t* out_bytes) {
  head_t h;
  const uint8_t* at = assay_mapping_data(m);
  const size_t size = assay_mapping_size(m), key_bytes = strlen(key) + 1;
  if (size < sizeof h + key_bytes) return NULL;
  memcpy(&h, at, sizeof h);
  at += sizeof h;
  if (memcmp(h.magic, magic, sizeof magic) != 0 || h.key_bytes != key_bytes || !h.code_bytes ||
      h.code_bytes != size - sizeof h - key_bytes || memcmp(at, key, key_bytes) != 0 ||
      h.hash != hash_of(key, key_bytes, at + key_bytes, h.code_bytes))
    return NULL;
  *out_bytes = h.code_bytes;
  return at + key_bytes;
}

static assay_status_t read_file(const char* path, const char* key, void** out, size_t* out_bytes) {
  assay_mapping_t* m = NULL;
  assay_status_t st = assay_mapping_open(path, &m);
  // Not there yet, most often; what cannot be read is compiled again.
  if (st) return assay_status_free(st), NULL;
  const void* code = find_code(m, key, out_bytes);
  if (code) st = assay_new_array(*out_bytes, 1, (char**)out);
  if (code && !st) memcpy(*out, code, *out_bytes);
  assay_mapping_release(m);
  return st;
}

assay_status_t cuda_compiled_read(const char* key, void** out, size_t* out_bytes) {
  const char* folder = find_folder();
  assay_str_t path = {0};
  *out = NULL;
  if (!folder) return NULL;
  print_path(folder, key, &path);
  assay_status_t st = assay_str_status(&path);
  if (!st) st = read_file(assay_str_get(&path), key, out, out_bytes);
  assay_str_deinit(&path);
  return st;
}

static assay_status_t write_file(const char* path, const char* key, const void* code,
                                 size_t bytes) {
  const size_t key_bytes = strlen(key) + 1;
  head_t h = {
      .key_bytes = key_bytes, .code_bytes = bytes, .hash = hash_of(key, key_bytes, code, bytes)};
  assay_writer_t* w = NULL;
  memcpy(h.magic, magic, sizeof magic);
  ASSAY_TRY(assay_writer_open(path, &w));
  assay_status_t st = assay_writer_write(w, &h, sizeof h);
  if (!st) st = assay_writer_write(w, key, key_bytes);
  if (!st) st = assay_writer_write(w, code, bytes);
  if (st) return assay_writer_abandon(w), st;
  return assay_writer_commit_soon(w);
}

assay_status_t cuda_compiled_write(const char* key, const void* code, size_t bytes) {
  const char* folder = find_folder();
  assay_str_t path = {0};
  if (!folder) return NULL;
  print_path(folder, key, &path);
  assay_status_t st = assay_str_status(&path);
  if (!st) st = assay_folder_make(folder);
  if (!st) st = write_file(assay_str_get(&path), key, code, bytes);
  assay_str_deinit(&path);
  return assay_status_note(st, "the folder of compiled kernels (ASSAY_KERNEL_CACHE)");
}
