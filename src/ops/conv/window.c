// Sliding windows: attributes, sizes, and the walk over rows.
//
// Source of the sizes: ONNX Conv-22 and MaxPool-22, texts and shape inference. Where an older text
// differs from these by an evident slip (AveragePool-11 has floor(in / stride) for SAME), the newer
// one is followed, as runtimes do.
#include "ops/conv/window.h"

#include <string.h>

assay_status_t assay_window_list(const assay_node_t* node, const char* name, int n, int64_t min,
                                 int64_t otherwise, int64_t* out) {
  size_t len = 0;
  const int64_t* values = assay_attr_ints(node, name, &len);
  if (!values) {
    for (int i = 0; i < n; i++) out[i] = otherwise;
    return NULL;
  }
  if (len != (size_t)n) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "attribute '%s' has %zu values, expected %d", name,
                            len, n);
  }
  for (int i = 0; i < n; i++) {
    // The upper limit keeps products of two of them within 64 bits.
    if (values[i] < min || values[i] > INT32_MAX) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                              "attribute '%s' holds %lld, expected %lld to 2147483647", name,
                              (long long)values[i], (long long)min);
    }
    out[i] = values[i];
  }
  return NULL;
}

static assay_status_t read_auto_pad(const assay_node_t* node, assay_auto_pad_t* out) {
  static const char* const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  const char* text = assay_attr_str(node, "auto_pad", "NOTSET");
  if (text[0] == 0) return *out = ASSAY_AUTO_PAD_NOTSET, NULL;  // as older exporters write it
  for (int i = 0; i < 4; i++) {
    if (strcmp(text, names[i]) == 0) return *out = (assay_auto_pad_t)i, NULL;
  }
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                          "auto_pad is '%s', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                          text);
}

assay_status_t assay_window_read(const assay_node_t* node, int rank, const int64_t* kernel,
                                 assay_window_t* out) {
  if (rank < 1) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "the input has rank %d, expected a batch, a channel and at least one "
                            "spatial axis",
                            rank + 2);
  }
  int64_t k[ASSAY_MAX_RANK], strides[ASSAY_MAX_RANK], dilations[ASSAY_MAX_RANK];
  int64_t pads[2 * ASSAY_MAX_RANK];
  *out = (assay_window_t){.rank = rank, .ceil_mode = assay_attr_i64(node, "ceil_mode", 0) != 0};
  ASSAY_TRY(read_auto_pad(node, &out->auto_pad));
  ASSAY_TRY(assay_window_list(node, "kernel_shape", rank, 1, 0, k));
  ASSAY_TRY(assay_window_list(node, "strides", rank, 1, 1, strides));
  ASSAY_TRY(assay_window_list(node, "dilations", rank, 1, 1, dilations));
  ASSAY_TRY(assay_window_list(node, "pads", 2 * rank, 0, 0, pads));
  for (int i = 0; i < rank; i++) {
    if (k[i] == 0 && !kernel) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "attribute 'kernel_shape' is missing");
    }
    if (kernel && kernel[i] != 0 && k[i] != 0 && k[i] != kernel[i]) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                              "kernel_shape[%d] is %lld, but the weights' kernel has %lld", i,
                              (long long)k[i], (long long)kernel[i]);
    }
    if (k[i] == 0) k[i] = kernel[i];
    if (k[i] < 0 || k[i] > INT32_MAX) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "kernel axis %d has size %lld", i,
                              (long long)k[i]);
    }
    if (out->auto_pad != ASSAY_AUTO_PAD_NOTSET) {
      if (pads[i] != 0 || pads[rank + i] != 0) {
        return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                                "attributes 'pads' and 'auto_pad' exclude each other");
      }
    }
    out->axis[i] = (assay_window_axis_t){.kernel = k[i],
                                         .stride = strides[i],
                                         .dilation = dilations[i],
                                         .pads = {pads[i], pads[rank + i]}};
  }
  return NULL;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

assay_status_t assay_window_fit(const assay_node_t* node, assay_window_t* w, const int64_t* in) {
  for (int i = 0; i < w->rank; i++) {
    assay_window_axis_t* a = &w->axis[i];
    a->in = in[i];
    if (a->kernel < 1) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "kernel axis %d has size %lld", i,
                              (long long)a->kernel);
    }
    const int64_t reach = (a->kernel - 1) * a->dilation + 1;
    int64_t padded;
    if (w->auto_pad == ASSAY_AUTO_PAD_SAME_UPPER || w->auto_pad == ASSAY_AUTO_PAD_SAME_LOWER) {
      a->out = ceil_div(a->in, a->stride);
      int64_t total = a->out == 0 ? 0 : (a->out - 1) * a->stride + reach - a->in;
      if (total < 0) total = 0;
      const int64_t less = total / 2;
      a->pads[0] = w->auto_pad == ASSAY_AUTO_PAD_SAME_UPPER ? less : total - less;
      a->pads[1] = total - a->pads[0];
      continue;
    }
    if (!assay_add_i64(a->in, a->pads[0] + a->pads[1], &padded)) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "spatial axis %d of size %lld is too large", i,
                              (long long)a->in);
    }
    const int64_t steps = padded - reach;
    a->out = (w->ceil_mode ? ceil_div(steps, a->stride) : floor_div(steps, a->stride)) + 1;
    if (w->ceil_mode) {
      // Windows that start after the input are ignored (MaxPool-22; PyTorch, to which the older
      // texts point, does so, too).
      const int64_t starts = ceil_div(a->in + a->pads[0], a->stride);
      if (a->out > starts) a->out = starts;
    }
    if (a->out < 0) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                              "the kernel covers %lld elements of spatial axis %d, the padded "
                              "input has %lld",
                              (long long)reach, i, (long long)padded);
    }
  }
  return NULL;
}

const assay_dim_t* assay_window_infer(assay_dims_t* dims, const assay_window_t* w, int i,
                                      const assay_dim_t* in) {
  const assay_window_axis_t* a = &w->axis[i];
  const assay_dim_t* stride = assay_dim_const(dims, a->stride);
  if (w->auto_pad == ASSAY_AUTO_PAD_SAME_UPPER || w->auto_pad == ASSAY_AUTO_PAD_SAME_LOWER) {
    return assay_dim_ceildiv(dims, in, stride);
  }
  if (a->kernel == 0) return NULL;
  const int64_t reach = (a->kernel - 1) * a->dilation + 1;
  const assay_dim_t* steps = assay_dim_add_i(dims, in, a->pads[0] + a->pads[1] - reach);
  if (!w->ceil_mode) {
    return assay_dim_add_i(dims, assay_dim_floordiv(dims, steps, stride), 1);
  }
  const assay_dim_t* out = assay_dim_add_i(dims, assay_dim_ceildiv(dims, steps, stride), 1);
  // Without padding after, the last window starts inside: steps + stride - 1 < in.
  if (a->pads[1] <= reach - a->stride) return out;
  const assay_dim_t* starts =
      assay_dim_ceildiv(dims, assay_dim_add_i(dims, in, a->pads[0]), stride);
  return assay_dim_min(dims, out, starts);
}

assay_status_t assay_window_infer_shape(assay_infer_t* c, const assay_window_t* w,
                                        const assay_shape_t* in, assay_shape_t* shape) {
  for (int i = 0; i < w->rank; i++) {
    const assay_dim_t* out = assay_window_infer(c->dims, w, i, in->dims[2 + i]);
    int64_t value;
    if (assay_dim_value(out, &value) && value < 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                              "the kernel does not fit into the padded input along spatial axis %d",
                              i);
    }
    shape->dims[2 + i] = out;
  }
  return NULL;
}

int64_t assay_window_in_size(const assay_window_t* w) {
  int64_t size = 1;
  for (int i = 0; i < w->rank; i++) size *= w->axis[i].in;
  return size;
}

int64_t assay_window_out_size(const assay_window_t* w) {
  int64_t size = 1;
  for (int i = 0; i < w->rank; i++) size *= w->axis[i].out;
  return size;
}

// Numbers of the rows that the walk stands on.
static void rows_place(assay_window_rows_t* r) {
  r->in_row = r->kernel_row = 0;
  for (int i = 0; i < r->w->rank - 1; i++) {
    const assay_window_axis_t* a = &r->w->axis[i];
    r->in_row = r->in_row * a->in + r->start[i] + r->k[i] * a->dilation;
    // Unsigned: a pooling kernel, which has no elements, may be larger than 64 bits can count.
    r->kernel_row = (int64_t)((uint64_t)r->kernel_row * (uint64_t)a->kernel + (uint64_t)r->k[i]);
  }
}

bool assay_window_rows_begin(assay_window_rows_t* r, const assay_window_t* w, int64_t out_row) {
  r->w = w;
  bool any = true;
  for (int i = w->rank - 2; i >= 0; i--) {
    const assay_window_axis_t* a = &w->axis[i];
    const int64_t o = out_row % a->out;
    out_row /= a->out;
    r->start[i] = o * a->stride - a->pads[0];
    assay_window_positions(a, o, &r->first[i], &r->end[i]);
    r->k[i] = r->first[i];
    any = any && r->first[i] < r->end[i];
  }
  if (any) rows_place(r);
  return any;
}

bool assay_window_rows_next(assay_window_rows_t* r) {
  for (int i = r->w->rank - 2; i >= 0; i--) {
    if (++r->k[i] < r->end[i]) return rows_place(r), true;
    r->k[i] = r->first[i];
  }
  return false;
}

// Positions k with k * dilation = p (mod stride), for the p of most.
int64_t assay_window_overlap(const assay_window_axis_t* a) {
  int64_t x = a->stride, y = a->dilation;
  while (y != 0) {
    const int64_t rest = x % y;
    x = y;
    y = rest;
  }
  const int64_t period = a->stride / x;
  return (a->kernel + period - 1) / period;
}
