// Nodes on floats as instructions.
#include <math.h>
#include <string.h>

#include "backends/layers/pointwise_internal.h"
#include "base/alloc.h"

static int emit_one(pointwise_compiler_t* c, int f, int a, const float* param, int cost) {
  return pointwise_emit(c, f, 1, &a, param, cost);
}

static int emit_two(pointwise_compiler_t* c, int f, int a, int b) {
  return pointwise_emit(c, f, 2, (const int[]){a, b}, NULL, 1);
}

// Clip has its limits as attributes (1, 6) or as constant inputs (11 and later).
static bool constant_number(const pointwise_compiler_t* c, const assay_node_t* n, size_t input,
                            float* in_out) {
  if (input >= n->n_inputs || !n->inputs[input]) return true;
  const assay_operand_t* o = assay_sized_input(c->l, n->inputs[input]);
  float* x = NULL;
  if (!o || !o->constant || o->size != 1) return false;
  assay_status_t st = assay_operand_floats(o, &x);
  const bool ok = !st;
  if (ok) *in_out = x[0];
  assay_free(x);
  assay_status_free(st);
  return ok;
}

static int compile_clip(pointwise_compiler_t* c, const assay_node_t* n) {
  float limits[2] = {-INFINITY, INFINITY};
  if (n->schema && n->schema->since < 11) {
    limits[0] = (float)assay_attr_f64(n, "min", -INFINITY);
    limits[1] = (float)assay_attr_f64(n, "max", INFINITY);
  }
  if (!constant_number(c, n, 1, &limits[0]) || !constant_number(c, n, 2, &limits[1])) return -1;
  return emit_one(c, POINTWISE_CLIP, pointwise_value(c, n->inputs[0], false), limits, 1);
}

// Exponents that normalizations and activations are written with have functions of their own.
static int compile_pow(pointwise_compiler_t* c, const assay_node_t* n) {
  static const struct {
    float exponent;
    int function;
  } special[] = {{1, POINTWISE_IDENTITY}, {2, POINTWISE_SQUARE}, {-1, POINTWISE_RECIPROCAL}};
  float exponent = NAN;
  const int x = pointwise_value(c, n->inputs[0], false);
  if (n->n_inputs == 2 && constant_number(c, n, 1, &exponent))
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
      if (exponent == special[i].exponent) return emit_one(c, special[i].function, x, NULL, 1);
  if (exponent == 3) return emit_one(c, (int)pointwise_of_vmath(CPU_V_CUBE), x, NULL, 3);
  const int operands[] = {x, pointwise_value(c, n->inputs[1], false)};
  return pointwise_emit(c, (int)pointwise_of_vmath(CPU_V_POW), 2, operands, NULL, 60);
}

// BatchNormalization in inference: (x - mean) * (scale / sqrt(variance + epsilon)) + bias, the
// factor computed in float64 and rounded once. Sources: ONNX BatchNormalization 7 to 15.
static int compile_batchnorm(pointwise_compiler_t* c, const assay_node_t* n) {
  enum { SCALE = 1, BIAS, MEAN, VARIANCE, N };
  float* v[N] = {NULL};
  const assay_operand_t* y = &c->l->out[0];
  const bool trains = n->schema && (n->schema->since < 7 || assay_attr_i64(n, "training_mode", 0));
  bool ok = !trains && n->n_inputs == 5 && y->rank >= 2;
  const int64_t channels = ok ? y->dims[1] : 0;
  for (size_t i = SCALE; ok && i < N; i++) {
    const assay_operand_t* o = assay_sized_input(c->l, n->inputs[i]);
    ok = o && o->constant && o->size == channels && assay_type_is_float(o->type);
    if (ok) c->status = assay_operand_floats(o, &v[i]);
    ok = ok && !c->status;
  }
  const double epsilon = assay_attr_f64(n, "epsilon", 1e-5);
  for (int64_t i = 0; ok && i < channels; i++)
    v[SCALE][i] = (float)((double)v[SCALE][i] / sqrt((double)v[VARIANCE][i] + epsilon));
  assay_free(v[VARIANCE]);
  if (!ok) return assay_free(v[SCALE]), assay_free(v[BIAS]), assay_free(v[MEAN]), -1;
  const int mean = pointwise_channel_stream(c, v[MEAN]),
            factor = pointwise_channel_stream(c, v[SCALE]),
            bias = pointwise_channel_stream(c, v[BIAS]);
  const int centered = emit_two(c, POINTWISE_SUB, pointwise_value(c, n->inputs[0], false), mean);
  return emit_two(c, POINTWISE_ADD, emit_two(c, POINTWISE_MUL, centered, factor), bias);
}

// Floats have fmod's remainder only; integers have no programs. Source: ONNX Mod 10 and 13.
static int compile_mod(pointwise_compiler_t* c, const assay_node_t* n) {
  if (!assay_attr_i64(n, "fmod", 0) || n->n_inputs != 2) return -1;
  const int operands[] = {pointwise_value(c, n->inputs[0], false),
                          pointwise_value(c, n->inputs[1], false)};
  return pointwise_emit(c, (int)pointwise_of_vmath(CPU_V_MOD), 2, operands, NULL, 8);
}

static int compile_cast(pointwise_compiler_t* c, const assay_node_t* n) {
  const assay_type_t to = n->outputs[0]->type->elem;
  const bool to_bool = to == ASSAY_TYPE_BOOL;
  if (pointwise_is_float8(to))
    return pointwise_to_float8(c, n, pointwise_value(c, n->inputs[0], true), to);
  return emit_one(c, to_bool ? POINTWISE_IS_TRUE : POINTWISE_IDENTITY,
                  pointwise_value(c, n->inputs[0], true), NULL, 1);
}

// Max, Min, Sum and Mean: from the first input to the last. Inputs of the versions before 8 are of
// one shape.
static int compile_variadic(pointwise_compiler_t* c, const assay_node_t* n, int f, bool mean) {
  const float count[2] = {(float)n->n_inputs, 0};
  int at = pointwise_value(c, n->inputs[0], false);
  if (n->n_inputs == 1) at = emit_one(c, POINTWISE_IDENTITY, at, NULL, 1);
  for (size_t i = 1; i < n->n_inputs; i++)
    at = emit_two(c, f, at, pointwise_value(c, n->inputs[i], false));
  return mean ? emit_one(c, POINTWISE_DIVIDE_BY, at, count, 4) : at;
}

static int compile_gelu(pointwise_compiler_t* c, const assay_node_t* n) {
  const char* approximate = assay_attr_str(n, "approximate", "none");
  const bool tanh = strcmp(approximate, "tanh") == 0;
  if (!tanh && strcmp(approximate, "none") != 0) return -1;
  return emit_one(c, (int)pointwise_of_vmath(tanh ? CPU_V_GELU_TANH : CPU_V_GELU),
                  pointwise_value(c, n->inputs[0], false), NULL, 40);
}

// com.microsoft's activations of a sum: BiasGelu, FastGelu (whose bias may be left out), BiasAdd.
static int compile_biased(pointwise_compiler_t* c, const assay_node_t* n) {
  int at = pointwise_value(c, n->inputs[0], false);
  for (size_t i = 1; i < n->n_inputs; i++)
    if (n->inputs[i]) at = emit_two(c, POINTWISE_ADD, at, pointwise_value(c, n->inputs[i], false));
  if (strcmp(n->op_type, "BiasAdd") == 0) return at < POINTWISE_STREAMS ? -1 : at;
  return emit_one(
      c,
      (int)pointwise_of_vmath(strcmp(n->op_type, "FastGelu") == 0 ? CPU_V_GELU_TANH : CPU_V_GELU),
      at, NULL, 40);
}

static int compile_known(pointwise_compiler_t* c, const assay_node_t* n) {
  for (const pointwise_known_t* f = pointwise_known; f->op; f++) {
    if (strcmp(f->op, n->op_type) != 0 || strcmp(f->domain ? f->domain : "", n->domain) != 0 ||
        n->n_inputs != (size_t)f->n_in)
      continue;
    float param[2] = {0};
    int operands[3];
    for (int k = 0; k < 2; k++)
      if (f->param[k].attribute)
        param[k] = (float)assay_attr_f64(n, f->param[k].attribute, (double)f->param[k].value);
    for (int k = 0; k < f->n_in; k++) operands[k] = pointwise_value(c, n->inputs[k], false);
    return pointwise_emit(c, (int)f->function, f->n_in, operands, param, f->cost);
  }
  return -1;
}

static int times(pointwise_compiler_t* c, int a, double factor) {
  return factor == 1 ? a : emit_two(c, POINTWISE_MUL, a, pointwise_number_stream(c, (float)factor));
}

// What a Gemm does with its product: alpha times it, and beta times the addend. Source: ONNX
// Gemm-13.
static int compile_gemm(pointwise_compiler_t* c, const assay_node_t* n) {
  if (c->options->result != n->outputs[0]) return -1;
  int at = times(c, pointwise_result_stream(c), assay_attr_f64(n, "alpha", 1));
  if (n->n_inputs > 2 && n->inputs[2])
    at = emit_two(c, POINTWISE_ADD, at,
                  times(c, pointwise_value(c, n->inputs[2], false), assay_attr_f64(n, "beta", 1)));
  return at < POINTWISE_STREAMS ? emit_one(c, POINTWISE_IDENTITY, at, NULL, 1) : at;
}

// The bias of a convolution, one for each channel that it makes.
static int compile_conv(pointwise_compiler_t* c, const assay_node_t* n) {
  if (c->options->result != n->outputs[0] || n->n_inputs < 3 || !n->inputs[2]) return -1;
  return emit_two(c, POINTWISE_ADD, pointwise_result_stream(c),
                  pointwise_axis_stream(c, n->inputs[2], 1, 0));
}

int pointwise_node(pointwise_compiler_t* c, const assay_node_t* n) {
  static const struct {
    const char* name;
    int (*compile)(pointwise_compiler_t* c, const assay_node_t* n);
  } own[] = {{"Clip", compile_clip},
             {"Pow", compile_pow},
             {"BatchNormalization", compile_batchnorm},
             {"Cast", compile_cast},
             {"CastLike", compile_cast},
             {"Gelu", compile_gelu},
             {"Mod", compile_mod},
             {"Gemm", compile_gemm},
             {"Conv", compile_conv},
             {"ConvTranspose", compile_conv}};
  static const struct {
    const char* name;
    int (*compile)(pointwise_compiler_t* c, const assay_node_t* n);
  } quantizers[] = {{"QuantizeLinear", pointwise_quantize},
                    {"DequantizeLinear", pointwise_dequantize}};
  static const char* const biased[] = {"BiasGelu", "FastGelu", "BiasAdd"};
  const char* op = n->op_type;
  for (size_t i = 0; !*n->domain && i < sizeof own / sizeof *own; i++)
    if (strcmp(op, own[i].name) == 0) return own[i].compile(c, n);
  for (size_t i = 0; c->options->quantizers && i < sizeof quantizers / sizeof *quantizers; i++)
    if (strcmp(op, quantizers[i].name) == 0) return quantizers[i].compile(c, n);
  if (!*n->domain && strcmp(op, "Max") == 0) return compile_variadic(c, n, POINTWISE_LARGER, false);
  if (!*n->domain && strcmp(op, "Min") == 0)
    return compile_variadic(c, n, POINTWISE_SMALLER, false);
  if (!*n->domain && strcmp(op, "Sum") == 0) return compile_variadic(c, n, POINTWISE_ADD, false);
  if (!*n->domain && strcmp(op, "Mean") == 0) return compile_variadic(c, n, POINTWISE_ADD, true);
  for (size_t i = 0; strcmp(n->domain, "com.microsoft") == 0 && i < 3; i++)
    if (strcmp(op, biased[i]) == 0) return compile_biased(c, n);
  return compile_known(c, n);
}
