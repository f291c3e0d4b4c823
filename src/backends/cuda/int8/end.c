// What an int8 layer does to its sums: its arguments.
#include "backends/cuda/int8/end.h"

#include <math.h>
#include <stdio.h>

#include "backends/cuda/bytes.h"
#include "backends/cuda/int8/cells.h"
#include "base/alloc.h"

// n numbers, or one for all, as m.
static assay_status_t bring_floats(const assay_sized_layer_t* l, const char* what, const float* x,
                                   int64_t n, int64_t m, assay_device_ptr_t* out) {
  float* all = NULL;
  ASSAY_TRY(assay_new_array((size_t)m, sizeof *all, &all));
  for (int64_t i = 0; i < m; i++) all[i] = x[n > 1 ? i : 0];
  assay_status_t st = cuda_bytes_bring(l, what, all, (size_t)m * sizeof *all, out);
  assay_free(all);
  return st;
}

// ---- arguments ----------------------------------------------------------------------------------

static bool find_streams(const assay_sized_layer_t* l, assay_layout_t layout, cuda_int8_end_t* e) {
  for (size_t i = 0; i < e->q->n_sources; i++) {
    const assay_int8_source_t* s = &e->q->sources[i];
    e->streams[i].input = -1;
    if (!assay_int8_reads_value(s)) continue;
    const assay_type_t type = s->kind == ASSAY_INT8_REAL ? ASSAY_TYPE_FLOAT : s->type;
    const assay_operand_t* o = assay_sized_input(l, s->value);
    if (!o || o->type != type || !int8_stream_find(o, &l->out[0], layout, &e->streams[i]))
      return false;
    e->streams[i].input = (int)(o - l->in);
  }
  return true;
}

static assay_status_t read_source(const assay_sized_layer_t* l, size_t i, int64_t m,
                                  cuda_int8_end_t* e) {
  const assay_int8_source_t* s = &e->q->sources[i];
  const int8_stream_t* t = &e->streams[i];
  int8_source_args_t* a = &e->args.sources[i];
  char what[32];
  *a = (int8_source_args_t){.zero = s->zero, .scale = s->scale, .scalar = s->scalar};
  a->block = t->block, a->inner = t->inner, a->n = t->n, a->outer = t->outer;
  if (s->kind != ASSAY_INT8_CHANNEL) return NULL;
  snprintf(what, sizeof what, "int8 channels %d", (int)i);
  return bring_floats(l, what, s->channel, m, m, &a->at);
}

// A float's limit, where that is within what the type holds; else the float by which it is full.
static float limit_of(const assay_int8_t* q, float limit, float sign) {
  const float full = sign * 600 * q->scale;  // more than 512 steps, rounded or not
  if (!q->simple || isnan(limit)) return full;
  return fabsf(limit) < fabsf(full) ? limit : copysignf(full, limit);
}

void cuda_int8_end_numbers(const assay_int8_t* q, cuda_int8_end_t* e) {
  e->args.low = q->simple ? q->low : -(float)INFINITY;
  e->args.high = q->simple ? q->high : (float)INFINITY;
  e->args.scale = q->quantizes ? q->scale : 1;
  e->args.whole_zero = q->quantizes ? (int32_t)q->zero : 0;
  if (!cuda_int8_has_inverse(q)) return;
  e->args.inverse = 1 / q->scale;
  e->args.least = limit_of(q, q->low, -1);
  e->args.most = limit_of(q, q->high, 1);
}

static assay_status_t bring_cells(const assay_sized_layer_t* l, cuda_int8_end_t* e) {
  cuda_int8_cells_t* c = NULL;
  if (e->both || !cuda_int8_may_have_cells(e->q)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&c));
  assay_status_t st = cuda_int8_cells_find(e->q, c);
  e->n_cells = c->n;
  e->args.cell_step = c->step, e->args.cell_shift = c->shift;
  e->args.cells_from = c->from, e->args.cells_to = c->to;
  if (!st && c->n)
    st = cuda_bytes_share(l, "int8 cells", c->cells, (size_t)c->n * sizeof *c->cells,
                          &e->args.cells);
  assay_free(c);
  return st;
}

static assay_status_t read_numbers(const assay_sized_layer_t* l, int64_t m, cuda_int8_end_t* e) {
  const assay_int8_t* q = e->q;
  cuda_int8_end_numbers(q, e);
  for (size_t i = 0; i < q->n_steps; i++)
    for (int k = 0; k < 2; k++) e->args.p[i][k] = q->steps[i].p[k];
  for (size_t i = 0; i < q->n_sources; i++) ASSAY_TRY(read_source(l, i, m, e));
  if (!q->anchor && !q->scales_x) return NULL;
  ASSAY_TRY(bring_cells(l, e));
  ASSAY_TRY(bring_floats(l, "int8 factors", q->factor, q->n_factor, m, &e->args.factor));
  return bring_floats(l, "int8 shifts", q->shift, q->n_factor, m, &e->args.shift);
}

assay_status_t cuda_int8_end_open(const assay_sized_layer_t* l, const assay_int8_t* q, bool both,
                                  int64_t m, assay_layout_t layout, cuda_int8_end_t* e, bool* ok) {
  const assay_operand_t* y = &l->out[0];
  const assay_type_t type = both ? ASSAY_TYPE_FLOAT : q->type;
  *e = (cuda_int8_end_t){.q = q, .both = both};
  *ok = type == y->type && (q->n_factor <= 1 || q->n_factor == m) && find_streams(l, layout, e);
  for (size_t i = 0; *ok && i < q->n_sources; i++)
    *ok = q->sources[i].kind != ASSAY_INT8_CHANNEL || q->channels == m;
  if (!*ok) return NULL;
  ASSAY_TRY(read_numbers(l, m, e));
  cuda_int8_end_print(e, y->size <= INT32_MAX, &e->text);
  return assay_str_status(&e->text);
}

void cuda_int8_end_close(cuda_int8_end_t* e) { assay_str_deinit(&e->text); }

bool cuda_int8_end_forms(const cuda_int8_end_t* e, const assay_sized_layer_t* l,
                         assay_layout_t layout, assay_kernel_t* k) {
  for (size_t i = 0; i < e->q->n_sources; i++) {
    const int input = e->streams[i].input;
    if (input < 0) continue;
    const assay_layout_t lies = l->in[input].rank < 3 ? ASSAY_LAYOUT_PLAIN : layout;
    if (k->in[input].type && k->in[input].layout != lies) return false;
    k->in[input] = (assay_storage_t){l->in[input].type, lies};
  }
  return true;
}

void cuda_int8_end_fill(const cuda_int8_end_t* e, const assay_device_ptr_t* in,
                        assay_device_ptr_t real, int8_end_args_t* out) {
  *out = e->args;
  if (e->both) out->real = real;
  for (size_t i = 0; i < e->q->n_sources; i++)
    if (e->streams[i].input >= 0) out->sources[i].at = in[e->streams[i].input];
}
