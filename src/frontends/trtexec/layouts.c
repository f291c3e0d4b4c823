// Layouts of a caller's buffers at inputs and outputs, as TensorRT's TensorFormat has them.
#include "frontends/trtexec/layouts.h"

#include <string.h>

#include "formats/format.h"
#include "tensor/tensor.h"

// For N C H W: chw4 is [N][C/4][H][W][4], hwc8 is [N][H][W][C], each with C padded. For N C D H W:
// cdhw32 is [N][C/32][D][H][W][32], dhwc8 is [N][D][H][W][C].
const trt_layout_t trt_layouts[] = {
    {"chw", 0, 1, false},    {"chw2", 2, 2, false},    {"chw4", 2, 4, false},
    {"chw16", 2, 16, false}, {"chw32", 2, 32, false},  {"hwc", 2, 1, true},
    {"hwc8", 2, 8, true},    {"hwc16", 2, 16, true},   {"dhwc", 3, 1, true},
    {"dhwc8", 3, 8, true},   {"cdhw32", 3, 32, false}, {NULL, 0, 0, false}};

// ---- words --------------------------------------------------------------------------------------

const trt_layout_t* trt_layout_find(const char* word, size_t n) {
  for (const trt_layout_t* l = trt_layouts; l->word; l++)
    if (strlen(l->word) == n && strncmp(l->word, word, n) == 0) return l;
  return NULL;
}

assay_status_t trt_layouts_check(const char* flag, const char* text) {
  for (const char* at = text;; at++) {
    const size_t n = strcspn(at, "+");
    if ((n == 10 && strncmp(at, "dla_linear", n) == 0) ||
        (n == 8 && strncmp(at, "dla_hwc4", n) == 0))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%.*s': there is no DLA; use chw", flag,
                         (int)n, at);
    if (!trt_layout_find(at, n))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: '%.*s' is not a layout: chw, chw2, chw4, chw16, chw32, hwc, hwc8, "
                         "hwc16, dhwc, dhwc8 or cdhw32",
                         flag, (int)n, at);
    at += n;
    if (!*at) return NULL;
  }
}

// NULL: nothing.
static const char* obstacle(const trt_layout_t* l, int rank, assay_type_t type) {
  if (!l->spatial) return NULL;
  if (rank < 0) return "how many dimensions it has is not known";
  if (assay_type_bits(type) < 8) return "its elements are no whole bytes";
  if (rank > l->spatial) return NULL;
  return l->spatial == 2 ? "it has fewer than 3 dimensions (C, H, W)"
                         : "it has fewer than 4 dimensions (C, D, H, W)";
}

bool trt_layout_fits(const trt_layout_t* l, int rank, assay_type_t type) {
  return !obstacle(l, rank, type);
}

assay_status_t trt_layout_choose(const char* flag, const char* text, const char* name, int rank,
                                 assay_type_t type, bool rows_first, const trt_layout_t** out) {
  const trt_layout_t* first = NULL;
  const char* why = NULL;
  for (const char* at = text;; at++) {
    const size_t n = strcspn(at, "+");
    const trt_layout_t* l = trt_layout_find(at, n);
    const char* not_this = l ? obstacle(l, rank, type) : "it is none";
    if (not_this && !why) why = not_this;
    if (!not_this && (!first || (rows_first && !l->spatial))) first = l;
    at += n;
    if (!*at) break;
  }
  if (!first)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' cannot be in layout %s: %s", flag, name,
                       text, why);
  *out = first;
  return NULL;
}

// ---- elements -----------------------------------------------------------------------------------

// What a layout does with a shape. Rows, and what they lie in.
typedef struct sizes {
  int64_t batch, channels, places;
  int64_t together;  // so many channels of a place lie together
  int64_t groups;    // of them
} sizes_t;

static bool find_sizes(const trt_layout_t* l, int rank, const int64_t* dims, sizes_t* out) {
  const int c = rank - l->spatial - 1;  // where the channels are
  if (!l->spatial) {
    *out = (sizes_t){.batch = 1, .channels = 1, .together = 1, .groups = 1};
    return assay_dims_size(rank, dims, &out->places);
  }
  if (c < 0 || dims[c] < 0 || dims[c] > INT64_MAX - l->multiple) return false;
  out->channels = dims[c];
  out->groups = (dims[c] + l->multiple - 1) / l->multiple;
  out->together = l->multiple;
  if (l->last) {
    out->together = out->groups * l->multiple;
    out->groups = out->together ? 1 : 0;
  }
  return assay_dims_size(c, dims, &out->batch) &&
         assay_dims_size(l->spatial, dims + c + 1, &out->places);
}

bool trt_layout_elems(const trt_layout_t* l, int rank, const int64_t* dims, int64_t* out) {
  sizes_t s;
  int64_t n;
  return find_sizes(l, rank, dims, &s) && assay_mul_i64(s.batch, s.places, &n) &&
         assay_mul_i64(n, s.groups, &n) && assay_mul_i64(n, s.together, out);
}

// Goes through the rows; of channel c at place p: p lies within its group, c within those together.
static void move(const sizes_t* s, size_t width, bool put, uint8_t* rows, uint8_t* buffer) {
  for (int64_t b = 0; b < s->batch; b++)
    for (int64_t c = 0; c < s->channels; c++) {
      const int64_t group = b * s->groups + c / s->together;
      uint8_t* row = rows + (size_t)((b * s->channels + c) * s->places) * width;
      uint8_t* at = buffer + (size_t)(group * s->places * s->together + c % s->together) * width;
      for (int64_t p = 0; p < s->places; p++) {
        memcpy(put ? at : row, put ? row : at, width);
        row += width;
        at += (size_t)s->together * width;
      }
    }
}

void trt_layout_put(const trt_layout_t* l, int rank, const int64_t* dims, size_t width,
                    const void* rows, void* out_buffer) {
  sizes_t s;
  int64_t n;
  if (!trt_layout_elems(l, rank, dims, &n) || !find_sizes(l, rank, dims, &s) || !n) return;
  memset(out_buffer, 0, (size_t)n * width);
  move(&s, width, true, (uint8_t*)(uintptr_t)rows, out_buffer);
}

void trt_layout_take(const trt_layout_t* l, int rank, const int64_t* dims, size_t width,
                     const void* buffer, void* out_rows) {
  sizes_t s;
  if (!find_sizes(l, rank, dims, &s) || !s.batch || !s.places) return;
  move(&s, width, false, out_rows, (uint8_t*)(uintptr_t)buffer);
}

// ---- texts --------------------------------------------------------------------------------------

void trt_layout_report(assay_str_t* out, const trt_layout_t* l, const char* type) {
  static const struct {
    int n;
    const char* word;
  } widths[] = {{2, "Two"}, {4, "Four"}, {16, "Sixteen"}, {32, "Thirty-two"}};
  if (!l->spatial) {
    assay_str_printf(out, "Row major linear %s", type);
    return;
  }
  for (size_t i = 0; !l->last && i < sizeof widths / sizeof *widths; i++)
    if (widths[i].n == l->multiple)
      assay_str_printf(out, "%s wide channel vectorized row major %s format", widths[i].word, type);
  if (l->last) assay_str_printf(out, "Channel major %s format", type);
  if (l->last && l->multiple > 1) assay_str_printf(out, " where channel %% %d == 0", l->multiple);
  if (l->spatial == 3) assay_str_append(out, " with 3 spatial dimensions");
}

// ---- of a plan ----------------------------------------------------------------------------------

assay_status_t trt_ends_add(trt_ends_t* ends, const char* name, bool output,
                            const trt_layout_t* layout) {
  ASSAY_TRY(assay_grow(&ends->items, &ends->capacity, ends->n + 1, sizeof *ends->items));
  ends->items[ends->n++] = (trt_end_t){name, output, layout};
  return NULL;
}

void trt_ends_deinit(trt_ends_t* ends) {
  assay_free(ends->items);
  *ends = (trt_ends_t){0};
}

const trt_layout_t* trt_ends_find(const trt_ends_t* ends, const char* name, bool output) {
  for (size_t i = 0; i < ends->n; i++)
    if (ends->items[i].output == output && strcmp(ends->items[i].name, name) == 0)
      return ends->items[i].layout;
  return trt_layouts;
}
