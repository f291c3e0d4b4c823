// Source: NumPy Enhancement Proposal 1, 'A Simple File Format for NumPy Arrays' (versions 1 to 3).
#include "io/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "io/stored.h"

enum { MAX_HEADER = 1 << 20, MAX_EMPTY = 1 << 16 };

typedef struct header {
  char descr[32];
  bool fortran;
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
} header_t;

// ---- the header: a Python dictionary ----------------------------------------------------------

typedef struct scanner {
  const char *p, *end;
} scanner_t;

static void skip_space(scanner_t* s) {
  while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t')) s->p++;
}

static bool take(scanner_t* s, const char* token) {
  skip_space(s);
  size_t n = strlen(token);
  if ((size_t)(s->end - s->p) < n || memcmp(s->p, token, n) != 0) return false;
  s->p += n;
  return true;
}

// A string in quotes, without escapes.
static bool take_string(scanner_t* s, char* out, size_t capacity) {
  skip_space(s);
  if (s->p == s->end || (*s->p != '\'' && *s->p != '"')) return false;
  char quote = *s->p++;
  size_t n = 0;
  for (; s->p < s->end && *s->p != quote; s->p++) {
    if (*s->p == '\\' || n + 1 >= capacity) return false;
    out[n++] = *s->p;
  }
  out[n] = 0;
  return take(s, quote == '"' ? "\"" : "'");
}

static bool take_number(scanner_t* s, int64_t* out) {
  skip_space(s);
  int64_t v = 0;
  const char* start = s->p;
  for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->p - '0', &v))
      return false;
  if (s->p == start) return false;
  if (s->p < s->end && *s->p == 'L') s->p++;  // Python 2
  *out = v;
  return true;
}

// A tuple: "()", "(3,)", "(3, 4)".
static assay_status_t take_shape(scanner_t* s, header_t* h) {
  bool ok = take(s, "("), closed = ok && take(s, ")");
  for (h->rank = 0; ok && !closed;) {
    if (h->rank == ASSAY_MAX_RANK)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "npy header: more than %d dimensions",
                         (int)ASSAY_MAX_RANK);
    ok = take_number(s, &h->dims[h->rank++]);
    bool comma = ok && take(s, ",");
    closed = ok && take(s, ")");
    ok = closed ? comma || h->rank > 1 : comma;
  }
  if (ok) return NULL;
  return ASSAY_ERROR(ASSAY_CORRUPT, "npy header: 'shape' is not a tuple of numbers");
}

static assay_status_t take_descr(scanner_t* s, header_t* h) {
  skip_space(s);
  if (s->p < s->end && *s->p == '[')
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "npy: structured types cannot be read");
  if (!take_string(s, h->descr, sizeof h->descr))
    return ASSAY_ERROR(ASSAY_CORRUPT, "npy header: 'descr' is not a type");
  return NULL;
}

static assay_status_t parse_dict(const char* text, size_t len, header_t* h) {
  scanner_t s = {text, text + len};
  bool has_descr = false, has_order = false, has_shape = false;
  if (!take(&s, "{")) return ASSAY_ERROR(ASSAY_CORRUPT, "npy header: no dictionary");
  for (bool first = true; !take(&s, "}"); first = false) {
    char key[32];
    if (!first && (!take(&s, ",") || take(&s, "}"))) {
      if (s.p[-1] == '}') break;  // a comma at the end
      return ASSAY_ERROR(ASSAY_CORRUPT, "npy header: a comma is missing");
    }
    if (!take_string(&s, key, sizeof key) || !take(&s, ":"))
      return ASSAY_ERROR(ASSAY_CORRUPT, "npy header: not a dictionary of names");
    bool* has = strcmp(key, "descr") == 0           ? &has_descr
                : strcmp(key, "fortran_order") == 0 ? &has_order
                : strcmp(key, "shape") == 0         ? &has_shape
                                                    : NULL;
    if (!has || *has) return ASSAY_ERROR(ASSAY_CORRUPT, "npy header: unexpected '%s'", key);
    *has = true;
    if (has == &has_descr) {
      ASSAY_TRY(take_descr(&s, h));
    } else if (has == &has_shape) {
      ASSAY_TRY(take_shape(&s, h));
    } else if (take(&s, "True")) {
      h->fortran = true;
    } else if (!take(&s, "False")) {
      return ASSAY_ERROR(ASSAY_CORRUPT, "npy header: 'fortran_order' is neither True nor False");
    }
  }
  skip_space(&s);
  if (s.p != s.end || !has_descr || !has_order || !has_shape)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "npy header: expected 'descr', 'fortran_order', 'shape' and nothing else");
  return NULL;
}

static assay_status_t parse_header(const uint8_t* data, size_t size, header_t* h,
                                   size_t* out_body) {
  if (size < 10 || memcmp(data, "\x93NUMPY", 6) != 0)
    return ASSAY_ERROR(ASSAY_CORRUPT, "no npy file: its first bytes are not \\x93NUMPY");
  int version = data[6];
  if (version < 1 || version > 3)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "npy version %d.%d; 1 to 3 can be read", version,
                       data[7]);
  size_t start = version == 1 ? 10 : 12, len = (size_t)data[8] | (size_t)data[9] << 8;
  if (size < start) return ASSAY_ERROR(ASSAY_CORRUPT, "npy: the file ends within its header");
  if (version > 1) len |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
  if (len > size - start || len > MAX_HEADER)
    return ASSAY_ERROR(ASSAY_CORRUPT, "npy: the header has %zu bytes, and the file %zu", len, size);
  ASSAY_TRY(parse_dict((const char*)data + start, len, h));
  *out_body = start + len;
  return NULL;
}

// ---- types ------------------------------------------------------------------------------------

typedef struct dtype {
  assay_type_t type;
  size_t bytes;     // of an element; of strings of their fixed width
  size_t swap;      // bytes to turn round together; 1: none
  bool is_unicode;  // strings of 4-byte characters
} dtype_t;

static assay_status_t parse_descr(const char* descr, dtype_t* out) {
  static const struct {
    const char* name;
    assay_type_t type;
    size_t bytes, swap;
  } types[] = {
      {"f2", ASSAY_TYPE_FLOAT16, 2, 2},   {"f4", ASSAY_TYPE_FLOAT, 4, 4},
      {"f8", ASSAY_TYPE_DOUBLE, 8, 8},    {"i1", ASSAY_TYPE_INT8, 1, 1},
      {"i2", ASSAY_TYPE_INT16, 2, 2},     {"i4", ASSAY_TYPE_INT32, 4, 4},
      {"i8", ASSAY_TYPE_INT64, 8, 8},     {"u1", ASSAY_TYPE_UINT8, 1, 1},
      {"u2", ASSAY_TYPE_UINT16, 2, 2},    {"u4", ASSAY_TYPE_UINT32, 4, 4},
      {"u8", ASSAY_TYPE_UINT64, 8, 8},    {"b1", ASSAY_TYPE_BOOL, 1, 1},
      {"c8", ASSAY_TYPE_COMPLEX64, 8, 4}, {"c16", ASSAY_TYPE_COMPLEX128, 16, 8},
      {"V2", ASSAY_TYPE_BFLOAT16, 2, 2},
  };
  *out = (dtype_t){0};
  if (strcmp(descr, "bfloat16") == 0)
    return *out = (dtype_t){ASSAY_TYPE_BFLOAT16, 2, 1, false}, NULL;
  const char* name = descr;
  bool big = *name == '>';
  if (*name && strchr("<>=|", *name)) name++;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(name, types[i].name) == 0) {
      *out = (dtype_t){types[i].type, types[i].bytes, big ? types[i].swap : 1, false};
      return NULL;
    }
  if ((*name == 'S' || *name == 'U') && name[1]) {
    scanner_t s = {name + 1, name + strlen(name)};
    int64_t n;
    out->is_unicode = *name == 'U';
    if (take_number(&s, &n) && s.p == s.end && n <= (1 << 28)) {
      out->type = ASSAY_TYPE_STRING;
      out->bytes = (size_t)n * (out->is_unicode ? 4 : 1);
      out->swap = big && out->is_unicode ? 4 : 1;
      return NULL;
    }
  }
  if (*name == 'O')
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "npy: an array of pickled Python objects is never read; save numbers");
  if (strcmp(name, "V1") == 0)
    return ASSAY_ERROR(
        ASSAY_UNSUPPORTED,
        "npy: type '%s' does not tell which 8-bit type it is; save it as uint8 or as "
        "float32",
        descr);
  return ASSAY_ERROR(ASSAY_UNSUPPORTED, "npy: type '%s' cannot be read", descr);
}

// ---- elements ---------------------------------------------------------------------------------

static void copy_swapped(uint8_t* to, const uint8_t* from, size_t bytes, size_t swap) {
  if (swap == 1) {
    memcpy(to, from, bytes);
    return;
  }
  for (size_t i = 0; i < bytes; i += swap)
    for (size_t k = 0; k < swap; k++) to[i + k] = from[i + swap - 1 - k];
}

// Steps through the elements of a Fortran-ordered array in row-major order.
typedef struct walker {
  int rank;
  int64_t dims[ASSAY_MAX_RANK], strides[ASSAY_MAX_RANK], at[ASSAY_MAX_RANK];
  int64_t offset;  // of the element, in elements of the file
} walker_t;

static walker_t walker_make(const header_t* h) {
  walker_t w = {.rank = h->rank};
  int64_t stride = 1;
  for (int i = 0; i < h->rank; i++) {
    int k = h->fortran ? i : h->rank - 1 - i;
    w.dims[k] = h->dims[k];
    w.strides[k] = stride;
    // Overflows only where another dimension is 0 and no element is ever visited.
    if (__builtin_mul_overflow(stride, h->dims[k], &stride)) stride = 0;
  }
  return w;
}

static void walker_next(walker_t* w) {
  for (int i = w->rank - 1; i >= 0; i--) {
    w->offset += w->strides[i];
    if (++w->at[i] < w->dims[i]) return;
    w->offset -= w->strides[i] * w->dims[i];
    w->at[i] = 0;
  }
}

// UTF-8 of one character; 0 if there is none such.
static size_t put_utf8(uint32_t c, char* out) {
  if (c < 0x80) return out[0] = (char)c, 1;
  if (c < 0x800) return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 0x3f)), 2;
  if (c >= 0xd800 && c < 0xe000) return 0;
  if (c < 0x10000) {
    out[0] = (char)(0xe0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3f));
    out[2] = (char)(0x80 | (c & 0x3f));
    return 3;
  }
  if (c > 0x10ffff) return 0;
  out[0] = (char)(0xf0 | c >> 18);
  out[1] = (char)(0x80 | (c >> 12 & 0x3f));
  out[2] = (char)(0x80 | (c >> 6 & 0x3f));
  out[3] = (char)(0x80 | (c & 0x3f));
  return 4;
}

// One string of fixed width, without the NULs at its end.
static assay_status_t read_string(const dtype_t* d, const uint8_t* from, assay_str_t* scratch,
                                  assay_tensor_t* t, int64_t i) {
  scratch->len = 0;
  if (!d->is_unicode) {
    size_t n = d->bytes;
    while (n && !from[n - 1]) n--;
    return assay_tensor_set_string(t, i, (const char*)from, n);
  }
  size_t n = d->bytes / 4;
  while (n && !(from[4 * n - 4] | from[4 * n - 3] | from[4 * n - 2] | from[4 * n - 1])) n--;
  for (size_t k = 0; k < n; k++) {
    uint8_t b[4];
    uint32_t c;
    char text[4];
    copy_swapped(b, from + 4 * k, 4, d->swap);
    memcpy(&c, b, 4);
    size_t len = put_utf8(c, text);
    if (!len)
      return ASSAY_ERROR(ASSAY_CORRUPT,
                         "npy: element %" PRId64 " holds 0x%x, which is not a character", i,
                         (unsigned)c);
    assay_str_append_n(scratch, text, len);
  }
  ASSAY_TRY(assay_str_status(scratch));
  return assay_tensor_set_string(t, i, assay_str_get(scratch), scratch->len);
}

static assay_status_t read_strings(const header_t* h, const dtype_t* d, const uint8_t* body,
                                   assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_STRING, h->rank, h->dims, &t));
  walker_t w = walker_make(h);
  assay_str_t scratch = {0};
  assay_status_t st = NULL;
  for (int64_t i = 0; !st && i < t->size; i++, walker_next(&w))
    st = read_string(d, body + (size_t)w.offset * d->bytes, &scratch, t, i);
  assay_str_deinit(&scratch);
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

// Numbers whose bytes have to be moved.
static assay_status_t read_moved(const header_t* h, const dtype_t* d, const uint8_t* body,
                                 assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create_packed(d->type, h->rank, h->dims, &t));
  walker_t w = walker_make(h);
  uint8_t* to = t->data;
  for (int64_t i = 0; i < t->size; i++, walker_next(&w), to += d->bytes)
    copy_swapped(to, body + (size_t)w.offset * d->bytes, d->bytes, d->swap);
  *out = t;
  return NULL;
}

assay_status_t assay_npy_parse(const uint8_t* data, size_t size, void (*release)(void* owner),
                               void* owner, assay_tensor_t** out) {
  header_t h = {0};
  dtype_t d = {0};
  size_t body = 0;
  int64_t n = 0, bytes = 0;
  assay_status_t st = parse_header(data, size, &h, &body);
  if (!st) st = parse_descr(h.descr, &d);
  if (!st && (!assay_dims_size(h.rank, h.dims, &n) || !assay_mul_i64(n, (int64_t)d.bytes, &bytes) ||
              (uint64_t)bytes != size - body))
    st = ASSAY_ERROR(ASSAY_CORRUPT,
                     "npy: shape %s of '%s' does not take the %zu bytes that there are",
                     assay_dims_text(h.rank, h.dims, (char[512]){0}, 512), h.descr, size - body);
  // Strings of no width take none of the file: nothing in it bounds their number.
  if (!st && !d.bytes && n > MAX_EMPTY)
    st = ASSAY_ERROR(ASSAY_CORRUPT,
                     "npy: %" PRId64 " elements of '%s', which has no width; at most %d", n,
                     h.descr, MAX_EMPTY);
  bool in_place = !st && d.type != ASSAY_TYPE_STRING && d.swap == 1 && (!h.fortran || h.rank < 2);
  if (in_place)
    return assay_tensor_wrap_packed(d.type, h.rank, h.dims, data + body, bytes, release, owner,
                                    out);
  if (!st)
    st = d.type == ASSAY_TYPE_STRING ? read_strings(&h, &d, data + body, out)
                                     : read_moved(&h, &d, data + body, out);
  if (release) release(owner);
  return st;
}

assay_status_t assay_npy_read(const char* path, assay_tensor_t** out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  assay_status_t st = assay_npy_parse(assay_mapping_data(m), assay_mapping_size(m),
                                      assay_mapping_release_owner, m, out);
  return assay_status_note(st, "'%s'", path);
}

// ---- writing ----------------------------------------------------------------------------------

static const char* descr_of(assay_type_t type) {
  switch (type) {
    case ASSAY_TYPE_FLOAT16:
      return "<f2";
    case ASSAY_TYPE_FLOAT:
      return "<f4";
    case ASSAY_TYPE_DOUBLE:
      return "<f8";
    case ASSAY_TYPE_INT8:
      return "|i1";
    case ASSAY_TYPE_INT16:
      return "<i2";
    case ASSAY_TYPE_INT32:
      return "<i4";
    case ASSAY_TYPE_INT64:
      return "<i8";
    case ASSAY_TYPE_UINT8:
      return "|u1";
    case ASSAY_TYPE_UINT16:
      return "<u2";
    case ASSAY_TYPE_UINT32:
      return "<u4";
    case ASSAY_TYPE_UINT64:
      return "<u8";
    case ASSAY_TYPE_BOOL:
      return "|b1";
    case ASSAY_TYPE_COMPLEX64:
      return "<c8";
    case ASSAY_TYPE_COMPLEX128:
      return "<c16";
    default:
      return NULL;
  }
}

// The next character of UTF-8 text; false: there is none that is valid.
static bool next_char(const char** p, const char* end, uint32_t* out) {
  const unsigned char* s = (const unsigned char*)*p;
  size_t left = (size_t)(end - *p);
  if (!left) return false;
  size_t n = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
  if (!n || n > left) return false;
  uint32_t c = n == 1 ? *s : *s & (0x7fu >> n);
  for (size_t i = 1; i < n; i++) {
    if (s[i] >> 6 != 2) return false;
    c = c << 6 | (s[i] & 0x3f);
  }
  static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < min[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
  *p += n;
  *out = c;
  return true;
}

// Characters of a text; false: it is not UTF-8.
static bool count_chars(const assay_string_t* s, size_t* out) {
  uint32_t c;
  const char *p = s->text, *end = s->text + s->len;
  for (*out = 0; p < end; ++*out)
    if (!next_char(&p, end, &c)) return false;
  return true;
}

// Strings as '<U': all of the width of the longest; as '|S' if one is not UTF-8.
static assay_status_t make_strings(const assay_tensor_t* t, char* descr, size_t capacity,
                                   assay_npy_image_t* out) {
  const assay_string_t* s = assay_strings(t);
  size_t chars = 1, bytes = 1, n;
  bool unicode = true;
  for (int64_t i = 0; i < t->size; i++) {
    if (s[i].len > bytes) bytes = s[i].len;
    if (!unicode || !(unicode = count_chars(&s[i], &n))) continue;
    if (n > chars) chars = n;
  }
  size_t width = unicode ? 4 * chars : bytes, total;
  if (__builtin_mul_overflow(width, (size_t)t->size, &total) ||
      !(out->bytes = assay_calloc(total, 1)))
    return assay_status_no_memory();
  uint8_t* to = out->bytes;
  for (int64_t i = 0; i < t->size; i++, to += width) {
    const char *p = s[i].text, *end = p + s[i].len;
    if (!unicode && s[i].len) memcpy(to, p, s[i].len);
    uint32_t c;
    for (size_t k = 0; unicode && next_char(&p, end, &c); k++) memcpy(to + 4 * k, &c, 4);
  }
  out->body = out->bytes;
  out->body_len = total;
  snprintf(descr, capacity, unicode ? "<U%zu" : "|S%zu", unicode ? chars : bytes);
  return NULL;
}

static assay_status_t make_numbers(assay_tensor_t* t, assay_npy_image_t* out) {
  assay_stored_t stored = {0};
  ASSAY_TRY(assay_stored_make(t, false, &stored));
  out->tensor = stored.tensor;
  out->body = stored.tensor->data;
  out->body_len = (size_t)stored.bytes;
  return NULL;
}

static void make_head(const assay_tensor_t* t, const char* descr, assay_str_t* s) {
  enum { PREFIX = 10, ALIGN = 64 };
  assay_str_append_n(s, "\x93NUMPY\x01\x00..", PREFIX);  // the length comes last
  assay_str_printf_raw(s, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int i = 0; i < t->rank; i++)
    assay_str_printf_raw(s, i ? ", %" PRId64 : "%" PRId64, t->dims[i]);
  assay_str_append(s, t->rank == 1 ? ",), }" : "), }");
  while (!s->failed && s->len % ALIGN != ALIGN - 1) assay_str_append(s, " ");
  assay_str_append(s, "\n");
  if (s->failed) return;
  // 32 dimensions of 19 digits fit well within the 64 KiB of version 1.
  size_t len = s->len - PREFIX;
  s->text[8] = (char)(len & 0xff);
  s->text[9] = (char)(len >> 8);
}

assay_status_t assay_npy_image_make(assay_tensor_t* t, assay_npy_image_t* out) {
  char descr[32];
  *out = (assay_npy_image_t){0};
  if (t->kind != ASSAY_KIND_TENSOR)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "npy holds tensors; sequences and maps do not fit");
  assay_status_t st;
  if (t->type == ASSAY_TYPE_STRING) {
    st = make_strings(t, descr, sizeof descr, out);
  } else {
    const char* name = descr_of(assay_file_elem_type(t->type));
    if (!name) return ASSAY_ERROR(ASSAY_INTERNAL, "npy: type %d", (int)t->type);
    snprintf(descr, sizeof descr, "%s", name);
    st = make_numbers(t, out);
  }
  if (!st) {
    make_head(t, descr, &out->head);
    st = assay_str_status(&out->head);
  }
  if (st) assay_npy_image_deinit(out);
  return st;
}

void assay_npy_image_deinit(assay_npy_image_t* image) {
  assay_str_deinit(&image->head);
  assay_tensor_release(image->tensor);
  assay_free(image->bytes);
  *image = (assay_npy_image_t){0};
}

assay_status_t assay_npy_write(const char* path, assay_tensor_t* t) {
  assay_npy_image_t image;
  assay_writer_t* w = NULL;
  ASSAY_TRY(assay_npy_image_make(t, &image));
  assay_status_t st = assay_writer_open(path, &w);
  if (!st) st = assay_writer_write(w, image.head.text, image.head.len);
  if (!st) st = assay_writer_write(w, image.body, image.body_len);
  if (!st) {
    st = assay_writer_commit(w);
    w = NULL;
  }
  assay_writer_abandon(w);
  assay_npy_image_deinit(&image);
  return st;
}
