#include "backends/cpu/program.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/vmath.h"
#include "base/alloc.h"
#include "base/target.h"

enum { NO_INPUT = -2 };  // of a stream that is a constant of the program's own
enum { TILE = 256, REGISTERS = CPU_MAX_INSTRUCTIONS, CHUNK = 16384 };

// ---- functions ---------------------------------------------------------------------------------
//
// Each over a tile: y = f(a, b) with up to two parameters. Loops of a fixed length over arrays that
// do not overlap, which compilers turn into vector code where the function allows it.

typedef void function_t(const float* restrict a, const float* restrict b,
                        const float* restrict param, float* restrict y);

// Min(max, Max(x, min)), also where min is the larger one; NaN stays, as everywhere here.
static inline float limited(float x, float min, float max) {
  const float above = x < min ? min : x;
  return above > max ? max : above;
}

// By exp(-|x|), which does not overflow: the lower tail goes on into the subnormals.
static inline float logistic(float x) {
  const float e = cpu_exp(-fabsf(x));
  return (x < 0 ? e : 1) / (1 + e);
}

#define UNARY(name, expression)                                                                   \
  ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")                                     \
  static void name(const float* restrict a, const float* restrict b, const float* restrict param, \
                   float* restrict y) {                                                           \
    (void)b, (void)param;                                                                         \
    for (int i = 0; i < TILE; i++) {                                                              \
      const float x = a[i];                                                                       \
      y[i] = expression;                                                                          \
    }                                                                                             \
  }
#define BINARY(name, expression)                                                                  \
  ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")                                     \
  static void name(const float* restrict a, const float* restrict b, const float* restrict param, \
                   float* restrict y) {                                                           \
    (void)param;                                                                                  \
    for (int i = 0; i < TILE; i++) {                                                              \
      const float x = a[i], z = b[i];                                                             \
      y[i] = expression;                                                                          \
    }                                                                                             \
  }

BINARY(add, x + z)
BINARY(sub, x - z)
BINARY(mul, (x * z))
BINARY(quotient, x / z)
// ONNX Max and Min: a NaN of either operand is the result.
BINARY(larger, x != x ? x : z != z ? z : x > z ? x : z)
BINARY(smaller, x != x ? x : z != z ? z : x < z ? x : z)
UNARY(identity, x)
UNARY(negative, -x)
UNARY(absolute, fabsf(x))
UNARY(reciprocal, 1 / x)
UNARY(root, sqrtf(x))
UNARY(square, (x * x))
UNARY(relu, x < 0 ? 0 : x)
UNARY(leaky_relu, x < 0 ? param[0] * x : x)
UNARY(clip, limited(x, param[0], param[1]))
UNARY(hard_sigmoid, limited(param[0] * x + param[1], 0, 1))
// Its limit at -infinity, as the evaluator has it: no product of infinity and 0.
UNARY(hard_swish, x <= -3 ? -0.0F : x * limited(x / 6 + 0.5F, 0, 1))
UNARY(exponential, cpu_exp(x))
UNARY(logarithm, logf(x))
UNARY(error_function, cpu_erf(x))
UNARY(hyperbolic_tangent, cpu_tanh(x))
UNARY(sigmoid, logistic(x))
UNARY(softplus, fmaxf(x, 0) + log1pf(cpu_exp(-fabsf(x))))
UNARY(elu, x < 0 ? param[0] * expm1f(x) : x)

// ---- what is known --------------------------------------------------------------------------

typedef struct known {
  const char* op;
  function_t* function;
  int n_in;
  struct {
    const char* attribute;
    float value;
  } param[2];
} known_t;

static const known_t functions[] = {
    {"Add", add, 2, {{0}}},
    {"Sub", sub, 2, {{0}}},
    {"Mul", mul, 2, {{0}}},
    {"Div", quotient, 2, {{0}}},
    {"Max", larger, 2, {{0}}},
    {"Min", smaller, 2, {{0}}},
    {"Identity", identity, 1, {{0}}},
    {"Neg", negative, 1, {{0}}},
    {"Abs", absolute, 1, {{0}}},
    {"Reciprocal", reciprocal, 1, {{0}}},
    {"Sqrt", root, 1, {{0}}},
    {"Relu", relu, 1, {{0}}},
    {"LeakyRelu", leaky_relu, 1, {{"alpha", 0.01F}}},
    {"HardSigmoid", hard_sigmoid, 1, {{"alpha", 0.2F}, {"beta", 0.5F}}},
    {"HardSwish", hard_swish, 1, {{0}}},
    {"Exp", exponential, 1, {{0}}},
    {"Log", logarithm, 1, {{0}}},
    {"Erf", error_function, 1, {{0}}},
    {"Tanh", hyperbolic_tangent, 1, {{0}}},
    {"Sigmoid", sigmoid, 1, {{0}}},
    {"Softplus", softplus, 1, {{0}}},
    {"Elu", elu, 1, {{"alpha", 1}}},
};

typedef struct instruction {
  function_t* function;
  int a, b;  // registers; b -1: none
  float param[2];
} instruction_t;

// Registers: first the streams, then one an instruction.
struct cpu_program {
  cpu_stream_t streams[CPU_MAX_STREAMS];
  size_t n_streams;
  instruction_t code[CPU_MAX_INSTRUCTIONS];
  size_t n_code;
};

// ---- compiling ------------------------------------------------------------------------------

typedef struct compiler {
  const cpu_layer_t* l;
  cpu_program_t* p;
  const assay_value_t* result;
  cpu_layout_t layout;
  const assay_value_t*
      made[CPU_MAX_INSTRUCTIONS];  // by instruction: the hidden value that it makes
  assay_status_t status;
} compiler_t;

// The dimensions of an operand as they lie in memory, right-aligned to the output's rank.
static void memory_dims(const cpu_operand_t* o, int rank, cpu_layout_t layout, int64_t* dims) {
  for (int i = 0; i < rank; i++) {
    const int from = i - (rank - o->rank);
    dims[i] = from < 0 ? 1 : o->dims[from];
  }
  if (layout != CPU_CHANNELS_LAST || rank < 3) return;
  const int64_t channels = dims[1];
  for (int i = 1; i + 1 < rank; i++) dims[i] = dims[i + 1];
  dims[rank - 1] = channels;
}

// With at most one size other than 1: lies alike in every layout.
static bool is_vector(const cpu_operand_t* o) {
  int n = 0;
  for (int i = 0; i < o->rank; i++) n += o->dims[i] != 1;
  return n <= 1;
}

// Broadcast in one run: dimensions of 1, then the output's own, then dimensions of 1.
static bool as_stream(const compiler_t* c, const cpu_operand_t* o, cpu_stream_t* s) {
  const cpu_operand_t* y = &c->l->out[0];
  int64_t a[CPU_MAX_RANK] = {0}, b[CPU_MAX_RANK] = {0};
  if (o->rank > y->rank) return false;
  // Another order in memory is the order of the operand's own dimensions.
  if (c->layout != CPU_PLAIN && o->rank != y->rank && !is_vector(o)) return false;
  memory_dims(y, y->rank, c->layout, b);
  memory_dims(o, y->rank, c->layout, a);
  int first = y->rank, last = -1;
  for (int i = 0; i < y->rank; i++) {
    if (a[i] != 1 && a[i] != b[i]) return false;
    if (a[i] == 1) continue;
    if (first == y->rank) first = i;
    last = i;
  }
  s->n = s->inner = 1;
  for (int i = first; i <= last; i++) {
    if (a[i] != b[i]) return false;
    s->n *= a[i];
  }
  for (int i = last + 1; i < y->rank && last >= 0; i++) s->inner *= b[i];
  return true;
}

static int add_stream(compiler_t* c, const cpu_operand_t* o, int input) {
  cpu_stream_t s = {.input = input, .type = o->type};
  if (!cpu_is_float(o->type)) return -1;
  if (!as_stream(c, o, &s)) return -1;
  for (size_t i = 0; i < c->p->n_streams; i++)
    if (c->p->streams[i].input == input) return (int)i;
  if (c->p->n_streams == CPU_MAX_STREAMS) return -1;
  if (o->constant && (c->layout == CPU_PLAIN || is_vector(o))) {
    c->status = cpu_constant_floats(o, &s.constant);
    if (c->status) return -1;
    s.type = ASSAY_TYPE_FLOAT;
  }
  s.layout = is_vector(o) ? CPU_PLAIN : c->layout;
  c->p->streams[c->p->n_streams] = s;
  return (int)c->p->n_streams++;
}

// The register that holds a value; -1: none can.
static int value_register(compiler_t* c, const assay_value_t* v) {
  if (!v) return -1;
  for (size_t i = 0; i < c->p->n_code; i++)
    if (c->made[i] == v) return CPU_MAX_STREAMS + (int)i;
  if (v == c->result) {
    for (size_t i = 0; i < c->p->n_streams; i++)
      if (c->p->streams[i].input == -1) return (int)i;
    if (c->p->n_streams == CPU_MAX_STREAMS) return -1;
    c->p->streams[c->p->n_streams] =
        (cpu_stream_t){.input = -1, .type = ASSAY_TYPE_FLOAT, .inner = 1, .n = c->l->out[0].size};
    return (int)c->p->n_streams++;
  }
  const int input = cpu_input_index(c->l, v);
  return input < 0 ? -1 : add_stream(c, &c->l->in[input], input);
}

static bool emit(compiler_t* c, function_t* f, int a, int b, const float* param,
                 const assay_value_t* made) {
  if (a < 0 || c->p->n_code == CPU_MAX_INSTRUCTIONS) return false;
  instruction_t* i = &c->p->code[c->p->n_code];
  *i = (instruction_t){.function = f, .a = a, .b = b};
  if (param) memcpy(i->param, param, sizeof i->param);
  c->made[c->p->n_code++] = made;
  return true;
}

// Clip has its limits as attributes (1, 6) or as constant inputs (11 and later).
static bool clip_limit(const compiler_t* c, const assay_node_t* n, size_t input, const char* name,
                       float fallback, float* out) {
  *out = n->schema && n->schema->since < 11 ? (float)assay_attr_f64(n, name, (double)fallback)
                                            : fallback;
  if (input >= n->n_inputs || !n->inputs[input]) return true;
  const cpu_operand_t* o = cpu_input(c->l, n->inputs[input]);
  float* x = NULL;
  if (!o || !o->constant || o->size != 1) return false;
  assay_status_t st = cpu_constant_floats(o, &x);
  const bool ok = !st;
  if (ok) *out = x[0];
  assay_free(x);
  assay_status_free(st);
  return ok;
}

static bool compile_clip(compiler_t* c, const assay_node_t* n) {
  float limits[2];
  return clip_limit(c, n, 1, "min", -INFINITY, &limits[0]) &&
         clip_limit(c, n, 2, "max", INFINITY, &limits[1]) &&
         emit(c, clip, value_register(c, n->inputs[0]), -1, limits, n->outputs[0]);
}

// x^2, which normalizations are written with.
static bool compile_pow(compiler_t* c, const assay_node_t* n) {
  float exponent;
  return clip_limit(c, n, 1, "", 0, &exponent) && exponent == 2 &&
         emit(c, square, value_register(c, n->inputs[0]), -1, NULL, n->outputs[0]);
}

// A stream of one number a channel.
static int channel_stream(compiler_t* c, float* take_values, int64_t channels) {
  const cpu_operand_t* y = &c->l->out[0];
  if (c->p->n_streams == CPU_MAX_STREAMS) return assay_free(take_values), -1;
  const bool last = c->layout == CPU_CHANNELS_LAST && y->rank >= 3;
  c->p->streams[c->p->n_streams] =
      (cpu_stream_t){.input = NO_INPUT,
                     .type = ASSAY_TYPE_FLOAT,
                     .inner = last ? 1 : assay_dims_product(y->dims, 2, y->rank),
                     .n = channels,
                     .constant = take_values};
  return (int)c->p->n_streams++;
}

// BatchNormalization in inference: (x - mean) * (scale / sqrt(variance + epsilon)) + bias, the
// factor computed in float64 and rounded once. Sources: ONNX BatchNormalization 7 to 15.
static bool compile_batchnorm(compiler_t* c, const assay_node_t* n) {
  enum { SCALE = 1, BIAS, MEAN, VARIANCE };
  float* v[5] = {NULL};
  const cpu_operand_t* y = &c->l->out[0];
  const bool trains = n->schema && (n->schema->since < 7 || assay_attr_i64(n, "training_mode", 0));
  bool ok = !trains && n->n_inputs == 5 && y->rank >= 2;
  const int64_t channels = ok ? y->dims[1] : 0;
  for (size_t i = SCALE; ok && i <= VARIANCE; i++) {
    const cpu_operand_t* o = cpu_input(c->l, n->inputs[i]);
    ok = o && o->constant && o->size == channels && assay_type_is_float(o->type);
    if (ok) c->status = cpu_constant_floats(o, &v[i]);
    ok = ok && !c->status;
  }
  const double epsilon = assay_attr_f64(n, "epsilon", 1e-5);
  for (int64_t i = 0; ok && i < channels; i++)
    v[SCALE][i] = (float)((double)v[SCALE][i] / sqrt((double)v[VARIANCE][i] + epsilon));
  assay_free(v[VARIANCE]);
  if (!ok) return assay_free(v[SCALE]), assay_free(v[BIAS]), assay_free(v[MEAN]), false;
  const int mean = channel_stream(c, v[MEAN], channels);
  const int factor = channel_stream(c, v[SCALE], channels);
  const int bias = channel_stream(c, v[BIAS], channels);
  const int x = value_register(c, n->inputs[0]), at = CPU_MAX_STREAMS + (int)c->p->n_code;
  return bias >= 0 && emit(c, sub, x, mean, NULL, NULL) && emit(c, mul, at, factor, NULL, NULL) &&
         emit(c, add, at + 1, bias, NULL, n->outputs[0]);
}

static bool compile_node(compiler_t* c, const assay_node_t* n) {
  if (*n->domain || !n->n_outputs || !n->n_inputs) return false;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return false;
  // The old broadcast of opset 6 and before aligns dimensions by an attribute.
  if (n->schema && n->schema->since < 7 && assay_attr_i64(n, "broadcast", 0)) return false;
  if (strcmp(n->op_type, "Clip") == 0) return compile_clip(c, n);
  if (strcmp(n->op_type, "Pow") == 0) return compile_pow(c, n);
  if (strcmp(n->op_type, "BatchNormalization") == 0) return compile_batchnorm(c, n);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    const known_t* f = &functions[i];
    if (strcmp(f->op, n->op_type) != 0 || n->n_inputs != (size_t)f->n_in) continue;
    float param[2] = {0};
    for (int k = 0; k < 2; k++)
      if (f->param[k].attribute)
        param[k] = (float)assay_attr_f64(n, f->param[k].attribute, (double)f->param[k].value);
    const int a = value_register(c, n->inputs[0]);
    const int b = f->n_in > 1 ? value_register(c, n->inputs[1]) : -1;
    return (f->n_in == 1 || b >= 0) && emit(c, f->function, a, b, param, n->outputs[0]);
  }
  return false;
}

assay_status_t cpu_program_make(const cpu_layer_t* l, size_t first, const assay_value_t* result,
                                cpu_layout_t layout, cpu_program_t** out) {
  compiler_t c = {.l = l, .result = result, .layout = layout};
  *out = NULL;
  ASSAY_TRY(ASSAY_NEW(&c.p));
  bool ok = l->n_out >= 1 && l->out[0].value;
  for (size_t i = 1; i < l->n_out; i++) ok &= !l->out[i].value;
  for (size_t i = first; ok && i < l->layer->n_nodes; i++) {
    const assay_valtype_t* t = l->layer->nodes[i]->outputs[0]->type;
    ok = t && t->elem == ASSAY_TYPE_FLOAT && compile_node(&c, l->layer->nodes[i]);
  }
  if (!ok || c.status) return cpu_program_destroy(c.p), c.status;
  *out = c.p;
  return NULL;
}

void cpu_program_destroy(cpu_program_t* p) {
  for (size_t i = 0; p && i < p->n_streams; i++) assay_free(p->streams[i].constant);
  assay_free(p);
}

size_t cpu_program_n_streams(const cpu_program_t* p) { return p->n_streams; }
const cpu_stream_t* cpu_program_stream(const cpu_program_t* p, size_t i) { return &p->streams[i]; }

// ---- running --------------------------------------------------------------------------------

static float element(const void* x, assay_type_t type, int64_t i) {
  switch (type) {
    case ASSAY_TYPE_BFLOAT16:
      return cpu_from_bf16(((const uint16_t*)x)[i]);
    case ASSAY_TYPE_FLOAT16:
      return cpu_from_fp16(((const uint16_t*)x)[i]);
    default:
      return ((const float*)x)[i];
  }
}

// n elements of a stream from output element `from` on, into a tile.
static void load(const cpu_stream_t* s, const void* x, int64_t from, int64_t n, float* tile) {
  int64_t at = from / s->inner % s->n, left = s->inner - from % s->inner;
  if (s->inner == 1 && at + n <= s->n) {
    cpu_widen(x, s->type, at, n, tile);
    return;
  }
  for (int64_t i = 0; i < n;) {
    const int64_t run = left < n - i ? left : n - i;
    const float value = element(x, s->type, at);
    for (int64_t k = 0; k < run; k++) tile[i + k] = value;
    i += run;
    left = s->inner;
    at = at + 1 == s->n ? 0 : at + 1;
  }
}

void cpu_program_run(const cpu_program_t* p, int64_t from, int64_t to, const void* const* in,
                     const float* result, assay_type_t type, void* out) {
  float tiles[CPU_MAX_STREAMS + REGISTERS][TILE];
  for (int64_t at = from; at < to; at += TILE) {
    const int64_t n = to - at < TILE ? to - at : TILE;
    for (size_t i = 0; i < p->n_streams; i++) {
      const cpu_stream_t* s = &p->streams[i];
      const void* x = s->constant ? s->constant : s->input < 0 ? (const void*)result : in[s->input];
      load(s, x, at, n, tiles[i]);
      // Functions go over whole tiles: what lies behind the end has to be a number.
      for (int64_t k = n; k < TILE; k++) tiles[i][k] = 1;
    }
    for (size_t i = 0; i < p->n_code; i++) {
      const instruction_t* c = &p->code[i];
      c->function(tiles[c->a], c->b < 0 ? NULL : tiles[c->b], c->param, tiles[CPU_MAX_STREAMS + i]);
    }
    cpu_narrow(tiles[CPU_MAX_STREAMS + p->n_code - 1], n, type, at, out);
  }
}

void cpu_program_run_all(const cpu_program_t* p, int64_t size, const void* const* in,
                         const float* result, assay_type_t type, void* out) {
  const int64_t chunks = (size + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (chunks > 2)
  for (int64_t i = 0; i < chunks; i++)
    cpu_program_run(p, i * CHUNK, (i + 1) * CHUNK < size ? (i + 1) * CHUNK : size, in, result, type,
                    out);
}
