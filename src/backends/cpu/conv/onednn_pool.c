// MaxPool, AveragePool, the global ones and means over all places by oneDNN, channels last.
#ifdef ASSAY_ONEDNN
#include <string.h>

#include "backends/cpu/onednn.h"
#include "base/alloc.h"
#include "ops/conv/window.h"

typedef struct pooling {
  dnnl_alg_kind_t kind;
  bool global;
} pooling_t;

// Whether ReduceMean's axes, an attribute or from opset 18 on an input, are all but the first two.
static bool reduces_places(const assay_sized_layer_t* l, const assay_node_t* n, int rank) {
  const assay_attr_t* attr = assay_node_attr(n, "axes");
  const assay_operand_t* o = n->n_inputs > 1 ? assay_sized_input(l, n->inputs[1]) : NULL;
  assay_tensor_t* wide = NULL;
  const int64_t* axes = attr ? attr->u.ints : NULL;
  int64_t count = attr ? (int64_t)attr->n : 0;
  uint64_t seen = 0;
  if (o && o->constant) {
    assay_status_t st = assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &wide);
    assay_status_free(st);
    axes = wide ? assay_i64(wide) : NULL;
    count = wide ? wide->size : 0;
  }
  for (int64_t i = 0; i < count; i++) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis >= 0 && axis < rank) seen |= UINT64_C(1) << axis;
  }
  assay_tensor_release(wide);
  return seen == (UINT64_C(1) << rank) - 4;
}

static bool read_kind(const assay_sized_layer_t* l, const assay_node_t* n, int rank,
                      pooling_t* out) {
  if (!*n->domain && strcmp(n->op_type, "ReduceMean") == 0 && reduces_places(l, n, rank)) {
    *out = (pooling_t){dnnl_pooling_avg_exclude_padding, true};
    return true;
  }
  static const struct {
    const char* name;
    bool max, global;
  } kinds[] = {{"MaxPool", true, false},
               {"AveragePool", false, false},
               {"GlobalMaxPool", true, true},
               {"GlobalAveragePool", false, true}};
  for (size_t i = 0; !*n->domain && i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(n->op_type, kinds[i].name) != 0) continue;
    const bool padding = assay_attr_i64(n, "count_include_pad", 0) != 0;
    out->global = kinds[i].global;
    out->kind = kinds[i].max ? dnnl_pooling_max
                : padding    ? dnnl_pooling_avg_include_padding
                             : dnnl_pooling_avg_exclude_padding;
    return true;
  }
  return false;
}

// The window, fitted to the input; global: all of it.
static assay_status_t read_window(const assay_node_t* n, const assay_operand_t* x, bool global,
                                  assay_window_t* w) {
  *w = (assay_window_t){.rank = x->rank - 2};
  for (int i = 0; i < w->rank; i++) {
    const int64_t size = x->dims[2 + i];
    w->axis[i] =
        (assay_window_axis_t){.kernel = size, .stride = 1, .dilation = 1, .in = size, .out = 1};
  }
  if (global) return NULL;
  ASSAY_TRY(assay_window_read(n, x->rank - 2, NULL, w));
  return assay_window_fit(n, w, x->dims + 2);
}

typedef struct described {
  pooling_t kind;
  assay_window_t window;
  const assay_operand_t* x;
  int64_t ydims[ASSAY_KERNEL_RANK];  // ReduceMean may leave out the dimensions that it reduces
} described_t;

static assay_status_t describe(const described_t* p, assay_type_t type,
                               dnnl_primitive_desc_t* out) {
  enum { SRC, DST, N };
  dnnl_memory_desc_t md[N] = {NULL};
  dnnl_primitive_attr_t attr = NULL;
  dnnl_engine_t engine;
  dnn_window_t w;
  dnn_window(&p->window, &w);
  assay_status_t st = dnn_engine(&engine);
  if (!st) st = dnn_attr(&attr);
  if (!st) st = dnn_md(p->x->rank, p->x->dims, type, ASSAY_LAYOUT_CHANNELS_LAST, &md[SRC]);
  if (!st) st = dnn_md(p->x->rank, p->ydims, type, ASSAY_LAYOUT_CHANNELS_LAST, &md[DST]);
  if (!st)
    st = dnn_described(dnnl_pooling_forward_primitive_desc_create(
                           out, engine, dnnl_forward_inference, p->kind.kind, md[SRC], md[DST],
                           w.strides, w.kernel, w.dilations, w.before, w.behind, attr),
                       "describing a pooling", out);
  dnn_free(N, md, attr);
  return st;
}

// Where windows reach past the input by more than the declared padding (ceil_mode), implementations
// count differently; those are left to the emulated engine.
static bool is_regular(const pooling_t* p, const assay_window_t* w) {
  for (int i = 0; i < w->rank && p->kind != dnnl_pooling_max; i++) {
    const assay_window_axis_t* a = &w->axis[i];
    if ((a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->in - a->pads[0] >
        a->pads[1])
      return false;
  }
  return !(w->ceil_mode && p->kind != dnnl_pooling_max);
}

// A type that maxima are taken in: the bits of its infinity; elements by their bits.
typedef struct pool_type {
  size_t bytes;
  uint32_t infinity, sign;
} pool_type_t;

static uint32_t bits_at(const pool_type_t* t, const char* x, int64_t i) {
  return t->bytes == 4 ? ((const uint32_t*)x)[i] : ((const uint16_t*)x)[i];
}

// NaN of either sign, or -infinity.
static bool is_hard(const pool_type_t* t, uint32_t bits) {
  return bits >= (t->sign | t->infinity) || (bits & ~t->sign) > t->infinity;
}

static bool has_hard(const pool_type_t* t, const char* x, int64_t n) {
  const pool_type_t type = *t;
  int found = 0;
  if (type.bytes == 4) {
#pragma omp parallel for schedule(static) reduction(| : found) if (n > 100000)
    for (int64_t i = 0; i < n; i++) found |= is_hard(&type, ((const uint32_t*)x)[i]);
  } else {
#pragma omp parallel for schedule(static) reduction(| : found) if (n > 100000)
    for (int64_t i = 0; i < n; i++) found |= is_hard(&type, ((const uint16_t*)x)[i]);
  }
  return found;
}

// The input's place under tap `tap` of the window at output place `at`; -1: in the padding.
static int64_t place_under(const assay_window_t* w, int64_t at, int64_t tap) {
  int64_t place = 0, step = 1;
  for (int i = w->rank - 1; i >= 0; i--) {
    const assay_window_axis_t* a = &w->axis[i];
    const int64_t p = at % a->out * a->stride - a->pads[0] + tap % a->kernel * a->dilation;
    if (p < 0 || p >= a->in) return -1;
    place += p * step;
    step *= a->in;
    at /= a->out;
    tap /= a->kernel;
  }
  return place;
}

// One element of a maximum again: NaN if its window has one, -infinity if it has nothing else.
static void mend(const assay_window_t* w, const pool_type_t* t, const char* x, int64_t channels,
                 int64_t at, int64_t c, char* y) {
  const uint32_t min = t->sign | t->infinity;
  int64_t taps = 1, seen = 0, min_seen = 0;
  for (int i = 0; i < w->rank; i++) taps *= w->axis[i].kernel;
  uint32_t nan = 0;
  for (int64_t tap = 0; tap < taps && !nan; tap++) {
    const int64_t place = place_under(w, at, tap);
    if (place < 0) continue;
    const uint32_t bits = bits_at(t, x, place * channels + c);
    if ((bits & ~t->sign) > t->infinity) nan = bits;
    min_seen += bits == min;
    seen++;
  }
  if (!nan && (!seen || seen != min_seen)) return;
  const uint32_t result = nan ? nan : min;
  const uint16_t narrow = (uint16_t)result;
  memcpy(y + (size_t)(at * channels + c) * t->bytes,
         t->bytes == 4 ? (const void*)&result : (const void*)&narrow, t->bytes);
}

// oneDNN's maximum passes NaN over, and begins with the least finite number; ONNX's does not.
// Values without NaN and -infinity are only looked through.
static void keep_nan(const dnn_kernel_t* k, const void* src, void* dst) {
  const assay_window_t* w = &k->window;
  const assay_type_t type = k->base.in[k->src_input].type;
  const pool_type_t t = type == ASSAY_TYPE_FLOAT      ? (pool_type_t){4, 0x7f800000, 0x80000000}
                        : type == ASSAY_TYPE_BFLOAT16 ? (pool_type_t){2, 0x7f80, 0x8000}
                                                      : (pool_type_t){2, 0x7c00, 0x8000};
  const int64_t in = assay_window_in_size(w) * k->channels;
  const int64_t out = assay_window_out_size(w), samples = k->size / (out * k->channels);
  if (!has_hard(&t, src, samples * in)) return;
  for (int64_t s = 0; s < samples; s++)
    for (int64_t at = 0; at < out; at++)
      for (int64_t c = 0; c < k->channels; c++)
        mend(w, &t, (const char*)src + (size_t)(s * in) * t.bytes, k->channels, at, c,
             (char*)dst + (size_t)(s * out * k->channels) * t.bytes);
}

static bool is_byte(assay_type_t type) {
  return type == ASSAY_TYPE_INT8 || type == ASSAY_TYPE_UINT8;
}

static assay_status_t build(dnn_kernel_t* k, const assay_sized_layer_t* l, const void* what,
                            assay_type_t type, bool* out_ok) {
  const described_t* p = what;
  dnnl_primitive_desc_t descriptor = NULL;
  // Averages of 16-bit formats are summed in float32 in any case; rounding once is ours to do.
  if (p->kind.kind != dnnl_pooling_max && type != ASSAY_TYPE_FLOAT) return NULL;
  if (is_byte(p->x->type) && type != p->x->type) return NULL;
  k->base.in[k->src_input] = (assay_storage_t){type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_CHANNELS_LAST};
  if (p->kind.kind == dnnl_pooling_max && !is_byte(type)) {
    k->behind = keep_nan;
    k->window = p->window;
    k->channels = p->x->dims[1];
  }
  assay_status_t st = describe(p, type, &descriptor);
  *out_ok = descriptor;
  if (!st && descriptor) st = dnn_finish(k, l, descriptor, type, false, NULL);
  if (descriptor) dnnl_primitive_desc_destroy(descriptor);
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  described_t p = {.x = x};
  if (l->layer->n_nodes != 1 || l->n_out < 1 || !l->out[0].value || !x ||
      !read_kind(l, n, x->rank, &p.kind))
    return NULL;
  if (l->n_out > 1 && l->out[1].value) return NULL;  // indices
  const bool known =
      assay_type_is_kernel_float(x->type) || (is_byte(x->type) && p.kind.kind == dnnl_pooling_max);
  if (x->rank < 3 || x->rank > 5 || !x->size || !l->out[0].size || !known ||
      x->type != l->out[0].type)
    return NULL;
  ASSAY_TRY(read_window(n, x, p.kind.global, &p.window));
  p.ydims[0] = x->dims[0];
  p.ydims[1] = x->dims[1];
  for (int i = 0; i < p.window.rank; i++) p.ydims[2 + i] = p.window.axis[i].out;
  if (!is_regular(&p.kind, &p.window) || assay_dims_product(p.ydims, 0, x->rank) != l->out[0].size)
    return NULL;
  return dnn_make(l, (int)(x - l->in), build, &p, out);
}

const assay_tactic_t cpu_tactic_onednn_pool = {
    .name = "onednn_pool",
    .source = "onednn",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .function_ulps = 2},
};
#endif
