// How the operands of pointwise nodes lie along the output's elements.
#include <string.h>

#include "backends/layers/pointwise_internal.h"
#include "base/alloc.h"

static bool channels_last(const pointwise_compiler_t* c, int rank) {
  return c->options->layout == ASSAY_LAYOUT_CHANNELS_LAST && rank >= 3;
}

// Which dimension of the output comes at place i in memory.
int pointwise_memory_order(const pointwise_compiler_t* c, int i) {
  const int rank = c->l->out[0].rank;
  if (!channels_last(c, rank) || i == 0) return i;
  return i == rank - 1 ? 1 : i + 1;
}

// With at most one size other than 1: lies alike in every layout.
static bool is_vector(const assay_operand_t* o) {
  int n = 0;
  for (int i = 0; i < o->rank; i++) n += o->dims[i] != 1;
  return n <= 1;
}

// The steps in memory of an operand in a layout, by its own dimensions.
static void own_strides(const assay_operand_t* o, assay_layout_t layout, int64_t* strides) {
  const bool last = layout == ASSAY_LAYOUT_CHANNELS_LAST && o->rank >= 3;
  int64_t step = last ? o->dims[1] : 1;
  for (int i = o->rank - 1; i >= 0; i--) {
    if (last && i == 1) continue;
    strides[i] = step;
    step *= o->dims[i];
  }
  if (last) strides[1] = 1;
}

// By place in memory of the output, of an operand or a part of it; false: it cannot be broadcast to
// it.
static bool stream_strides(const pointwise_compiler_t* c, const assay_operand_t* o,
                           const layer_slice_t* cut, assay_layout_t layout, int64_t* strides,
                           int64_t* out_offset) {
  const assay_operand_t* y = &c->l->out[0];
  const int64_t* dims = cut ? cut->dims : o->dims;
  int64_t own[ASSAY_KERNEL_RANK] = {0};
  *out_offset = 0;
  if (o->rank > y->rank) return false;
  own_strides(o, layout, own);
  for (int d = 0; cut && d < o->rank; d++) {
    *out_offset += cut->first[d] * own[d];
    own[d] *= cut->step[d];
  }
  for (int i = 0; i < y->rank; i++) {
    const int d = pointwise_memory_order(c, i), from = d - (y->rank - o->rank);
    const int64_t size = from < 0 ? 1 : dims[from];
    if (size != 1 && size != y->dims[d]) return false;
    strides[i] = size == 1 ? 0 : own[from];
  }
  return true;
}

// The layout in which a stream is asked for: the output's, unless its dimensions are not those.
static assay_layout_t stream_layout(const pointwise_compiler_t* c, const assay_operand_t* o) {
  return is_vector(o) || o->rank != c->l->out[0].rank ? ASSAY_LAYOUT_PLAIN : c->options->layout;
}

// A constant's elements in the order of a layout.
static assay_status_t constant_in_layout(const assay_operand_t* o, assay_layout_t layout,
                                         float** out) {
  float *plain = NULL, *x = NULL;
  ASSAY_TRY(assay_operand_floats(o, &plain));
  if (layout == ASSAY_LAYOUT_PLAIN || o->rank < 3) return *out = plain, NULL;
  assay_status_t st = assay_new_array((size_t)o->size, sizeof *x, &x);
  const int64_t places = assay_dims_product(o->dims, 2, o->rank), channels = o->dims[1];
  for (int64_t i = 0; !st && i < o->size; i++) {
    const int64_t place = i % places, channel = i / places % channels, n = i / places / channels;
    x[(n * places + place) * channels + channel] = plain[i];
  }
  assay_free(plain);
  *out = x;
  return st;
}

static bool is_integer(const pointwise_compiler_t* c, assay_type_t t) {
  if (c->options->integers && (t == ASSAY_TYPE_INT16 || t == ASSAY_TYPE_UINT16 ||
                               t == ASSAY_TYPE_UINT32 || t == ASSAY_TYPE_UINT64))
    return true;
  return t == ASSAY_TYPE_INT8 || t == ASSAY_TYPE_UINT8 || t == ASSAY_TYPE_INT32 ||
         t == ASSAY_TYPE_INT64;
}

bool pointwise_is_float8(assay_type_t t) {
  return t == ASSAY_TYPE_FLOAT8E4M3FN || t == ASSAY_TYPE_FLOAT8E4M3FNUZ ||
         t == ASSAY_TYPE_FLOAT8E5M2 || t == ASSAY_TYPE_FLOAT8E5M2FNUZ;
}

bool pointwise_is_whole(assay_type_t t) {
  return t == ASSAY_TYPE_INT8 || t == ASSAY_TYPE_UINT8 || t == ASSAY_TYPE_INT16 ||
         t == ASSAY_TYPE_UINT16;
}

// Whether streams may have a type that is neither a float of kernels nor bool.
static bool is_taken(const pointwise_compiler_t* c, assay_type_t t, bool integers) {
  if (c->options->quantizers && (pointwise_is_float8(t) || (integers && pointwise_is_whole(t))))
    return true;
  return integers && is_integer(c, t);
}

int pointwise_new_stream(pointwise_compiler_t* c, pointwise_stream_t s) {
  if (c->p->n_streams == POINTWISE_STREAMS) return assay_free(s.constant), -1;
  c->p->streams[c->p->n_streams] = s;
  return (int)c->p->n_streams++;
}

// The stream of an input, or of a part of it.
static int add_stream(pointwise_compiler_t* c, const assay_operand_t* o, int input,
                      const layer_slice_t* cut, bool integers) {
  pointwise_stream_t s = {
      .input = input, .type = o->type, .layout = stream_layout(c, o), .cut = cut};
  if (!assay_type_is_kernel_float(o->type) && o->type != ASSAY_TYPE_BOOL &&
      !is_taken(c, o->type, integers))
    return -1;
  if (c->p->n_streams == POINTWISE_STREAMS ||
      !stream_strides(c, o, cut, s.layout, c->strides[c->p->n_streams], &s.offset))
    return -1;
  if (o->constant && assay_type_is_kernel_float(o->type) && o->size <= c->options->max_copied) {
    c->status = constant_in_layout(o, s.layout, &s.constant);
    if (c->status) return -1;
    s.type = ASSAY_TYPE_FLOAT;
    s.n_constant = o->size;
  }
  return pointwise_new_stream(c, s);
}

int pointwise_add_stream(pointwise_compiler_t* c, const assay_operand_t* o, int input,
                         bool integers) {
  for (size_t i = 0; i < c->p->n_streams; i++)
    if (c->p->streams[i].input == input && !c->p->streams[i].cut) return (int)i;
  return add_stream(c, o, input, NULL, integers);
}

int pointwise_cut_stream(pointwise_compiler_t* c, const pointwise_cut_t* cut) {
  int* number = &c->stream_of_cut[cut - c->cuts];
  if (!*number) *number = 1 + add_stream(c, &c->l->in[cut->input], cut->input, &cut->slice, true);
  return *number - 1;
}

int pointwise_result_stream(pointwise_compiler_t* c) {
  int64_t offset;
  for (size_t i = 0; i < c->p->n_streams; i++)
    if (c->p->streams[i].input == POINTWISE_RESULT) return (int)i;
  if (c->p->n_streams == POINTWISE_STREAMS ||
      !stream_strides(c, &c->l->out[0], NULL, c->options->layout, c->strides[c->p->n_streams],
                      &offset))
    return -1;
  return pointwise_new_stream(
      c, (pointwise_stream_t){.input = POINTWISE_RESULT, .type = ASSAY_TYPE_FLOAT});
}

int pointwise_number_stream(pointwise_compiler_t* c, float x) {
  pointwise_stream_t s = {.input = POINTWISE_NO_INPUT, .type = ASSAY_TYPE_FLOAT, .n_constant = 1};
  if (c->p->n_streams == POINTWISE_STREAMS) return -1;
  c->status = assay_new_array(1, sizeof *s.constant, &s.constant);
  if (c->status) return -1;
  s.constant[0] = x;
  memset(c->strides[c->p->n_streams], 0, sizeof *c->strides);
  return pointwise_new_stream(c, s);
}

// A stream of one number a channel; the values are taken over.
int pointwise_channel_stream(pointwise_compiler_t* c, float* take_values) {
  const assay_operand_t* y = &c->l->out[0];
  const pointwise_stream_t s = {.input = POINTWISE_NO_INPUT,
                                .type = ASSAY_TYPE_FLOAT,
                                .constant = take_values,
                                .n_constant = y->dims[1]};
  if (c->p->n_streams == POINTWISE_STREAMS) return assay_free(take_values), -1;
  for (int i = 0; i < y->rank; i++)
    c->strides[c->p->n_streams][i] = pointwise_memory_order(c, i) == 1 && y->dims[1] != 1;
  return pointwise_new_stream(c, s);
}

// Blocks have the output's rank, with that axis divided; others have one dimension.
static bool fits_axis(const pointwise_compiler_t* c, const assay_operand_t* o, int axis,
                      int64_t block) {
  const assay_operand_t* y = &c->l->out[0];
  if (axis < 0) return o->size == 1;
  bool fits = block ? o->rank == y->rank : o->rank == 1 && o->dims[0] == y->dims[axis];
  for (int d = 0; fits && block && d < y->rank; d++) {
    const int64_t size = y->dims[d];
    fits = o->dims[d] == (d == axis ? size / block + (size % block != 0) : size);
  }
  return fits;
}

int pointwise_axis_stream(pointwise_compiler_t* c, const assay_value_t* v, int axis,
                          int64_t block) {
  const int input = assay_sized_input_index(c->l, v);
  const size_t s = c->p->n_streams;
  if (input < 0 || s == POINTWISE_STREAMS || !fits_axis(c, &c->l->in[input], axis, block))
    return -1;
  const assay_operand_t* o = &c->l->in[input];
  if (!assay_type_is_kernel_float(o->type) && !is_taken(c, o->type, true)) return -1;
  int64_t own[ASSAY_KERNEL_RANK] = {0};
  const pointwise_stream_t stream = {
      .input = input, .type = o->type, .layout = block ? stream_layout(c, o) : ASSAY_LAYOUT_PLAIN};
  own_strides(o, stream.layout, own);
  for (int i = 0; i < c->rank; i++) {
    const int d = pointwise_memory_order(c, i);
    c->strides[s][i] = c->dims[i] == 1 ? 0 : block ? own[d] : d == axis;
    if (d == axis && block > 1 && c->dims[i] != 1) c->blocks[s] = block, c->blocked[s] = i;
  }
  return pointwise_new_stream(c, stream);
}
