// Pointwise nodes of a layer, element by element.
#include "backends/emu/like/program.h"

#include <math.h>

#include "backends/layers/pointwise_rounding.h"

enum { TILE = 64 };

// ---- functions ----------------------------------------------------------------------------------

#define POINTWISE_SQRT(x) sqrtf(x)
#define POINTWISE_ABS(x) fabsf(x)
#define POINTWISE_CEIL(x) ceilf(x)
#define POINTWISE_FLOOR(x) floorf(x)
#define POINTWISE_NEAREST(x) nearbyintf(x)
#define POINTWISE(name, n_in, expression)                             \
  static float do_##name(float X, float Z, float W, const float* P) { \
    (void)X, (void)Z, (void)W, (void)P;                               \
    return (float)(expression);                                       \
  }
#include "backends/layers/pointwise_functions.inc"
#undef POINTWISE

typedef float simple_t(float x, float z, float w, const float* p);
#define POINTWISE(name, n_in, expression) do_##name,
static simple_t* const simple[] = {
#include "backends/layers/pointwise_functions.inc"
};
#undef POINTWISE

// ---- tiles --------------------------------------------------------------------------------------

typedef struct run {
  const pointwise_code_t* c;
  const float* streams[POINTWISE_STREAMS];
  const float* result;
  cpu_vmath_use_t use;  // of the last function's result
  float* y;
} run_t;

static int64_t place(const run_t* r, size_t s, int64_t i) {
  const pointwise_walk_t* w = &r->c->walks[s];
  int64_t at = 0;
  if (w->access == POINTWISE_WHOLE) return i;
  if (w->access == POINTWISE_MOVED)
    return moved_row(&r->c->streams[s].table, i / r->c->columns) * r->c->columns +
           i % r->c->columns;
  for (int d = r->c->rank - 1; d >= 0; d--) {
    at += i % r->c->dims[d] * w->strides[d];
    i /= r->c->dims[d];
  }
  return at;
}

static void load(const run_t* r, size_t s, int64_t from, int64_t n, float* to) {
  const pointwise_stream_t* stream = &r->c->streams[s];
  for (int64_t i = 0; i < n; i++)
    to[i] = stream->input == POINTWISE_RESULT             ? r->result[from + i]
            : stream->constant && stream->n_constant == 1 ? stream->constant[0]
                                                          : r->streams[s][place(r, s, from + i)];
}

static void run_tile(const run_t* r, int64_t from, int64_t n) {
  const pointwise_code_t* c = r->c;
  static const float zeros[TILE] = {0};
  float values[POINTWISE_STREAMS + POINTWISE_INSTRUCTIONS][TILE];
  for (size_t s = 0; s < c->n_streams; s++) load(r, s, from, n, values[s]);
  for (size_t k = 0; k < c->n_code; k++) {
    const pointwise_instruction_t* code = &c->code[k];
    const float* in[3];
    for (int j = 0; j < 3; j++) in[j] = code->operand[j] < 0 ? zeros : values[code->operand[j]];
    float* to = values[POINTWISE_STREAMS + k];
    const cpu_vmath_use_t use = k + 1 == c->n_code ? r->use : CPU_V_FLOAT32;
    if (code->function >= POINTWISE_VMATH)
      cpu_vmath()->function[use][code->function - POINTWISE_VMATH](in[0], in[1], code->param, n,
                                                                   to);
    else
      for (int64_t i = 0; i < n; i++)
        to[i] = simple[code->function](in[0][i], in[1][i], in[2][i], code->param);
  }
  for (int64_t i = 0; i < n; i++) r->y[from + i] = values[POINTWISE_STREAMS + c->n_code - 1][i];
}

assay_status_t emu_program_run(emu_operands_t* o, const pointwise_code_t* c, const float* result,
                               float* y) {
  run_t r = {.c = c, .result = result, .use = pointwise_use(o->l->out[0].type), .y = y};
  const int64_t size = c->rows * c->columns, tiles = (size + TILE - 1) / TILE;
  for (size_t s = 0; s < c->n_streams; s++) {
    const pointwise_stream_t* stream = &c->streams[s];
    r.streams[s] = stream->constant;
    if (!stream->constant && stream->input >= 0)
      ASSAY_TRY(emu_operand_get(o, stream->input, stream->layout, &r.streams[s]));
    if (r.streams[s]) r.streams[s] += stream->offset;
  }
#pragma omp parallel for schedule(static) if (tiles > 16)
  for (int64_t t = 0; t < tiles; t++)
    run_tile(&r, t * TILE, size - t * TILE < TILE ? size - t * TILE : TILE);
  return NULL;
}
