// Layers that move elements and change none (backends/layers/boxes.h), box by box.
#include "backends/cpu/data/copies.h"
#include "backends/layers/boxes.h"
#include "base/alloc.h"

typedef struct moves {
  assay_kernel_t base;
  layer_boxes_t boxes;
  int64_t row;  // places of one, where it works by rows
} moves_t;

static assay_status_t run(assay_kernel_t* k, const void* const* in, void* const* out,
                          void* scratch) {
  const moves_t* m = (const moves_t*)k;
  (void)scratch;
  // What is there already is not copied.
  const int there = k->extends && in[k->extends - 1] == out[0] ? k->extends - 1 : -2;
  for (size_t i = 0; i < m->boxes.n; i++)
    if (m->boxes.boxes[i].from != there)
      cpu_box_copy(&m->boxes.boxes[i], m->boxes.elem, in, &m->boxes.value, out);
  return NULL;
}

static void destroy(assay_kernel_t* k) {
  assay_free(((moves_t*)k)->boxes.boxes);
  assay_free(k);
}

// ---- by rows ------------------------------------------------------------------------------------

// Rows [row, end) of a sample (assay_by_rows_t); the inputs are read as a whole.
static void run_rows(const assay_kernel_t* k, const void* const* in, void* const* out,
                     void* scratch, int64_t sample, int64_t row, int64_t end) {
  const moves_t* m = (const moves_t*)k;
  const int64_t before = sample * k->by_rows.rows;
  (void)scratch;
  for (size_t i = 0; i < m->boxes.n; i++)
    cpu_box_copy_runs(&m->boxes.boxes[i], m->boxes.elem, in, &m->boxes.value, out,
                      (before + row) * m->row, (before + end) * m->row);
}

// Channels that are joined, channels last: each box has a run at each place.
static void describe_rows(moves_t* m, const assay_operand_t* y) {
  if (m->base.out[0].layout != ASSAY_LAYOUT_CHANNELS_LAST || y->rank != 4 ||
      m->boxes.joined_axis != 1 || !y->size)
    return;
  const int64_t places = y->dims[0] * y->dims[2] * y->dims[3];
  for (size_t i = 0; i < m->boxes.n; i++)
    if (!cpu_box_is_runs(&m->boxes.boxes[i]) || m->boxes.boxes[i].dims[0] != places) return;
  m->row = y->dims[3];
  m->base.by_rows = (assay_by_rows_t){.samples = y->dims[0],
                                      .rows = y->dims[2],
                                      .row_bytes = (size_t)(m->row * y->dims[1]) * m->boxes.elem,
                                      .work = (double)(m->row * y->dims[1]) / 2,
                                      .run = run_rows};
}

// ---- entry --------------------------------------------------------------------------------------

static assay_status_t read(const assay_sized_layer_t* l, moves_t* m, bool* ok) {
  ASSAY_TRY(layer_boxes_read(l, &m->base, &m->boxes, ok));
  m->base.run = m->boxes.view ? NULL : run;
  m->base.destroy = destroy;
  m->row = 0;
  if (*ok) describe_rows(m, &l->out[0]);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  moves_t *m = NULL, made = {0};
  bool ok = false;
  assay_status_t st = read(l, &made, &ok);
  if (!st && ok) st = ASSAY_NEW(&m);
  if (st || !ok) return assay_free(made.boxes.boxes), st;
  *m = made;
  *out = &m->base;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* base, bool* out_ok) {
  moves_t* m = (moves_t*)base;
  const assay_tactic_t* tactic = base->tactic;
  assay_status_t st = read(l, m, out_ok);
  base->tactic = tactic;
  return st;
}

const assay_tactic_t cpu_tactic_data_movement = {
    .name = "data_movement",
    .source = "assay",
    .numerics = "data_movement",
    .make = make,
    .resize = resize,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
