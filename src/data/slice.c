// Reads parts of arrays as NumPy writes them, and takes them.
#include "data/slice.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

// ---- reading ------------------------------------------------------------------------------------

static void skip_spaces(const char** p) {
  while (isspace((unsigned char)**p)) ++*p;
}

// A whole number, if there is one. False: it is too large.
static bool read_number(const char** p, bool* has, int64_t* out) {
  char* end = NULL;
  skip_spaces(p);
  *has = false;
  if (!isdigit((unsigned char)**p) && !(strchr("+-", **p) && isdigit((unsigned char)(*p)[1])))
    return true;
  errno = 0;
  const long long x = strtoll(*p, &end, 10);
  if (errno) return false;
  *p = end;
  *out = x;
  *has = true;
  skip_spaces(p);
  return true;
}

// One entry; false: it is none.
static bool read_entry(const char** p, assay_slice_entry_t* e) {
  bool has_step = false;
  *e = (assay_slice_entry_t){.step = 1};
  if (!read_number(p, &e->has_start, &e->start)) return false;
  if (**p != ':') return e->number = e->has_start;
  ++*p;
  if (!read_number(p, &e->has_stop, &e->stop)) return false;
  if (**p != ':') return true;
  ++*p;
  return read_number(p, &has_step, &e->step) && e->step != 0 && e->step != INT64_MIN;
}

static assay_status_t not_a_slice(const char* text) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "'%s' is not a part of an array: write it as NumPy does, with numbers, "
                     "START:STOP:STEP and '...', such as [:, 4:]",
                     text);
}

assay_status_t assay_slice_parse(const char* text, assay_slice_t* out) {
  const char* p = text;
  bool rest = false;
  *out = (assay_slice_t){0};
  skip_spaces(&p);
  if (*p++ != '[') return not_a_slice(text);
  for (bool more = true; more;) {
    skip_spaces(&p);
    if (strncmp(p, "...", 3) == 0) {
      if (rest) return not_a_slice(text);
      rest = true;
      out->rest_at = out->n;
      p += 3;
      skip_spaces(&p);
    } else {
      if (out->n == ASSAY_MAX_RANK || !read_entry(&p, &out->at[out->n])) return not_a_slice(text);
      out->n++;
    }
    more = *p == ',';
    if (more) p++;
    skip_spaces(&p);
    if (more && *p == ']') more = false;  // a comma at the end
  }
  if (!rest) out->rest_at = out->n;
  if (*p++ != ']') return not_a_slice(text);
  skip_spaces(&p);
  return *p ? not_a_slice(text) : NULL;
}

// ---- fitting ------------------------------------------------------------------------------------

// The entry of a dimension; NULL: it is whole.
static const assay_slice_entry_t* entry_of(const assay_slice_t* s, int rank, int dim) {
  const int after = s->n - s->rest_at;
  if (dim < s->rest_at) return &s->at[dim];
  return dim >= rank - after ? &s->at[s->n - (rank - dim)] : NULL;
}

assay_status_t assay_slice_check(const assay_slice_t* s, int rank, const int64_t* dims) {
  if (s->n > rank)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "it has %d dimension%s, and the part names %d", rank,
                       rank == 1 ? "" : "s", s->n);
  for (int d = 0; d < rank; d++) {
    const assay_slice_entry_t* e = entry_of(s, rank, d);
    if (!e || !e->number || dims[d] < 0) continue;
    if (e->start >= dims[d] || e->start < -dims[d])
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "dimension %d has %lld elements, none of them %lld", d, (long long)dims[d],
                         (long long)e->start);
  }
  return NULL;
}

// Where a dimension starts, its step and how many elements it has, as NumPy cuts them.
typedef struct range {
  int64_t start, step, n;
} range_t;

static int64_t cut(int64_t x, int64_t size, int64_t low, int64_t high) {
  if (x < 0) x += size;
  return x < low ? low : x > high ? high : x;
}

static range_t range_of(const assay_slice_entry_t* e, int64_t size) {
  if (!e) return (range_t){0, 1, size};
  if (e->number) return (range_t){e->start < 0 ? e->start + size : e->start, 1, 1};
  if (e->step > 0) {
    const int64_t start = e->has_start ? cut(e->start, size, 0, size) : 0;
    const int64_t stop = e->has_stop ? cut(e->stop, size, 0, size) : size;
    return (range_t){start, e->step, stop > start ? (stop - start - 1) / e->step + 1 : 0};
  }
  const int64_t start = e->has_start ? cut(e->start, size, -1, size - 1) : size - 1;
  const int64_t stop = e->has_stop ? cut(e->stop, size, -1, size - 1) : -1;
  return (range_t){start, e->step, start > stop ? (start - stop - 1) / -e->step + 1 : 0};
}

// ---- taking -------------------------------------------------------------------------------------

// Copies the elements in their order: an odometer over the ranges.
static assay_status_t copy_part(const assay_tensor_t* t, const range_t* ranges,
                                assay_tensor_t* out) {
  int64_t at[ASSAY_MAX_RANK] = {0}, strides[ASSAY_MAX_RANK] = {0};
  for (int64_t d = t->rank - 1, stride = 1; d >= 0; stride *= t->dims[d--]) strides[d] = stride;
  const size_t bytes = t->store == ASSAY_STORE_STR ? 0 : assay_store_elem_bytes(t->store);
  for (int64_t k = 0; k < out->size; k++) {
    int64_t from = 0;
    for (int d = 0; d < t->rank; d++)
      from += (ranges[d].start + at[d] * ranges[d].step) * strides[d];
    if (t->store == ASSAY_STORE_STR) {
      const assay_string_t* s = &assay_strings(t)[from];
      ASSAY_TRY(assay_tensor_set_string(out, k, s->text, s->len));
    } else {
      memcpy((char*)out->data + (size_t)k * bytes, (const char*)t->data + (size_t)from * bytes,
             bytes);
    }
    for (int d = t->rank - 1; d >= 0 && ++at[d] == ranges[d].n; d--) at[d] = 0;
  }
  return NULL;
}

assay_status_t assay_slice_take(const assay_slice_t* s, const assay_tensor_t* t,
                                assay_tensor_t** out) {
  range_t ranges[ASSAY_MAX_RANK];
  int64_t dims[ASSAY_MAX_RANK] = {0};
  int rank = 0;
  if (t->kind != ASSAY_KIND_TENSOR || t->store == ASSAY_STORE_PACKED)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "it is not an array");
  ASSAY_TRY(assay_slice_check(s, t->rank, t->dims));
  for (int d = 0; d < t->rank; d++) {
    const assay_slice_entry_t* e = entry_of(s, t->rank, d);
    ranges[d] = range_of(e, t->dims[d]);
    if (!e || !e->number) dims[rank++] = ranges[d].n;
  }
  assay_tensor_t* part = NULL;
  ASSAY_TRY(assay_tensor_create_zero(t->type, rank, dims, &part));
  assay_status_t st = copy_part(t, ranges, part);
  if (st) return assay_tensor_release(part), st;
  *out = part;
  return NULL;
}
