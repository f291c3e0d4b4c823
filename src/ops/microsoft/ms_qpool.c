// com.microsoft's poolings of 8-bit tensors: QLinearAveragePool, QLinearGlobalAveragePool.
//
// Elements are dequantized, summed in the kernel's row-major order, divided by their number and
// quantized; with channels_last the layout is [batch, spatial..., channels].
// Source: schemas of onnxruntime 1.31 (com.microsoft, version 1); windows as in ONNX AveragePool.
#include "ops/conv/window.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"
#include "ops/quant/quant_bound.h"

// ---- layout ------------------------------------------------------------------------------------

typedef struct layout {
  int rank;
  bool last;  // channels last
  int64_t batch, channels;
  int64_t spatial[ASSAY_MAX_RANK];  // rank - 2 of them
} layout_t;

static assay_status_t read_layout(const assay_eval_t* c, layout_t* out) {
  const assay_tensor_t* x = c->in[0];
  if (x->rank < 3)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "X has shape %s; a batch, channels and a spatial axis are needed",
                            ASSAY_DIMS_TEXT(x));
  layout_t l = {.rank = x->rank, .last = assay_attr_i64(c->node, "channels_last", 0) != 0};
  l.batch = x->dims[0];
  l.channels = x->dims[l.last ? x->rank - 1 : 1];
  for (int i = 0; i < x->rank - 2; i++) l.spatial[i] = x->dims[l.last ? i + 1 : i + 2];
  *out = l;
  return NULL;
}

static void output_dims(const layout_t* l, const int64_t* spatial, int64_t* dims) {
  dims[0] = l->batch;
  dims[l->last ? l->rank - 1 : 1] = l->channels;
  for (int i = 0; i < l->rank - 2; i++) dims[l->last ? i + 1 : i + 2] = spatial[i];
}

// Where element s of a plane of `size` elements is, and the step to the next.
static int64_t plane_start(const layout_t* l, int64_t plane, int64_t size, int64_t* out_step) {
  int64_t b = plane / l->channels, ch = plane % l->channels;
  *out_step = l->last ? l->channels : 1;
  return l->last ? b * size * l->channels + ch : plane * size;
}

// The shape of input 0 with the channels in front, and back.
static assay_shape_t channels_moved(const assay_shape_t* s, bool to_front) {
  assay_shape_t r = *s;
  if (!s->known || s->rank < 2) return r;
  int last = s->rank - 1;
  for (int i = 1; i <= last; i++)
    r.dims[i] = to_front ? s->dims[i == 1 ? last : i - 1] : s->dims[i == last ? 1 : i + 1];
  return r;
}

// ---- QLinearAveragePool ------------------------------------------------------------------------

// How many elements window o of an axis counts: inside the input, or inside input and padding.
static int64_t counted(const assay_window_axis_t* a, int64_t o, bool padding) {
  if (!padding) {
    int64_t first, end;
    assay_window_positions(a, o, &first, &end);
    return end - first;
  }
  // Windows that ceil_mode lets hang over the padding's end count what is before it.
  int64_t start = o * a->stride - a->pads[0], capacity = a->in + a->pads[1] - start;
  int64_t n = capacity > 0 ? (capacity + a->dilation - 1) / a->dilation : 0;
  return n < a->kernel ? n : a->kernel;
}

typedef struct average {
  const assay_eval_t* c;
  const layout_t* l;
  const assay_window_t* w;
  const assay_qreal_t* x;
  const assay_qwriter_t* y;
  bool padding;
} average_t;

// One row of a plane's output; p is the plane, counts are over the outer axes of that row.
static void average_row(const average_t* a, int64_t plane, int64_t row, double outer_count) {
  const assay_window_axis_t* ax = &a->w->axis[a->w->rank - 1];
  int64_t x_step, y_step;
  int64_t x0 = plane_start(a->l, plane, assay_window_in_size(a->w), &x_step);
  int64_t y0 = plane_start(a->l, plane, assay_window_out_size(a->w), &y_step);
  for (int64_t o = 0; o < ax->out; o++) {
    int64_t first, end, start = o * ax->stride - ax->pads[0];
    double sum = 0;
    assay_window_rows_t rows;
    assay_window_positions(ax, o, &first, &end);
    for (bool more = assay_window_rows_begin(&rows, a->w, row); more;
         more = assay_window_rows_next(&rows)) {
      for (int64_t k = first; k < end; k++) {
        int64_t at = rows.in_row * ax->in + start + k * ax->dilation;
        sum = assay_acc(a->c, sum + assay_qreal_get(a->x, x0 + at * x_step));
      }
    }
    double n = outer_count * (double)counted(ax, o, a->padding);
    assay_qwriter_set(a->y, y0 + (row * ax->out + o) * y_step,
                      assay_qround(a->y->to_fp32, sum / n));
  }
}

static assay_status_t average_eval(assay_eval_t* c) {
  layout_t l;
  assay_window_t w;
  assay_qreal_t x;
  assay_qwriter_t y;
  int64_t dims[ASSAY_MAX_RANK], spatial[ASSAY_MAX_RANK];
  ASSAY_TRY(read_layout(c, &l));
  ASSAY_TRY(assay_window_read(c->node, l.rank - 2, NULL, &w));
  ASSAY_TRY(assay_window_fit(c->node, &w, l.spatial));
  for (int i = 0; i < w.rank; i++) spatial[i] = w.axis[i].out;
  output_dims(&l, spatial, dims);
  ASSAY_TRY(assay_qreal_init(c, 0, 1, 2, &x));
  ASSAY_TRY(assay_qwriter_init(c, 3, 4, assay_eval_out_type(c, 0, x.t->type), l.rank, dims, &y));
  if (y.t->size == 0) return NULL;
  average_t a = {c, &l, &w, &x, &y, assay_attr_i64(c->node, "count_include_pad", 0) != 0};
  int64_t rows = assay_window_out_size(&w) / w.axis[w.rank - 1].out;
  int64_t planes = l.batch * l.channels;
#pragma omp parallel for schedule(static) if (x.t->size > 100000)
  for (int64_t plane = 0; plane < planes; plane++) {
    for (int64_t row = 0; row < rows; row++) {
      double outer_count = 1;
      int64_t rest = row;
      for (int i = w.rank - 2; i >= 0; i--) {
        outer_count *= (double)counted(&w.axis[i], rest % w.axis[i].out, a.padding);
        rest /= w.axis[i].out;
      }
      average_row(&a, plane, row, outer_count);
    }
  }
  return NULL;
}

static assay_status_t average_infer(assay_infer_t* c) {
  assay_shape_t x = assay_infer_shape(c, 0);
  bool last = assay_attr_i64(c->node, "channels_last", 0) != 0;
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, ASSAY_MAX_RANK));
  if (!x.known) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  if (last) x = channels_moved(&x, true);
  assay_shape_t y = x;
  assay_window_t w;
  ASSAY_TRY(assay_window_read(c->node, x.rank - 2, NULL, &w));
  ASSAY_TRY(assay_window_infer_shape(c, &w, &x, &y));
  if (last) y = channels_moved(&y, false);
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// ---- QLinearGlobalAveragePool ------------------------------------------------------------------

static assay_status_t global_eval(assay_eval_t* c) {
  layout_t l;
  assay_qreal_t x;
  assay_qwriter_t y;
  int64_t dims[ASSAY_MAX_RANK], ones[ASSAY_MAX_RANK];
  ASSAY_TRY(read_layout(c, &l));
  for (int i = 0; i < ASSAY_MAX_RANK; i++) ones[i] = 1;
  output_dims(&l, ones, dims);
  ASSAY_TRY(assay_qreal_init(c, 0, 1, 2, &x));
  ASSAY_TRY(assay_qwriter_init(c, 3, 4, assay_eval_out_type(c, 0, x.t->type), l.rank, dims, &y));
  int64_t planes = y.t->size, size = planes ? x.t->size / planes : 0;
#pragma omp parallel for schedule(static) if (x.t->size > 100000)
  for (int64_t plane = 0; plane < planes; plane++) {
    int64_t step, at = plane_start(&l, plane, size, &step);
    double sum = 0;
    for (int64_t i = 0; i < size; i++) sum = assay_acc(c, sum + assay_qreal_get(&x, at + i * step));
    assay_qwriter_set(&y, plane, assay_qround(y.to_fp32, sum / (double)size));
  }
  return NULL;
}

static assay_status_t global_infer(assay_infer_t* c) {
  assay_shape_t y = assay_infer_shape(c, 0);
  bool last = assay_attr_i64(c->node, "channels_last", 0) != 0;
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, ASSAY_MAX_RANK));
  for (int i = 1; i < y.rank; i++)
    if (i != (last ? y.rank - 1 : 1)) y.dims[i] = assay_dim_const(c->dims, 1);
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

static void pool_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = (double)c->in[0]->size;
}

// ---- bounds -----------------------------------------------------------------------------------

static assay_status_t average_bound(assay_bound_t* c) {
  size_t n = 0;
  const int64_t* kernel = assay_attr_ints(c->node, "kernel_shape", &n);
  double terms = 1;
  for (size_t i = 0; i < n; i++) terms *= (double)kernel[i];
  return assay_steps_of_eval(c, average_eval, 3, 4,
                             assay_quant_mean_error(c, terms, assay_quant_largest(c, 0, 1, 2)));
}

static assay_status_t global_bound(assay_bound_t* c) {
  const double terms = c->out[0]->size ? (double)(c->in[0]->size / c->out[0]->size) : 0;
  return assay_steps_of_eval(c, global_eval, 3, 4,
                             assay_quant_mean_error(c, terms, assay_quant_largest(c, 0, 1, 2)));
}

#define ROW(NAME, INFER, EVAL, SCHEMA)                                                  \
  {                                                                                     \
    .domain = "com.microsoft", .name = NAME, .since = 1,                                \
    .flags = ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE, .discrete = 1, .schema = SCHEMA, \
    .infer = INFER, .eval = EVAL##_eval, .bound = EVAL##_bound, .cost = pool_cost       \
  }

const assay_op_t assay_ops_ms_qpool[] = {
    ROW("QLinearAveragePool", average_infer, average,
        "X:T, x_scale:float, x_zero_point?:T, y_scale:float, y_zero_point?:T -> Y:T | "
        "auto_pad:s=NOTSET, ceil_mode:i=0, channels_last:i=0, count_include_pad:i=0, "
        "kernel_shape:is!, pads:is, strides:is | T=uint8 int8"),
    ROW("QLinearGlobalAveragePool", global_infer, global,
        "X:T, x_scale:float, x_zero_point:T, y_scale:float, y_zero_point:T -> Y:T | "
        "channels_last:i=0 | T=uint8 int8"),
    {0},
};
