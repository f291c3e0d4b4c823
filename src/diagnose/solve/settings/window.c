// Where a convolution or a pooling begins to read: every padding on either side, with every
// dilation, that gives an output of the size that golden has; strides where it has another size.
#include <stdio.h>
#include <string.h>

#include "diagnose/solve/settings.h"

enum { SPATIAL = ASSAY_EDIT_NUMBERS / 2, MOST = 256 };  // tries

static const int64_t DILATIONS[] = {1, 2, 3, 4, 6, 8, 12, 16};
enum { N_DILATIONS = sizeof DILATIONS / sizeof *DILATIONS };

typedef struct window {
  assay_missing_search_t* s;
  int n;  // spatial dimensions
  bool transposed;
  int64_t size[SPATIAL], made[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL];
  int64_t begin[SPATIAL], end[SPATIAL];  // paddings, as they are
  int tries;
  bool strides;  // others than the node's are being tried
} window_t;

static void read_list(const assay_node_t* n, const char* name, int from, int count,
                      int64_t otherwise, int64_t* out) {
  size_t have = 0;
  const int64_t* at = assay_attr_ints(n, name, &have);
  for (int i = 0; i < count; i++) out[i] = (size_t)(from + i) < have ? at[from + i] : otherwise;
}

static bool read_window(assay_missing_search_t* s, const assay_tensor_t* want, window_t* w) {
  const assay_tensor_t* x = s->in[0];
  const assay_tensor_t* weight = s->n_in > 1 ? s->in[1] : NULL;
  *w = (window_t){.s = s, .n = x->rank - 2};
  w->transposed = strcmp(s->node->op_type, "ConvTranspose") == 0;
  if (w->n < 1 || w->n > SPATIAL || want->rank != x->rank || want->dims[0] != x->dims[0])
    return false;
  read_list(s->node, "kernel_shape", 0, w->n, 0, w->kernel);
  read_list(s->node, "strides", 0, w->n, 1, w->stride);
  read_list(s->node, "dilations", 0, w->n, 1, w->dilation);
  read_list(s->node, "pads", 0, w->n, 0, w->begin);
  read_list(s->node, "pads", w->n, w->n, 0, w->end);
  for (int i = 0; i < w->n; i++) {
    w->size[i] = x->dims[2 + i];
    w->made[i] = want->dims[2 + i];
    if (!w->kernel[i] && weight && weight->rank == x->rank) w->kernel[i] = weight->dims[2 + i];
    if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1) return false;
  }
  return true;
}

// The padding of both sides that gives the size; what a stride leaves over at the end stays 0.
// Source: ONNX Conv 11, ConvTranspose 11.
static int64_t total(const window_t* w, int i, int64_t dilation) {
  const int64_t kernel = (w->kernel[i] - 1) * dilation + 1;
  if (w->transposed) return (w->size[i] - 1) * w->stride[i] + kernel - w->made[i];
  return (w->made[i] - 1) * w->stride[i] + kernel - w->size[i];
}

static void list_text(const int64_t* at, int n, char* out, size_t size) {
  *out = 0;
  for (int i = 0; i < n; i++) {
    const size_t length = strlen(out);
    snprintf(out + length, size - length, i ? ",%lld" : "%lld", (long long)at[i]);
  }
}

static assay_repair_edit_t list_edit(const char* name, const int64_t* at, int n) {
  assay_repair_edit_t e = {
      .kind = ASSAY_EDIT_ATTR,
      .attr = {.name = name, .type = ASSAY_ATTR_INTS, .n = (size_t)n, .doc = "", .ref = ""}};
  memcpy(e.numbers, at, (size_t)n * sizeof *at);
  return e;
}

static assay_status_t offer(window_t* w, const int64_t* begin, const int64_t* end,
                            const int64_t* dilation) {
  assay_repair_t r = {.node = w->s->node, .cause = "padding"};
  const size_t bytes = (size_t)w->n * sizeof *begin;
  const bool dilates = memcmp(dilation, w->dilation, bytes) != 0;
  const bool automatic = strcmp(assay_attr_str(w->s->node, "auto_pad", "NOTSET"), "NOTSET") != 0;
  int64_t pads[2 * SPATIAL];
  char text[100], more[60] = "";
  if (!dilates && !automatic && !w->strides && memcmp(begin, w->begin, bytes) == 0 &&
      memcmp(end, w->end, bytes) == 0)
    return NULL;
  if (w->tries++ >= MOST) return NULL;
  memcpy(pads, begin, bytes);
  memcpy(pads + w->n, end, bytes);
  r.edits[r.n_edits++] = list_edit("pads", pads, 2 * w->n);
  if (dilates) r.edits[r.n_edits++] = list_edit("dilations", dilation, w->n);
  if (w->strides) r.edits[r.n_edits++] = list_edit("strides", w->stride, w->n);
  if (automatic && r.n_edits < ASSAY_REPAIR_EDITS)
    r.edits[r.n_edits++] = (assay_repair_edit_t){
        .kind = ASSAY_EDIT_DROP,
        .attr = {.name = "auto_pad", .type = ASSAY_ATTR_STRING, .doc = "", .ref = ""}};
  list_text(pads, 2 * w->n, text, sizeof text);
  if (dilates || w->strides) list_text(dilates ? dilation : w->stride, w->n, more, sizeof more);
  snprintf(r.text, sizeof r.text, "pads = [%s]%s%s%s", text,
           dilates      ? ", dilations = ["
           : w->strides ? ", strides = ["
                        : "",
           more, *more ? "]" : "");
  return assay_missing_offer(w->s, &r);
}

// All begins of dimension i on.
static assay_status_t begins(window_t* w, const int64_t* dilation, int64_t* begin, int64_t* end,
                             int i) {
  if (i == w->n) return offer(w, begin, end, dilation);
  const int64_t sum = total(w, i, dilation[i]);
  for (begin[i] = 0; begin[i] <= sum && !assay_missing_is_over(w->s); begin[i]++) {
    end[i] = sum - begin[i];
    ASSAY_TRY(begins(w, dilation, begin, end, i + 1));
  }
  // Of an odd number none may be given where the stride leaves rows over.
  if (sum >= 0 || w->stride[i] == 1) return NULL;
  begin[i] = end[i] = 0;
  return begins(w, dilation, begin, end, i + 1);
}

// The same begin in all dimensions, before all of them.
static assay_status_t at_once(window_t* w, const int64_t* dilation) {
  int64_t begin[SPATIAL], end[SPATIAL], most = 0;
  for (int i = 0; i < w->n; i++)
    if (total(w, i, dilation[i]) > most) most = total(w, i, dilation[i]);
  for (int64_t k = 0; k <= most && !assay_missing_is_over(w->s); k++) {
    for (int i = 0; i < w->n; i++) {
      const int64_t sum = total(w, i, dilation[i]) < 0 ? 0 : total(w, i, dilation[i]);
      begin[i] = k < sum ? k : sum;
      end[i] = sum - begin[i];
    }
    ASSAY_TRY(offer(w, begin, end, dilation));
  }
  return NULL;
}

// As much padding before as behind, which is what layers that keep the size have.
static assay_status_t centered(window_t* w, const int64_t* dilation) {
  int64_t begin[SPATIAL], end[SPATIAL];
  for (int i = 0; i < w->n; i++) {
    const int64_t sum = total(w, i, dilation[i]) < 0 ? 0 : total(w, i, dilation[i]);
    begin[i] = sum / 2;
    end[i] = sum - begin[i];
  }
  return offer(w, begin, end, dilation);
}

// What the dimensions are told, the other way round: height first for width first. Of strides only
// where golden's shape is another, since others give the same one.
static assay_status_t turned(window_t* w) {
  int64_t dilation[SPATIAL], stride[SPATIAL];
  memcpy(stride, w->stride, sizeof stride);
  for (int i = 0; i < w->n; i++) dilation[i] = w->dilation[w->n - 1 - i];
  if (memcmp(dilation, w->dilation, (size_t)w->n * sizeof *dilation) != 0) {
    ASSAY_TRY(centered(w, dilation));
    if (!assay_missing_is_over(w->s)) ASSAY_TRY(at_once(w, dilation));
  }
  if (!assay_missing_is_reshaped(w->s) || assay_missing_is_over(w->s)) return NULL;
  for (int i = 0; i < w->n; i++) w->stride[i] = stride[w->n - 1 - i];
  w->strides = memcmp(stride, w->stride, (size_t)w->n * sizeof *stride) != 0;
  assay_status_t st = w->strides ? centered(w, w->dilation) : NULL;
  if (!st && w->strides && !assay_missing_is_over(w->s)) st = at_once(w, w->dilation);
  if (!st && w->strides && !assay_missing_is_over(w->s)) st = centered(w, dilation);
  w->strides = false;
  memcpy(w->stride, stride, sizeof stride);
  return st;
}

// A dilation of its own for each dimension, of two.
static assay_status_t unlike(window_t* w) {
  if (w->n != 2) return NULL;
  for (size_t k = 0; k < N_DILATIONS * N_DILATIONS && !assay_missing_is_over(w->s); k++) {
    const int64_t dilation[SPATIAL] = {DILATIONS[k / N_DILATIONS], DILATIONS[k % N_DILATIONS]};
    if (dilation[0] != dilation[1]) ASSAY_TRY(centered(w, dilation));
  }
  return NULL;
}

// Another stride, where that gives golden's shape.
static assay_status_t strides(window_t* w) {
  enum { MAX_STRIDE = 4 };
  int64_t was[SPATIAL];
  memcpy(was, w->stride, sizeof was);
  w->strides = true;
  for (int64_t k = 1; k <= MAX_STRIDE && !assay_missing_is_over(w->s); k++) {
    for (int i = 0; i < w->n; i++) w->stride[i] = k;
    if (memcmp(was, w->stride, (size_t)w->n * sizeof *was) != 0) {
      ASSAY_TRY(offer(w, w->begin, w->end, w->dilation));
      ASSAY_TRY(at_once(w, w->dilation));
    }
  }
  w->strides = false;
  memcpy(w->stride, was, sizeof was);
  return NULL;
}

assay_status_t assay_settings_window(assay_missing_search_t* s, const assay_tensor_t* want) {
  window_t w;
  int64_t begin[SPATIAL], end[SPATIAL], dilation[SPATIAL];
  if (!read_window(s, want, &w)) return NULL;
  if (w.n > 1) ASSAY_TRY(turned(&w));
  if (assay_missing_is_reshaped(s) && !assay_missing_is_over(s)) ASSAY_TRY(strides(&w));
  if (!assay_missing_is_over(s)) ASSAY_TRY(at_once(&w, w.dilation));
  if (w.n > 1 && !assay_missing_is_over(s)) ASSAY_TRY(begins(&w, w.dilation, begin, end, 0));
  w.tries = 0;
  for (size_t k = 0; k < N_DILATIONS && !assay_missing_is_over(s); k++) {
    for (int i = 0; i < w.n; i++) dilation[i] = DILATIONS[k];
    ASSAY_TRY(at_once(&w, dilation));
  }
  w.tries = 0;
  return assay_missing_is_over(s) ? NULL : unlike(&w);
}
