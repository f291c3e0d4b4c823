// The compiler of pointwise programs: nodes become instructions, their operands streams and slots.
#include "backends/cpu/pointwise/program.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/pointwise/program_code.h"
#include "base/alloc.h"

typedef struct compiler {
  const assay_sized_layer_t* l;
  cpu_program_t* p;
  const assay_value_t* result;
  assay_layout_t layout;
  // By dimension in memory, not merged.
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
  int64_t strides[CPU_MAX_STREAMS][ASSAY_KERNEL_RANK];
  // By instruction: the hidden value that it makes, and its operands: streams, or instructions from
  // CPU_MAX_STREAMS on.
  const assay_value_t* made[CPU_MAX_INSTRUCTIONS];
  int operand[CPU_MAX_INSTRUCTIONS][3];
  assay_status_t status;
} compiler_t;

// ---- streams --------------------------------------------------------------------------------

static bool channels_last(const compiler_t* c, int rank) {
  return c->layout == ASSAY_LAYOUT_CHANNELS_LAST && rank >= 3;
}

// Which dimension of the output comes at place i in memory.
static int memory_order(const compiler_t* c, int i) {
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

// By place in memory of the output; false: it cannot be broadcast to it.
static bool stream_strides(const compiler_t* c, const assay_operand_t* o, assay_layout_t layout,
                           int64_t* strides) {
  const assay_operand_t* y = &c->l->out[0];
  int64_t own[ASSAY_KERNEL_RANK] = {0};
  if (o->rank > y->rank) return false;
  own_strides(o, layout, own);
  for (int i = 0; i < y->rank; i++) {
    const int d = memory_order(c, i), from = d - (y->rank - o->rank);
    const int64_t size = from < 0 ? 1 : o->dims[from];
    if (size != 1 && size != y->dims[d]) return false;
    strides[i] = size == 1 ? 0 : own[from];
  }
  return true;
}

// The layout in which a stream is asked for: the output's, unless its dimensions are not those.
static assay_layout_t stream_layout(const compiler_t* c, const assay_operand_t* o) {
  return is_vector(o) || o->rank != c->l->out[0].rank ? ASSAY_LAYOUT_PLAIN : c->layout;
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

static bool is_integer(assay_type_t t) {
  return t == ASSAY_TYPE_INT8 || t == ASSAY_TYPE_UINT8 || t == ASSAY_TYPE_INT32 ||
         t == ASSAY_TYPE_INT64;
}

static int new_stream(compiler_t* c, cpu_stream_t s) {
  if (c->p->n_streams == CPU_MAX_STREAMS) return assay_free(s.constant), -1;
  c->p->streams[c->p->n_streams] = s;
  return (int)c->p->n_streams++;
}

static int add_stream(compiler_t* c, const assay_operand_t* o, int input, bool integers) {
  cpu_stream_t s = {.input = input, .type = o->type, .layout = stream_layout(c, o)};
  for (size_t i = 0; i < c->p->n_streams; i++)
    if (c->p->streams[i].input == input) return (int)i;
  if (!assay_type_is_kernel_float(o->type) && o->type != ASSAY_TYPE_BOOL &&
      !(integers && is_integer(o->type)))
    return -1;
  if (c->p->n_streams == CPU_MAX_STREAMS ||
      !stream_strides(c, o, s.layout, c->strides[c->p->n_streams]))
    return -1;
  if (o->constant && assay_type_is_kernel_float(o->type)) {
    c->status = constant_in_layout(o, s.layout, &s.constant);
    if (c->status) return -1;
    s.type = ASSAY_TYPE_FLOAT;
  }
  return new_stream(c, s);
}

static int result_stream(compiler_t* c) {
  for (size_t i = 0; i < c->p->n_streams; i++)
    if (c->p->streams[i].input == PROGRAM_RESULT) return (int)i;
  if (c->p->n_streams == CPU_MAX_STREAMS ||
      !stream_strides(c, &c->l->out[0], c->layout, c->strides[c->p->n_streams]))
    return -1;
  return new_stream(c, (cpu_stream_t){.input = PROGRAM_RESULT, .type = ASSAY_TYPE_FLOAT});
}

// A stream of one number a channel; the values are taken over.
static int channel_stream(compiler_t* c, float* take_values) {
  const assay_operand_t* y = &c->l->out[0];
  const cpu_stream_t s = {
      .input = PROGRAM_NO_INPUT, .type = ASSAY_TYPE_FLOAT, .constant = take_values};
  if (c->p->n_streams == CPU_MAX_STREAMS) return assay_free(take_values), -1;
  for (int i = 0; i < y->rank; i++)
    c->strides[c->p->n_streams][i] = memory_order(c, i) == 1 && y->dims[1] != 1;
  return new_stream(c, s);
}

// ---- nodes ----------------------------------------------------------------------------------

// The stream or instruction that gives a value; -1: none can.
static int value_of(compiler_t* c, const assay_value_t* v, bool integers) {
  if (!v) return -1;
  for (size_t i = 0; i < c->p->n_code; i++)
    if (c->made[i] == v) return CPU_MAX_STREAMS + (int)i;
  if (v == c->result) return result_stream(c);
  const int input = assay_sized_input_index(c->l, v);
  return input < 0 ? -1 : add_stream(c, &c->l->in[input], input, integers);
}

// Adds an instruction; gives its number as an operand, or -1. After sums the short functions do.
static int emit(compiler_t* c, cpu_function_t* f, int n, const int* operands, const float* param,
                int cost) {
  const size_t at = c->p->n_code;
  if (at == CPU_MAX_INSTRUCTIONS) return -1;
  for (int i = 0; i < 3; i++) {
    if (i < n && operands[i] < 0) return -1;
    c->operand[at][i] = i < n ? operands[i] : -1;
  }
  c->p->code[at] = (program_instruction_t){.function = c->result ? cpu_short_function(f) : f};
  if (param) memcpy(c->p->code[at].param, param, sizeof c->p->code[at].param);
  c->p->n_code++;
  c->p->cost += cost;
  return CPU_MAX_STREAMS + (int)at;
}

static int emit_one(compiler_t* c, cpu_function_t* f, int a, const float* param, int cost) {
  return emit(c, f, 1, &a, param, cost);
}

static int emit_two(compiler_t* c, cpu_function_t* f, int a, int b) {
  return emit(c, f, 2, (const int[]){a, b}, NULL, 1);
}

// Clip has its limits as attributes (1, 6) or as constant inputs (11 and later).
static bool constant_number(const compiler_t* c, const assay_node_t* n, size_t input,
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

static int compile_clip(compiler_t* c, const assay_node_t* n) {
  float limits[2] = {-INFINITY, INFINITY};
  if (n->schema && n->schema->since < 11) {
    limits[0] = (float)assay_attr_f64(n, "min", -INFINITY);
    limits[1] = (float)assay_attr_f64(n, "max", INFINITY);
  }
  if (!constant_number(c, n, 1, &limits[0]) || !constant_number(c, n, 2, &limits[1])) return -1;
  return emit_one(c, cpu_f_clip, value_of(c, n->inputs[0], false), limits, 1);
}

// Exponents that normalizations and activations are written with have functions of their own.
static int compile_pow(compiler_t* c, const assay_node_t* n) {
  static const struct {
    float exponent;
    cpu_function_t* function;
  } special[] = {{1, cpu_f_identity}, {2, cpu_f_square}, {-1, cpu_f_reciprocal}};
  float exponent = NAN;
  const int x = value_of(c, n->inputs[0], false);
  if (n->n_inputs == 2 && constant_number(c, n, 1, &exponent))
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
      if (exponent == special[i].exponent) return emit_one(c, special[i].function, x, NULL, 1);
  if (exponent == 3) return emit_one(c, cpu_vector_function(CPU_V_CUBE), x, NULL, 3);
  const int operands[] = {x, value_of(c, n->inputs[1], false)};
  return emit(c, cpu_vector_function(CPU_V_POW), 2, operands, NULL, 60);
}

// BatchNormalization in inference: (x - mean) * (scale / sqrt(variance + epsilon)) + bias, the
// factor computed in float64 and rounded once. Sources: ONNX BatchNormalization 7 to 15.
static int compile_batchnorm(compiler_t* c, const assay_node_t* n) {
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
  const int mean = channel_stream(c, v[MEAN]), factor = channel_stream(c, v[SCALE]),
            bias = channel_stream(c, v[BIAS]);
  const int centered = emit_two(c, cpu_f_sub, value_of(c, n->inputs[0], false), mean);
  return emit_two(c, cpu_f_add, emit_two(c, cpu_f_mul, centered, factor), bias);
}

// Floats have fmod's remainder only; integers have no programs. Source: ONNX Mod 10 and 13.
static int compile_mod(compiler_t* c, const assay_node_t* n) {
  if (!assay_attr_i64(n, "fmod", 0) || n->n_inputs != 2) return -1;
  const int operands[] = {value_of(c, n->inputs[0], false), value_of(c, n->inputs[1], false)};
  return emit(c, cpu_vector_function(CPU_V_MOD), 2, operands, NULL, 8);
}

static int compile_cast(compiler_t* c, const assay_node_t* n) {
  const bool to_bool = n->outputs[0]->type->elem == ASSAY_TYPE_BOOL;
  return emit_one(c, to_bool ? cpu_f_is_true : cpu_f_identity, value_of(c, n->inputs[0], true),
                  NULL, 1);
}

// Max, Min, Sum and Mean: from the first input to the last. Inputs of the versions before 8 are of
// one shape.
static int compile_variadic(compiler_t* c, const assay_node_t* n, cpu_function_t* f, bool mean) {
  const float count[2] = {(float)n->n_inputs, 0};
  int at = value_of(c, n->inputs[0], false);
  if (n->n_inputs == 1) at = emit_one(c, cpu_f_identity, at, NULL, 1);
  for (size_t i = 1; i < n->n_inputs; i++)
    at = emit_two(c, f, at, value_of(c, n->inputs[i], false));
  return mean ? emit_one(c, cpu_f_divide_by, at, count, 4) : at;
}

static int compile_gelu(compiler_t* c, const assay_node_t* n) {
  const char* approximate = assay_attr_str(n, "approximate", "none");
  const bool tanh = strcmp(approximate, "tanh") == 0;
  if (!tanh && strcmp(approximate, "none") != 0) return -1;
  return emit_one(c, cpu_vector_function(tanh ? CPU_V_GELU_TANH : CPU_V_GELU),
                  value_of(c, n->inputs[0], false), NULL, 40);
}

// com.microsoft's activations of a sum: BiasGelu, FastGelu (whose bias may be left out), BiasAdd.
static int compile_biased(compiler_t* c, const assay_node_t* n) {
  int at = value_of(c, n->inputs[0], false);
  for (size_t i = 1; i < n->n_inputs; i++)
    if (n->inputs[i]) at = emit_two(c, cpu_f_add, at, value_of(c, n->inputs[i], false));
  if (strcmp(n->op_type, "BiasAdd") == 0) return at < CPU_MAX_STREAMS ? -1 : at;
  return emit_one(
      c, cpu_vector_function(strcmp(n->op_type, "FastGelu") == 0 ? CPU_V_GELU_TANH : CPU_V_GELU),
      at, NULL, 40);
}

static int compile_known(compiler_t* c, const assay_node_t* n) {
  for (const cpu_known_t* f = cpu_known_functions; f->op; f++) {
    if (strcmp(f->op, n->op_type) != 0 || strcmp(f->domain ? f->domain : "", n->domain) != 0 ||
        n->n_inputs != (size_t)f->n_in)
      continue;
    float param[2] = {0};
    int operands[3];
    for (int k = 0; k < 2; k++)
      if (f->param[k].attribute)
        param[k] = (float)assay_attr_f64(n, f->param[k].attribute, (double)f->param[k].value);
    for (int k = 0; k < f->n_in; k++) operands[k] = value_of(c, n->inputs[k], false);
    return emit(c, f->function, f->n_in, operands, param, f->cost);
  }
  return -1;
}

static int compile_any(compiler_t* c, const assay_node_t* n) {
  static const struct {
    const char* name;
    int (*compile)(compiler_t* c, const assay_node_t* n);
  } own[] = {
      {"Clip", compile_clip}, {"Pow", compile_pow},       {"BatchNormalization", compile_batchnorm},
      {"Cast", compile_cast}, {"CastLike", compile_cast}, {"Gelu", compile_gelu},
      {"Mod", compile_mod}};
  static const char* const biased[] = {"BiasGelu", "FastGelu", "BiasAdd"};
  const char* op = n->op_type;
  for (size_t i = 0; !*n->domain && i < sizeof own / sizeof *own; i++)
    if (strcmp(op, own[i].name) == 0) return own[i].compile(c, n);
  if (!*n->domain && strcmp(op, "Max") == 0) return compile_variadic(c, n, cpu_f_larger, false);
  if (!*n->domain && strcmp(op, "Min") == 0) return compile_variadic(c, n, cpu_f_smaller, false);
  if (!*n->domain && strcmp(op, "Sum") == 0) return compile_variadic(c, n, cpu_f_add, false);
  if (!*n->domain && strcmp(op, "Mean") == 0) return compile_variadic(c, n, cpu_f_add, true);
  for (size_t i = 0; strcmp(n->domain, "com.microsoft") == 0 && i < 3; i++)
    if (strcmp(op, biased[i]) == 0) return compile_biased(c, n);
  return compile_known(c, n);
}

// Versions that align dimensions by an attribute, or that have one shape and no broadcast.
static bool is_legacy(const assay_node_t* n) {
  static const char* const legacy[] = {"Add", "Sub", "Mul", "Div", "Pow", "PRelu"};
  if (!n->schema || n->schema->since >= 7) return false;
  if (assay_attr_i64(n, "broadcast", 0)) return true;
  return strcmp(n->op_type, legacy[5]) == 0;
}

static bool compile_node(compiler_t* c, const assay_node_t* n) {
  if (!n->n_outputs || !n->n_inputs || is_legacy(n)) return false;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return false;
  const int at = compile_any(c, n);
  if (at < CPU_MAX_STREAMS) return false;
  c->made[at - CPU_MAX_STREAMS] = n->outputs[0];
  return true;
}

// Hidden values are float32, which is what instructions leave, or bool.
static bool type_is_known(const assay_node_t* n, bool only) {
  const assay_valtype_t* t = n->outputs[0] ? n->outputs[0]->type : NULL;
  if (!t) return false;
  if (t->elem == ASSAY_TYPE_FLOAT || t->elem == ASSAY_TYPE_BOOL) return true;
  return only && (t->elem == ASSAY_TYPE_FLOAT16 || t->elem == ASSAY_TYPE_BFLOAT16);
}

// ---- dimensions, tiles and slots ------------------------------------------------------------

// Dimensions over which every stream runs on, or stands still, become one; those of 1 go.
static void merge_dims(compiler_t* c) {
  cpu_program_t* p = c->p;
  for (int d = 0; d < c->rank; d++) {
    if (c->dims[d] == 1) continue;
    bool joins = p->rank;
    for (size_t s = 0; joins && s < p->n_streams; s++)
      joins = p->walks[s].strides[p->rank - 1] == c->strides[s][d] * c->dims[d];
    if (!joins) p->rank++;
    p->dims[p->rank - 1] = joins ? p->dims[p->rank - 1] * c->dims[d] : c->dims[d];
    for (size_t s = 0; s < p->n_streams; s++) p->walks[s].strides[p->rank - 1] = c->strides[s][d];
  }
  if (!p->rank) p->dims[p->rank++] = 1;
  p->columns = p->dims[p->rank - 1];
  p->rows = assay_dims_product(p->dims, 0, p->rank - 1);
}

static void find_access(cpu_program_t* p, program_walk_t* w) {
  int64_t step = 1;
  bool whole = true, outer = false;
  for (int d = p->rank - 1; d >= 0; d--) {
    whole &= w->strides[d] == step || p->dims[d] == 1;
    outer |= d < p->rank - 1 && w->strides[d];
    step *= p->dims[d];
  }
  w->access = whole ? PROGRAM_WHOLE : outer ? PROGRAM_STRIDED : PROGRAM_PERIODIC;
}

static void choose_tiles(cpu_program_t* p) {
  enum { VECTOR = 16 };
  if (p->columns <= PROGRAM_TILE) {
    p->tile_columns = p->columns;
    p->tile_rows = p->columns ? PROGRAM_TILE / p->columns : 1;
    if (p->tile_rows > p->rows) p->tile_rows = p->rows;
    return;
  }
  const int64_t parts = (p->columns + PROGRAM_TILE - 1) / PROGRAM_TILE;
  p->tile_rows = 1;
  p->tile_columns = ((p->columns + parts - 1) / parts + VECTOR - 1) / VECTOR * VECTOR;
}

// Streams that do not lie as tiles need slots for good.
static bool needs_slot(const cpu_program_t* p, size_t s) {
  const program_walk_t* w = &p->walks[s];
  if (p->streams[s].type != ASSAY_TYPE_FLOAT) return true;
  if (w->access == PROGRAM_WHOLE) return false;
  // A tile in a row is a piece of it.
  return p->tile_rows > 1 || w->strides[p->rank - 1] != 1;
}

// The last instruction that reads instruction i.
static size_t last_reader(const compiler_t* c, size_t i) {
  size_t last = i;
  for (size_t k = i + 1; k < c->p->n_code; k++)
    for (int j = 0; j < 3; j++)
      if (c->operand[k][j] == CPU_MAX_STREAMS + (int)i) last = k;
  return last;
}

static bool assign_slots(compiler_t* c) {
  cpu_program_t* p = c->p;
  bool used[PROGRAM_SLOTS] = {false};
  int slot_of[CPU_MAX_INSTRUCTIONS];
  for (size_t s = 0; s < p->n_streams; s++) {
    p->walks[s].slot = needs_slot(p, s) ? p->n_slots++ : -1;
    if (p->n_slots > PROGRAM_SLOTS) return false;
    if (p->walks[s].slot >= 0) used[p->walks[s].slot] = true;
  }
  for (size_t i = 0; i < p->n_code; i++) {
    program_instruction_t* code = &p->code[i];
    for (int j = 0; j < 3; j++) {
      const int o = c->operand[i][j];
      const bool stream = o < CPU_MAX_STREAMS;
      code->operand[j] =
          (program_place_t){.slot = !stream, .index = stream ? o : slot_of[o - CPU_MAX_STREAMS]};
    }
    // What is read here for the last time may be written over: element by element.
    for (size_t k = 0; k < i; k++)
      if (last_reader(c, k) == i) used[slot_of[k]] = false;
    int slot = 0;
    while (slot < PROGRAM_SLOTS && used[slot]) slot++;
    if (slot == PROGRAM_SLOTS) return false;
    used[slot] = true;
    slot_of[i] = code->slot = slot;
    if (slot >= p->n_slots) p->n_slots = slot + 1;
  }
  p->out_slot = slot_of[p->n_code - 1];
  return true;
}

static bool is_streamed(const compiler_t* c, int operand) {
  if (operand < 0 || operand >= CPU_MAX_STREAMS) return false;
  const int64_t step = c->p->walks[operand].strides[c->p->rank - 1];
  return assay_type_is_kernel_float(c->p->streams[operand].type) && (step == 0 || step == 1);
}

// Instruction i as a link: it takes what the one before it has made, the first one a stream, and
// perhaps one more stream.
static bool to_link(compiler_t* c, size_t i) {
  cpu_program_t* p = c->p;
  const int* o = c->operand[i];
  cpu_link_t* l = &p->links[i];
  *l = (cpu_link_t){.stream = -1,
                    .param = {p->code[i].param[0], p->code[i].param[1]},
                    .call = p->code[i].function};
  if (i + 1 == p->n_code) {
    const assay_type_t type = c->l->out[0].type;
    l->call = cpu_function_before(l->call, type);
    l->use = type == ASSAY_TYPE_FLOAT16    ? CPU_V_FLOAT16
             : type == ASSAY_TYPE_BFLOAT16 ? CPU_V_BFLOAT16
                                           : CPU_V_FLOAT32;
  }
  l->kind = cpu_link_kind(p->code[i].function, l->use);
  const bool two = l->kind == CPU_LINK_ADD || l->kind == CPU_LINK_SUB || l->kind == CPU_LINK_MUL;
  if (l->kind == CPU_LINK_SWISH && l->param[0] == 0) l->kind = CPU_LINK_CALL;
  if (o[2] >= 0 || two != (o[1] >= 0)) return false;
  const int made = CPU_MAX_STREAMS + (int)i - 1;
  int at = o[0], other = o[1];
  if (i && at != made && l->kind != CPU_LINK_SUB) at = o[1], other = o[0];
  if (two && !is_streamed(c, other)) return false;
  if (two) l->stream = other;
  if (i) return at == made;
  p->first_stream = at;
  return is_streamed(c, at);
}

static void find_chain(compiler_t* c) {
  bool ok = cpu_has_chains() && assay_type_is_kernel_float(c->l->out[0].type);
  for (size_t i = 0; ok && i < c->p->n_code; i++) ok = to_link(c, i);
  c->p->n_links = ok ? (int)c->p->n_code : 0;
}

static bool finish(compiler_t* c) {
  cpu_program_t* p = c->p;
  merge_dims(c);
  for (size_t s = 0; s < p->n_streams; s++) find_access(p, &p->walks[s]);
  choose_tiles(p);
  find_chain(c);
  p->code[p->n_code - 1].function =
      cpu_function_before(p->code[p->n_code - 1].function, c->l->out[0].type);
  return assign_slots(c);
}

// ---- entry ----------------------------------------------------------------------------------

assay_status_t cpu_program_make(const assay_sized_layer_t* l, size_t first,
                                const assay_value_t* result, assay_layout_t layout,
                                cpu_program_t** out) {
  compiler_t c = {.l = l, .result = result, .layout = layout};
  *out = NULL;
  ASSAY_TRY(ASSAY_NEW(&c.p));
  bool ok = l->n_out >= 1 && l->out[0].value &&
            (assay_type_is_kernel_float(l->out[0].type) || l->out[0].type == ASSAY_TYPE_BOOL);
  for (size_t i = 1; i < l->n_out; i++) ok &= !l->out[i].value;
  c.rank = ok ? l->out[0].rank : 0;
  for (int i = 0; i < c.rank; i++) c.dims[i] = l->out[0].dims[memory_order(&c, i)];
  const size_t n = l->layer->n_nodes;
  for (size_t i = first; ok && i < n; i++)
    ok = type_is_known(l->layer->nodes[i], n == 1) && compile_node(&c, l->layer->nodes[i]);
  if (ok && first == n)
    ok = emit_one(&c, cpu_f_identity, value_of(&c, result, false), NULL, 1) >= 0;
  ok = ok && c.p->n_code && finish(&c);
  if (!ok || c.status) return cpu_program_destroy(c.p), c.status;
  *out = c.p;
  return NULL;
}

void cpu_program_destroy(cpu_program_t* p) {
  for (size_t i = 0; p && i < p->n_streams; i++) assay_free(p->streams[i].constant);
  assay_free(p);
}

bool cpu_program_reads(const cpu_program_t* p, int input) {
  for (size_t i = 0; i < p->n_streams; i++)
    if (!p->streams[i].constant && p->streams[i].input == input) return true;
  return false;
}

int cpu_program_first_whole(const cpu_program_t* p) {
  for (size_t i = 0; i < p->n_streams; i++)
    if (!p->streams[i].constant && p->streams[i].input >= 0 && p->walks[i].access == PROGRAM_WHOLE)
      return p->streams[i].input;
  return -1;
}

size_t cpu_program_n_streams(const cpu_program_t* p) { return p->n_streams; }
const cpu_stream_t* cpu_program_stream(const cpu_program_t* p, size_t i) { return &p->streams[i]; }

int cpu_program_in_place(const cpu_program_t* p, assay_type_t type) {
  for (size_t s = 0; s < p->n_streams; s++)
    if (p->walks[s].access == PROGRAM_WHOLE && p->streams[s].input >= 0 &&
        !p->streams[s].constant && p->streams[s].type == type)
      return p->streams[s].input;
  return -1;
}

const cpu_link_t* cpu_program_only_link(const cpu_program_t* p) {
  const bool only = p->n_links == 1 && p->n_streams == 1 && p->streams[0].input == PROGRAM_RESULT;
  return only ? &p->links[0] : NULL;
}

assay_status_t cpu_program_from(const assay_sized_layer_t* l, size_t first, assay_layout_t layout,
                                assay_kernel_t* k, cpu_program_t** program, bool* ok) {
  if (l->layer->n_nodes == first) return NULL;
  ASSAY_TRY(cpu_program_make(l, first, l->layer->nodes[first - 1]->outputs[0], layout, program));
  *ok = *program;
  for (size_t i = 0; *program && i < cpu_program_n_streams(*program); i++) {
    const cpu_stream_t* s = cpu_program_stream(*program, i);
    if (s->constant || s->input < 0) continue;
    // One input in one form.
    if (k->in[s->input].type) *ok = false;
    k->in[s->input] = (assay_storage_t){s->type, s->layout};
  }
  return NULL;
}

assay_status_t cpu_program_behind(const assay_sized_layer_t* l, assay_layout_t layout,
                                  assay_kernel_t* k, cpu_program_t** program, bool* ok) {
  return cpu_program_from(l, 1, layout, k, program, ok);
}
