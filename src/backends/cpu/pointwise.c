// Layers of pointwise nodes: one program over their elements.
#include "backends/cpu/program.h"
#include "base/alloc.h"

typedef struct pointwise {
  assay_kernel_t base;
  cpu_program_t* program;
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

// Channels last where an input of the output's size lies so: nothing needs to be moved then.
static assay_layout_t layout_of(const assay_sized_layer_t* l) {
  for (size_t i = 0; i < l->n_in; i++)
    if (assay_operand_is_channels_last(&l->in[i]) && l->in[i].rank == l->out[0].rank &&
        l->in[i].size == l->out[0].size)
      return ASSAY_LAYOUT_CHANNELS_LAST;
  return ASSAY_LAYOUT_PLAIN;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  if (l->n_out < 1 || !l->out[0].value) return NULL;
  const assay_type_t type = l->out[0].type;
  if (!assay_type_is_kernel_float(type) && type != ASSAY_TYPE_BOOL) return NULL;
  cpu_program_t* program = NULL;
  assay_layout_t layout = layout_of(l);
  ASSAY_TRY(cpu_program_make(l, 0, NULL, layout, &program));
  if (!program && layout != ASSAY_LAYOUT_PLAIN)
    ASSAY_TRY(cpu_program_make(l, 0, NULL, layout = ASSAY_LAYOUT_PLAIN, &program));
  if (!program) return NULL;
  pointwise_t* p = NULL;
  assay_status_t st = ASSAY_NEW(&p);
  if (st) return cpu_program_destroy(program), st;
  *p = (pointwise_t){.base = {.in_place = -1, .run = run, .destroy = destroy}, .program = program};
  p->base.out[0] = (assay_form_t){type, layout};
  for (size_t i = 0; i < cpu_program_n_streams(program); i++) {
    const cpu_stream_t* s = cpu_program_stream(program, i);
    if (!s->constant && s->input >= 0) p->base.in[s->input] = (assay_form_t){s->type, s->layout};
  }
  p->base.in_place = cpu_program_in_place(program, type);
  *out = &p->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_pointwise = {
    .name = "pointwise",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .function_ulps = 1},
};
