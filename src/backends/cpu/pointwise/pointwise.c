// Layers of pointwise nodes: one program over their elements.
#include "backends/cpu/pointwise/program.h"
#include "base/alloc.h"

typedef struct pointwise {
  assay_kernel_t base;
  cpu_program_t* program;
  int64_t row;  // elements of a row, where it works by rows
} pointwise_t;

static assay_status_t run(assay_kernel_t* k, const void* const* in, void* const* out,
                          void* scratch) {
  (void)scratch;
  const pointwise_t* p = (const pointwise_t*)k;
  cpu_program_run(p->program, in, NULL, p->base.out[0].type, out[0]);
  return NULL;
}

static void destroy(assay_kernel_t* k) {
  cpu_program_destroy(((pointwise_t*)k)->program);
  assay_free(k);
}

// Rows [row, end) of a sample (assay_by_rows_t): all streams but whole ones are read as a whole.
static void run_rows(const assay_kernel_t* k, const void* const* in, void* const* out,
                     void* scratch, int64_t sample, int64_t row, int64_t end) {
  (void)scratch;
  const pointwise_t* p = (const pointwise_t*)k;
  const cpu_program_part_t part = {.from = (sample * k->by_rows.rows + row) * p->row,
                                   .n = (end - row) * p->row,
                                   .runs = 1,
                                   .step = (end - row) * p->row};
  cpu_program_run_part(p->program, in, k->out[0].type, out[0], &part);
}

static void describe_rows(pointwise_t* p, const assay_sized_layer_t* l) {
  const assay_operand_t* o = &l->out[0];
  const int input = cpu_program_first_whole(p->program);
  if (p->base.out[0].layout != ASSAY_LAYOUT_CHANNELS_LAST || o->rank != 4 || input < 0 ||
      !o->size || !assay_type_is_kernel_float(o->type) ||
      !assay_type_is_kernel_float(p->base.in[input].type))
    return;
  p->row = o->dims[1] * o->dims[3];
  p->base.by_rows = (assay_by_rows_t){
      .input = input,
      .samples = o->dims[0],
      .rows = o->dims[2],
      .in_rows = o->dims[2],
      .row_bytes = assay_kernel_float_bytes(p->base.out[0].type) * (size_t)p->row,
      .in_bytes = assay_kernel_float_bytes(p->base.in[input].type) * (size_t)p->row,
      .work = (double)p->row,
      .run = run_rows};
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  if (l->n_out < 1 || !l->out[0].value) return NULL;
  const assay_type_t type = l->out[0].type;
  if (!assay_type_is_kernel_float(type) && type != ASSAY_TYPE_BOOL) return NULL;
  cpu_program_t* program = NULL;
  assay_layout_t layout = pointwise_layout(l);
  ASSAY_TRY(cpu_program_make(l, 0, NULL, layout, &program));
  if (!program && layout != ASSAY_LAYOUT_PLAIN)
    ASSAY_TRY(cpu_program_make(l, 0, NULL, layout = ASSAY_LAYOUT_PLAIN, &program));
  if (!program) return NULL;
  pointwise_t* p = NULL;
  assay_status_t st = ASSAY_NEW(&p);
  if (st) return cpu_program_destroy(program), st;
  *p = (pointwise_t){.base = {.in_place = -1, .run = run, .destroy = destroy}, .program = program};
  p->base.out[0] = (assay_storage_t){type, layout};
  for (size_t i = 0; i < cpu_program_n_streams(program); i++) {
    const cpu_stream_t* s = cpu_program_stream(program, i);
    if (!s->constant && s->input >= 0) p->base.in[s->input] = (assay_storage_t){s->type, s->layout};
  }
  p->base.in_place = cpu_program_in_place(program);
  describe_rows(p, l);
  *out = &p->base;
  return NULL;
}

// The program is compiled for the new sizes: that makes nothing of constants but copies of small
// ones.
static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* k, bool* out_ok) {
  assay_kernel_t* made = NULL;
  ASSAY_TRY(make(l, &made));
  *out_ok = made;
  if (!made) return NULL;
  pointwise_t *to = (pointwise_t*)k, *from = (pointwise_t*)made;
  const pointwise_t old = *to;
  *to = *from;
  to->base.tactic = old.base.tactic;
  from->program = old.program;
  destroy(made);
  return NULL;
}

const assay_tactic_t cpu_tactic_pointwise = {
    .name = "pointwise",
    .source = "assay",
    .make = make,
    .resize = resize,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .function_ulps = 1},
};
