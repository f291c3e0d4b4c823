// What int8 layers do with their sums: the definition in int8.h, a tile of elements at a time.
#include <math.h>
#include <string.h>

#include "base/target.h"
#include "ops/quant/int8.h"
#include "ops/quant/int8_functions.h"
#include "ops/quant/int8_quick.h"
#include "ops/quant/int8_wide.h"

enum { TILE = ASSAY_INT8_TILE, SOME = 256 };  // SOME: of float64 registers

#define WIDE ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

// ---- functions ---------------------------------------------------------------------------------

typedef void function_t(int64_t n, const double* restrict a, const double* restrict b,
                        const double* restrict p, double* restrict y);

// As the evaluator has them (ops/math/activation.c), and Min(max, Max(x, min)) also where min is
// the larger one; NaN stays.
static inline double limited(double x, double min, double max) {
  const double above = x < min ? min : x;
  return above > max ? max : above;
}
#define INT8_LIMITED(x, min, max) limited(x, min, max)

#define INT8_STEP(name, binary, a0, d0, a1, d1, expression)                                   \
  WIDE static void step_##name(int64_t n, const double* restrict a, const double* restrict b, \
                               const double* restrict p, double* restrict y) {                \
    (void)b, (void)p;                                                                         \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                     \
      const double x = a[i], z = (binary) ? b[i] : 0;                                         \
      (void)z;                                                                                \
      y[i] = expression;                                                                      \
    }                                                                                         \
  }
#include "ops/quant/int8_steps.inc"
#undef INT8_STEP

typedef struct known {
  const char* op;  // of ai.onnx; a name in lower case: made of several nodes
  function_t* function;
  bool binary;
  struct {
    const char* attribute;
    double value;
  } p[2];
} known_t;

static const known_t functions[] = {
#define INT8_STEP(name, binary, a0, d0, a1, d1, expression) \
  {#name, step_##name, binary, {{a0, d0}, {a1, d1}}},
#include "ops/quant/int8_steps.inc"
#undef INT8_STEP
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

const char* assay_int8_function_name(int function) { return functions[function].op; }

int assay_int8_function_named(const char* name) {
  for (int i = 0; i < FUNCTIONS; i++)
    if (strcmp(functions[i].op, name) == 0) return i;
  return -1;
}

// A limit of Clip: an attribute (1, 6) or a constant of one element (11 and later).
static bool clip_limit(const assay_node_t* n, size_t input, const char* name, double fallback,
                       double* out) {
  const bool attribute = n->schema && n->schema->since < 11;
  const assay_value_t* v = input < n->n_inputs ? n->inputs[input] : NULL;
  *out = attribute ? assay_attr_f64(n, name, fallback) : fallback;
  if (attribute || !v) return true;
  const assay_tensor_t* t = v->is_input ? NULL : v->constant;
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->size != 1 || t->type != ASSAY_TYPE_FLOAT)
    return false;
  float packed = 0;
  if (t->store != ASSAY_STORE_F64) memcpy(&packed, t->data, sizeof packed);  // it may lie anywhere
  *out = t->store == ASSAY_STORE_F64 ? assay_f64(t)[0] : (double)packed;
  return *out == *out;
}

int assay_int8_function(const assay_node_t* n, double p[2], bool* out_binary) {
  if (*n->domain || !n->n_outputs || !n->outputs[0] || !n->n_inputs) return -1;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return -1;
  // The old broadcast of opset 6 and before aligns dimensions by an attribute.
  if (n->schema && n->schema->since < 7 && assay_attr_i64(n, "broadcast", 0)) return -1;
  int i = assay_int8_function_named(n->op_type);
  if (i < 0) return -1;
  if (strcmp(n->op_type, "Gelu") == 0 && assay_attr_is(n, "approximate", "tanh"))
    i = assay_int8_function_named("gelu_tanh");
  p[0] = p[1] = 0;
  *out_binary = functions[i].binary;
  if (strcmp(n->op_type, "Clip") == 0)
    return clip_limit(n, 1, "min", -(double)INFINITY, &p[0]) &&
                   clip_limit(n, 2, "max", (double)INFINITY, &p[1])
               ? i
               : -1;
  if (n->n_inputs != (functions[i].binary ? 2 : 1)) return -1;
  for (int k = 0; k < 2; k++)
    if (functions[i].p[k].attribute)
      p[k] = assay_attr_f64(n, functions[i].p[k].attribute, functions[i].p[k].value);
  return i;
}

// ---- steps -------------------------------------------------------------------------------------

// fl32(sum) * factor + shift, each rounded.
WIDE static void affine(int64_t n, const float* restrict sums, const float* restrict factor,
                        const float* restrict shift, float* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = sums[i] * factor[i] + shift[i];
}

WIDE static void affine_integers(int64_t n, const int32_t* restrict sums,
                                 const float* restrict factor, const float* restrict shift,
                                 float* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (float)sums[i] * factor[i] + shift[i];
}

// (q - zero) * scale in float32: the difference is exact, so that it is the table's number.
WIDE static void real_u8(int64_t n, const uint8_t* restrict x, float zero, float scale,
                         float* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = ((float)x[i] - zero) * scale;
}
WIDE static void real_i8(int64_t n, const int8_t* restrict x, float zero, float scale,
                         float* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = ((float)x[i] - zero) * scale;
}

#define SIMPLE(name, expression)                                                 \
  WIDE static void name(int64_t n, const float* restrict x, float* restrict y) { \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = expression;       \
  }
SIMPLE(add_floats, y[i] + x[i])
SIMPLE(subtract_floats, y[i] - x[i])
SIMPLE(subtract_from_floats, x[i] - y[i])
SIMPLE(multiply_floats, (y[i] * x[i]))

WIDE static void limit_floats(int64_t n, float low, float high, float* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float above = y[i] < low ? low : y[i];
    y[i] = above > high ? high : above;
  }
}

WIDE static void widen(int64_t n, const float* restrict x, double* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (double)x[i];
}

WIDE static void narrow(int64_t n, const double* restrict x, float* restrict y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (float)x[i];
}

static void source_floats(const assay_int8_t* q, const assay_int8_tile_t* t, size_t k, int64_t n,
                          float* y) {
  const assay_int8_source_t* s = &q->sources[k];
  if (s->kind == ASSAY_INT8_RESULT && t->integers)
    affine_integers(n, t->integers, t->factor, t->shift, y);
  else if (s->kind == ASSAY_INT8_RESULT)
    affine(n, t->sums, t->factor, t->shift, y);
  else if (s->kind == ASSAY_INT8_OPERAND && s->type == ASSAY_TYPE_INT8)
    real_i8(n, (const int8_t*)t->operand[k], s->zero, s->scale, y);
  else if (s->kind == ASSAY_INT8_OPERAND)
    real_u8(n, t->operand[k], s->zero, s->scale, y);
  else if (s->kind == ASSAY_INT8_CHANNEL || s->kind == ASSAY_INT8_REAL)
    memcpy(y, t->channel[k], (size_t)n * sizeof *y);
  else
    for (int64_t i = 0; i < n; i++) y[i] = (float)s->scalar;
}

// n <= SOME elements.
static void run_some_steps(const assay_int8_t* q, const assay_int8_tile_t* t, int64_t n, float* y) {
  double registers[ASSAY_INT8_SOURCES + ASSAY_INT8_STEPS][SOME];
  for (size_t k = 0; k < q->n_sources; k++) {
    if (q->sources[k].kind == ASSAY_INT8_SCALAR) {
      for (int64_t i = 0; i < n; i++) registers[k][i] = q->sources[k].scalar;
    } else {
      source_floats(q, t, k, n, y);
      widen(n, y, registers[k]);
    }
  }
  for (size_t k = 0; k < q->n_steps; k++) {
    const assay_int8_step_t* s = &q->steps[k];
    functions[s->function].function(n, registers[s->a], s->b < 0 ? NULL : registers[s->b], s->p,
                                    registers[q->n_sources + k]);
  }
  narrow(n, registers[q->n_sources + q->n_steps - 1], y);
}

static void run_steps(const assay_int8_t* q, const assay_int8_tile_t* t, int64_t n, float* y) {
  assay_int8_tile_t at = *t;
  for (int64_t i = 0; i < n; i += SOME) {
    run_some_steps(q, &at, n - i < SOME ? n - i : SOME, y + i);
    if (at.sums) at.sums += SOME;
    if (at.integers) at.integers += SOME;
    if (at.factor) at.factor += SOME;
    if (at.shift) at.shift += SOME;
    for (size_t k = 0; k < q->n_sources; k++) {
      if (at.operand[k]) at.operand[k] += SOME;
      if (at.channel[k]) at.channel[k] += SOME;
    }
  }
}

static void run_operation(const assay_int8_t* q, const assay_int8_tile_t* t, int64_t n, float* y) {
  source_floats(q, t, 0, n, y);
  if (q->other < 0) return;
  float other[TILE];
  source_floats(q, t, (size_t)q->other, n, other);
  if (q->operation == ASSAY_INT8_ADD)
    add_floats(n, other, y);
  else if (q->operation == ASSAY_INT8_SUB)
    subtract_floats(n, other, y);
  else if (q->operation == ASSAY_INT8_SUB_FROM)
    subtract_from_floats(n, other, y);
  else
    multiply_floats(n, other, y);
}

// ---- the choice --------------------------------------------------------------------------------

// What becomes of a float: first limits, then q. NaN becomes 0, or what is next to it in the type,
// as in QuantizeLinear's evaluation.
typedef struct range {
  float minimum, maximum;  // of the float
  float scale, zero;
  float low, high;  // of the integer
} range_t;

static inline float within(float x, float low, float high) {
  const float above = x < low ? low : x;
  return above > high ? high : above;
}

// Adding 1.5 * 2^23 rounds to an integer; no 8-bit type comes near where that fails. Beyond 512
// steps all zero points leave the type.
static inline float rounded(float v) {
  const float shift = 0x1.8p23F;
  return (v + shift) - shift;
}

static inline float chosen(float x, range_t r) {
  const float v = within(x, r.minimum, r.maximum) / r.scale;
  const float k = rounded(within(v, -512, 512)) + r.zero;
  return v != v ? 0 : within(k, r.low, r.high);
}

WIDE static void quantize_i8(const float* restrict x, int64_t n, range_t r, int8_t* restrict out) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) out[i] = (int8_t)(int32_t)chosen(x[i], r);
}
WIDE static void quantize_u8(const float* restrict x, int64_t n, range_t r, uint8_t* restrict out) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)(int32_t)chosen(x[i], r);
}

static void quantize(const float* x, int64_t n, range_t r, assay_type_t type, void* out) {
  const bool u8 = type == ASSAY_TYPE_UINT8;
  r.low = u8 ? 0 : -128;
  r.high = u8 ? 255 : 127;
  if (u8)
    quantize_u8(x, n, r, out);
  else
    quantize_i8(x, n, r, out);
}

void assay_int8_quantize(const float* x, int64_t n, float scale, float zero, assay_type_t type,
                         void* out) {
  if (int8_has_wide()) {
    const int8_wide_t w = {.a = {.floats = x},
                           .low = -INFINITY,
                           .high = INFINITY,
                           .type = type,
                           .scale = scale,
                           .zero = zero};
    int8_wide_run(&w, n, out);
  } else {
    const range_t r = {.minimum = -INFINITY, .maximum = INFINITY, .scale = scale, .zero = zero};
    quantize(x, n, r, type, out);
  }
}

static int8_wide_operand_t wide_operand(const assay_int8_t* q, const assay_int8_tile_t* t, int k) {
  const assay_int8_source_t* s = &q->sources[k];
  int8_wide_operand_t o = {0};
  if (s->kind == ASSAY_INT8_RESULT) {
    o.sums = t->integers;
    o.factor = t->factor;
    o.shift = t->shift;
  } else if (s->kind == ASSAY_INT8_OPERAND) {
    o.bytes = t->operand[k];
    o.is_signed = s->type == ASSAY_TYPE_INT8;
    o.zero = s->zero;
    o.scale = s->scale;
  } else if (s->kind == ASSAY_INT8_CHANNEL || s->kind == ASSAY_INT8_REAL) {
    o.floats = t->channel[k];
  } else {
    o.number = (float)s->scalar;
  }
  return o;
}

static void run_wide(const assay_int8_t* q, const assay_int8_tile_t* t, int64_t n, void* out) {
  int8_wide_t w = {.a = wide_operand(q, t, 0),
                   .has_b = q->other >= 0,
                   .operation = q->operation,
                   .low = q->low,
                   .high = q->high,
                   .type = q->type,
                   .scale = q->quantizes ? q->scale : 1,
                   .zero = q->zero};
  if (w.has_b) w.b = wide_operand(q, t, q->other);
  int8_wide_run(&w, n, out);
}

// By the shorter way, and by the definition what is not sure.
static void run_quick(const assay_int8_t* q, const assay_int8_tile_t* t, int64_t n, uint8_t* out) {
  enum { PIECE = 64 };
  for (int64_t i = 0; i < n; i += PIECE) {
    int8_quick_t at = *t->quick;
    at.factor += i;
    at.shift += i;
    i += int8_quick_run(&at, t->integers + i, n - i, out + i);
    if (i >= n) break;
    const assay_int8_tile_t rest = {
        .integers = t->integers + i, .factor = t->factor + i, .shift = t->shift + i};
    run_wide(q, &rest, n - i < PIECE ? n - i : PIECE, out + i);
  }
}

static void run_simple(const assay_int8_t* q, const assay_int8_tile_t* t, int64_t n, void* out) {
  float y[TILE];
  run_operation(q, t, n, y);
  if (q->quantizes) {
    const range_t r = {.minimum = q->low, .maximum = q->high, .scale = q->scale, .zero = q->zero};
    quantize(y, n, r, q->type, out);
  } else {
    limit_floats(n, q->low, q->high, y);
    memcpy(out, y, (size_t)n * sizeof *y);
  }
}

void assay_int8_epilogue(const assay_int8_t* q, const assay_int8_tile_t* t, int64_t n, void* out) {
  // Sums that are floats already are read by the plain code.
  const bool wide = q->sources[0].kind != ASSAY_INT8_RESULT || t->integers;
  float y[TILE];
  if (t->quick) {
    run_quick(q, t, n, out);
  } else if (q->simple && wide && int8_has_wide()) {
    run_wide(q, t, n, out);
  } else if (q->simple) {
    run_simple(q, t, n, out);
  } else {
    run_steps(q, t, n, y);
    if (q->quantizes)
      assay_int8_quantize(y, n, q->scale, q->zero, q->type, out);
    else
      memcpy(out, y, (size_t)n * sizeof *y);
  }
}

bool assay_int8_table(const assay_int8_t* q, void* out) {
  uint8_t bytes[256];
  assay_int8_tile_t t = {0};
  int operands = 0;
  for (int i = 0; i < 256; i++) bytes[i] = (uint8_t)i;
  for (size_t k = 0; k < q->n_sources; k++) {
    operands += q->sources[k].kind == ASSAY_INT8_OPERAND;
    if (q->sources[k].kind != ASSAY_INT8_OPERAND && q->sources[k].kind != ASSAY_INT8_SCALAR)
      return false;
    t.operand[k] = bytes;
  }
  if (operands != 1) return false;
  assay_int8_epilogue(q, &t, 256, out);
  return true;
}
