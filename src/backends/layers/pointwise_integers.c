// Nodes on integers as instructions.
#include <string.h>

#include "backends/layers/pointwise_internal.h"

#define INT(name) POINTWISE_INT_##name

typedef struct int_known {
  const char* op;
  int n_in;  // 0: as many as there are, from the first to the last
  pointwise_integer_t function, of_uint64;
} int_known_t;

static const int_known_t known[] = {
    {"Add", 2, INT(ADD), INT(ADD)},
    {"Sub", 2, INT(SUB), INT(SUB)},
    {"Mul", 2, INT(MUL), INT(MUL)},
    {"Div", 2, INT(QUOTIENT), INT(QUOTIENT_U)},
    {"Max", 0, INT(LARGER), INT(LARGER_U)},
    {"Min", 0, INT(SMALLER), INT(SMALLER_U)},
    {"Identity", 1, INT(IDENTITY), INT(IDENTITY)},
    {"Neg", 1, INT(NEGATIVE), INT(NEGATIVE)},
    {"Abs", 1, INT(ABSOLUTE), INT(IDENTITY)},
    {"Sign", 1, INT(SIGN), INT(SIGN_U)},
    {"Relu", 1, INT(RELU), INT(IDENTITY)},
    {"Equal", 2, INT(EQUAL), INT(EQUAL)},
    {"Less", 2, INT(LESS), INT(LESS_U)},
    {"LessOrEqual", 2, INT(LESS_OR_EQUAL), INT(LESS_OR_EQUAL_U)},
    {"Greater", 2, INT(GREATER), INT(GREATER_U)},
    {"GreaterOrEqual", 2, INT(GREATER_OR_EQUAL), INT(GREATER_OR_EQUAL_U)},
    {"Where", 3, INT(SELECT), INT(SELECT)},
    {"BitwiseAnd", 2, INT(BITS_AND), INT(BITS_AND)},
    {"BitwiseOr", 2, INT(BITS_OR), INT(BITS_OR)},
    {"BitwiseXor", 2, INT(BITS_XOR), INT(BITS_XOR)},
    {"BitwiseNot", 1, INT(BITS_NOT), INT(BITS_NOT)},
};

static assay_type_t type_of(const pointwise_compiler_t* c, const assay_node_t* n, size_t input) {
  const assay_operand_t* o = input < n->n_inputs ? assay_sized_input(c->l, n->inputs[input]) : NULL;
  return o ? o->type : ASSAY_TYPE_UNDEFINED;
}

static int value(pointwise_compiler_t* c, const assay_node_t* n, size_t input) {
  const assay_type_t t = type_of(c, n, input);
  if (!assay_type_is_integer(t) && t != ASSAY_TYPE_BOOL) return -1;
  return pointwise_value(c, n->inputs[input], true);
}

static int two(pointwise_compiler_t* c, int function, int a, int b, const float* param) {
  return pointwise_emit(c, function, 2, (const int[]){a, b}, param, 4);
}

// Source: ONNX Mod 10 and 13: the divisor's sign, or C's with fmod.
static int compile_mod(pointwise_compiler_t* c, const assay_node_t* n, bool is_uint64) {
  const bool of_c = assay_attr_i64(n, "fmod", 0);
  const int f = is_uint64 ? INT(MODULO_U) : of_c ? INT(REMAINDER) : INT(MODULO);
  return n->n_inputs == 2 ? two(c, f, value(c, n, 0), value(c, n, 1), NULL) : -1;
}

static int compile_shift(pointwise_compiler_t* c, const assay_node_t* n) {
  const assay_type_t t = type_of(c, n, 0);
  const bool left = strcmp(assay_attr_str(n, "direction", ""), "LEFT") == 0;
  const float bits[2] = {(float)assay_type_bits(t), 0};
  const int f = left                      ? INT(SHIFT_LEFT)
                : assay_type_is_signed(t) ? INT(SHIFT_RIGHT)
                                          : INT(SHIFT_RIGHT_U);
  return n->n_inputs == 2 ? two(c, f, value(c, n, 0), value(c, n, 1), bits) : -1;
}

// Limits are inputs since Clip-11; integers came with 12. Min(max, Max(x, min)).
static int compile_clip(pointwise_compiler_t* c, const assay_node_t* n, bool is_uint64) {
  int at = value(c, n, 0);
  if (!n->schema || n->schema->since < 11) return -1;
  if (n->n_inputs > 1 && n->inputs[1])
    at = two(c, is_uint64 ? INT(LARGER_U) : INT(LARGER), at, value(c, n, 1), NULL);
  if (n->n_inputs > 2 && n->inputs[2])
    at = two(c, is_uint64 ? INT(SMALLER_U) : INT(SMALLER), at, value(c, n, 2), NULL);
  return at < POINTWISE_STREAMS ? pointwise_emit(c, INT(IDENTITY), 1, &at, NULL, 1) : at;
}

static int compile_cast(pointwise_compiler_t* c, const assay_node_t* n) {
  const assay_type_t from = type_of(c, n, 0);
  const bool floats = assay_type_is_kernel_float(from) || pointwise_is_float8(from);
  const int x = floats ? pointwise_value(c, n->inputs[0], false) : value(c, n, 0);
  const bool to_bool = c->l->out[0].type == ASSAY_TYPE_BOOL;
  const int f = floats ? INT(OF_FLOAT) : to_bool ? INT(IS_TRUE) : INT(IDENTITY);
  return pointwise_emit(c, f, 1, &x, NULL, 1);
}

// From the first input to the last.
static int compile_variadic(pointwise_compiler_t* c, const assay_node_t* n, int function) {
  int at = value(c, n, 0);
  if (n->n_inputs == 1) at = pointwise_emit(c, INT(IDENTITY), 1, &at, NULL, 1);
  for (size_t i = 1; i < n->n_inputs; i++) at = two(c, function, at, value(c, n, i), NULL);
  return at;
}

int pointwise_int_node(pointwise_compiler_t* c, const assay_node_t* n) {
  const char* op = n->op_type;
  const bool is_uint64 = type_of(c, n, strcmp(op, "Where") == 0 ? 1 : 0) == ASSAY_TYPE_UINT64;
  int operands[3];
  if (*n->domain) return -1;
  if (strcmp(op, "Mod") == 0) return compile_mod(c, n, is_uint64);
  if (strcmp(op, "BitShift") == 0) return compile_shift(c, n);
  if (strcmp(op, "Clip") == 0) return compile_clip(c, n, is_uint64);
  if (strcmp(op, "Cast") == 0 || strcmp(op, "CastLike") == 0) return compile_cast(c, n);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const int f = (int)(is_uint64 ? known[i].of_uint64 : known[i].function);
    if (strcmp(known[i].op, op) != 0) continue;
    if (!known[i].n_in) return compile_variadic(c, n, f);
    if (n->n_inputs != (size_t)known[i].n_in) return -1;
    for (int k = 0; k < known[i].n_in; k++) operands[k] = value(c, n, (size_t)k);
    return pointwise_emit(c, f, known[i].n_in, operands, NULL, 4);
  }
  return -1;
}
