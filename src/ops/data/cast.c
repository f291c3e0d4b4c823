// Conversions between element types: Cast CastLike BitCast.
//
// In truth, a float format of 16 bits or more takes the value as it is; formats of 8 bits and fewer
// are quantization, done as written (or not at all in truth 'unquantized'). Integers truncate the
// float64 value. Native mode has its inputs rounded already and rounds the result afterwards.
#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "ops/bound_parts.h"
#include "ops/content.h"
#include "ops/dd_array.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"
#include "ops/number_text.h"
#include "ops/quant/quant.h"

typedef struct cast {
  const assay_node_t* node;
  const assay_tensor_t* x;
  assay_tensor_t* y;
  bool saturate;  // to 8-bit floats: past the largest value, stay there
  assay_e8m0_mode_t e8m0;
  bool odd;    // integers to floats: so that a second rounding does no harm
  bool as_is;  // small floats keep the unrounded value
} cast_t;

// ---- float to float ----------------------------------------------------------------------------

// Rounds n values to a float format of 8 bits or fewer. Those without NaN and infinity (6 and 4
// bits) saturate always: `saturate` is about 8-bit formats only (ONNX Cast-28).
static void round_small(const cast_t* p, const double* x, double* y, int64_t n) {
  assay_type_t type = p->y->type;
  if (type == ASSAY_TYPE_FLOAT8E8M0) {
    assay_overflow_t overflow = p->saturate ? ASSAY_OVERFLOW_SATURATE : ASSAY_OVERFLOW_IEEE;
    for (int64_t i = 0; i < n; i++) y[i] = assay_format_round_e8m0(x[i], p->e8m0, overflow);
    return;
  }
  assay_format_t format = assay_type_format(type);
  bool saturate = p->saturate || !assay_format_info(format)->has_nan;
  assay_format_round_n(format, x, y, (size_t)n,
                       saturate ? ASSAY_OVERFLOW_SATURATE : ASSAY_OVERFLOW_IEEE);
}

static bool is_small_float(assay_type_t type) {
  return assay_type_is_float(type) && assay_type_bits(type) <= 8;
}

static void float_chunk(const void* user, int64_t first, int64_t n) {
  const cast_t* p = user;
  round_small(p, assay_f64(p->x) + first, assay_f64(p->y) + first, n);
}

// ---- integers ----------------------------------------------------------------------------------

static void to_int_chunk(const void* user, int64_t first, int64_t n) {
  const cast_t* p = user;
  assay_type_t type = p->y->type;
  const double* x = assay_f64(p->x) + first;
  int64_t* y = assay_i64(p->y) + first;
  for (int64_t i = 0; i < n; i++) y[i] = assay_f64_to_int(type, x[i]);
}

// The float64 next to x with an odd last bit where x does not fit ('round to odd'): rounding that
// again to 24 bits or fewer gives what rounding x once would. Source: S. Boldo and G. Melquiond,
// Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd (2008).
static double to_odd(assay_type_t type, int64_t x) {
  bool negative = type != ASSAY_TYPE_UINT64 && x < 0;
  uint64_t magnitude = negative ? -assay_as_u64(x) : assay_as_u64(x);
  if (magnitude >> 53) {
    int drop = 11 - __builtin_clzll(magnitude);
    uint64_t lost = magnitude & ((UINT64_C(1) << drop) - 1);
    magnitude = (magnitude >> drop | (lost != 0)) << drop;
  }
  return negative ? -(double)magnitude : (double)magnitude;
}

static void from_int_chunk(const void* user, int64_t first, int64_t n) {
  const cast_t* p = user;
  assay_type_t type = p->x->type;
  const int64_t* x = assay_i64(p->x) + first;
  double* y = assay_f64(p->y) + first;
  for (int64_t i = 0; i < n; i++) y[i] = p->odd ? to_odd(type, x[i]) : assay_i64_to_f64(type, x[i]);
  if (is_small_float(p->y->type) && !p->as_is) round_small(p, y, y, n);
}

static void int_chunk(const void* user, int64_t first, int64_t n) {
  const cast_t* p = user;
  int64_t* y = assay_i64(p->y) + first;
  memcpy(y, assay_i64(p->x) + first, (size_t)n * sizeof *y);
  assay_wrap_n(p->y->type, y, n);
}

// ---- strings -----------------------------------------------------------------------------------

static assay_status_t to_string(const cast_t* p, int64_t i) {
  char text[ASSAY_NUMBER_TEXT];
  assay_type_t type = p->x->type;
  if (p->x->store == ASSAY_STORE_STR) {
    assay_string_t s = assay_strings(p->x)[i];
    return assay_tensor_set_string(p->y, i, s.text, s.len);
  }
  if (p->x->store == ASSAY_STORE_F64) {
    // Digits are those of the declared type, in truth too: of the value rounded to it.
    double x = assay_format_round(assay_type_format(type), assay_f64(p->x)[i], ASSAY_OVERFLOW_IEEE);
    assay_number_print(type, x, text);
  } else if (type == ASSAY_TYPE_BOOL) {
    strcpy(text, assay_i64(p->x)[i] ? "True" : "False");  // as numpy
  } else if (type == ASSAY_TYPE_UINT64) {
    snprintf(text, sizeof text, "%llu", (unsigned long long)assay_as_u64(assay_i64(p->x)[i]));
  } else {
    snprintf(text, sizeof text, "%lld", (long long)assay_i64(p->x)[i]);
  }
  return assay_tensor_set_string(p->y, i, text, strlen(text));
}

static bool equals(assay_string_t s, const char* word) {
  return s.len == strlen(word) && strncasecmp(s.text, word, s.len) == 0;
}

// ONNX leaves text that is not a number open: it is an error here.
static assay_status_t from_string(const cast_t* p, int64_t i) {
  assay_string_t s = assay_strings(p->x)[i];
  assay_type_t type = p->y->type;
  double x = 0;
  int64_t whole = 0;
  bool is_bool = type == ASSAY_TYPE_BOOL && (equals(s, "true") || equals(s, "false"));
  if (is_bool) {
    assay_i64(p->y)[i] = equals(s, "true");
  } else if (p->y->store == ASSAY_STORE_I64 && assay_integer_parse(s, &whole)) {
    assay_i64(p->y)[i] = whole;
    assay_wrap_n(type, assay_i64(p->y) + i, 1);
  } else if (!assay_number_parse(s, &x)) {
    return ASSAY_NODE_ERROR(p->node, ASSAY_INVALID_ARGUMENT,
                            "element %lld of the input is '%.*s', which is not a number",
                            (long long)i, s.len < 100 ? (int)s.len : 100, s.len ? s.text : "");
  } else if (p->y->store == ASSAY_STORE_I64) {
    assay_i64(p->y)[i] = assay_f64_to_int(type, x);
  } else {
    double* y = &assay_f64(p->y)[i];
    *y = x;
    if (is_small_float(type) && !p->as_is) round_small(p, y, y, 1);
  }
  return NULL;
}

// ---- Cast --------------------------------------------------------------------------------------

// Whether every value of a canonical integer type is a canonical value of another, bits kept.
static bool int_holds(assay_type_t to, assay_type_t from) {
  if (to == from || assay_type_bits(to) == 64) return true;
  if (to == ASSAY_TYPE_BOOL) return false;
  int width_to = assay_type_bits(to),
      width_from = from == ASSAY_TYPE_BOOL ? 1 : assay_type_bits(from);
  if (assay_type_is_signed(from)) return assay_type_is_signed(to) && width_to >= width_from;
  return assay_type_is_signed(to) ? width_to > width_from : width_to >= width_from;
}

static assay_status_t cast(assay_eval_t* c, assay_type_t to) {
  assay_tensor_t *x = c->in[0], *same = NULL;
  const char* mode = assay_attr_str(c->node, "round_mode", "up");
  cast_t p = {.node = c->node,
              .x = x,
              .saturate = assay_attr_i64(c->node, "saturate", 1) != 0,
              .odd = c->mode != ASSAY_MODE_TRUTH && to != ASSAY_TYPE_DOUBLE,
              .as_is = c->mode != ASSAY_MODE_NATIVE && c->unquantized};
  p.e8m0 = ASSAY_E8M0_UP;
  if (strcmp(mode, "down") == 0)
    p.e8m0 = ASSAY_E8M0_DOWN;
  else if (strcmp(mode, "nearest") == 0)
    p.e8m0 = ASSAY_E8M0_NEAREST;
  else if (strcmp(mode, "up") != 0)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "attribute round_mode is '%s'; it must be 'up', 'down' or 'nearest'",
                            mode);
  // Real numbers in place of integers (quant.h) stay so in any integer type that can hold them.
  bool real = c->unquantized && assay_quant_is_real(c->node->inputs[0], x);
  if (real && to != ASSAY_TYPE_BOOL && to != ASSAY_TYPE_STRING) {
    ASSAY_TRY(assay_tensor_retype(x, assay_quant_type(c, to), &same));
    assay_eval_set(c, 0, same);
    assay_tensor_release(same);
    return NULL;
  }
  if (real) {
    ASSAY_TRY(assay_quant_settle(x, c->node->inputs[0]->type->elem, &same));
    assay_tensor_release(c->in[0]);
    p.x = c->in[0] = x = same;
  }
  assay_store_t from = x->store, store = assay_type_store(to);
  if (from == ASSAY_STORE_C128 || store == ASSAY_STORE_C128)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "it does not cast %s to %s",
                            assay_type_name(x->type), assay_type_name(to));
  // What keeps all its values shares the bytes.
  bool keeps = false;
  if (from == ASSAY_STORE_F64 && store == from) {
    keeps = p.as_is || !is_small_float(to) || (to == x->type && c->mode != ASSAY_MODE_TRUTH);
  } else if (from == ASSAY_STORE_I64 && store == from) {
    keeps = int_holds(to, x->type);
  }
  if (keeps) {
    ASSAY_TRY(assay_tensor_retype(x, to, &same));
    assay_eval_set(c, 0, same);
    assay_tensor_release(same);
    return NULL;
  }
  ASSAY_TRY(assay_eval_output(c, 0, to, x->rank, x->dims, &p.y));
  if (from == ASSAY_STORE_STR || store == ASSAY_STORE_STR) {
    assay_status_t st = NULL;
    for (int64_t i = 0; !st && i < x->size; i++)
      st = store == ASSAY_STORE_STR ? to_string(&p, i) : from_string(&p, i);
    return st;
  }
  assay_chunk_fn* f = from == ASSAY_STORE_F64 ? (store == from ? float_chunk : to_int_chunk)
                                              : (store == from ? int_chunk : from_int_chunk);
  assay_chunks_run(x->size, 2, f, &p);
  return NULL;
}

// The type that the attribute `to` names, by number, or as text in Cast-1; checked against the
// schema.
static assay_status_t type_of_attr(const assay_node_t* node, assay_type_t* out) {
  const assay_attr_t* a = assay_node_attr(node, "to");
  char text[64] = "missing";
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  if (a && a->type == ASSAY_ATTR_STRING) {
    snprintf(text, sizeof text, "'%.40s'", a->u.s.text);
    char name[41] = {0};
    for (size_t i = 0; i < a->u.s.len && i < sizeof name - 1; i++) {
      char ch = a->u.s.text[i];
      name[i] = ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
    }
    type = assay_type_parse(name);
  } else if (a && a->type == ASSAY_ATTR_INT) {
    snprintf(text, sizeof text, "%lld", (long long)a->u.i);
    if (a->u.i > 0 && a->u.i < ASSAY_TYPE_COUNT) type = (assay_type_t)a->u.i;
  }
  const assay_param_t* p = node->schema ? assay_schema_output(node->schema, 0) : NULL;
  bool allowed = type && (!p || p->types.tensor >> type & 1);
  if (!allowed)
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "attribute to is %s%s%s; it takes %s",
                            text, type ? ", " : "", type ? assay_type_name(type) : "",
                            p ? assay_typeset_text(&p->types, (char[512]){0}, 512) : "a type");
  *out = type;
  return NULL;
}

static assay_status_t cast_eval(assay_eval_t* c) {
  assay_type_t to;
  ASSAY_TRY(type_of_attr(c->node, &to));
  return cast(c, to);
}

// The type of the second input as it is declared: in truth 'unquantized' the tensor may have
// another.
static assay_status_t cast_like_eval(assay_eval_t* c) {
  const assay_valtype_t* like = c->node->inputs[1]->type;
  return cast(c, like && like->elem ? like->elem : c->in[1]->type);
}

static assay_status_t infer_as(assay_infer_t* c, assay_type_t to) {
  assay_shape_t shape = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_set(c, 0, to, &shape));
  // Whole numbers stay what they are in any type that holds them; content.c sees to the latter.
  // bool and narrow integers would wrap sizes.
  bool wide = to == ASSAY_TYPE_INT64 || to == ASSAY_TYPE_INT32 || to == ASSAY_TYPE_UINT64 ||
              to == ASSAY_TYPE_FLOAT || to == ASSAY_TYPE_DOUBLE;
  return wide ? assay_content_same(c, 0) : NULL;
}

static assay_status_t cast_infer(assay_infer_t* c) {
  assay_type_t to;
  ASSAY_TRY(type_of_attr(c->node, &to));
  return infer_as(c, to);
}

static assay_status_t cast_like_infer(assay_infer_t* c) {
  return infer_as(c, assay_infer_elem(c, 1));
}

// ---- BitCast -----------------------------------------------------------------------------------

// The bits are those of the value rounded to its declared type, in truth as well.
static void bit_cast_chunk(const void* user, int64_t first, int64_t n) {
  enum { STEP = 256 };  // a multiple of 8: packed bits end on bytes
  const cast_t* p = user;
  size_t from = assay_store_elem_bytes(p->x->store), to = assay_store_elem_bytes(p->y->store);
  unsigned char packed[STEP * 16];
  for (int64_t i = first; i < first + n; i += STEP) {
    int64_t m = first + n - i < STEP ? first + n - i : STEP;
    const char* x = (const char*)p->x->data + (size_t)i * from;
    memset(packed, 0, sizeof packed);
    assay_pack(p->x->type, x, m, packed, ASSAY_OVERFLOW_IEEE);
    assay_unpack(p->y->type, packed, 0, m, (char*)p->y->data + (size_t)i * to);
  }
}

static assay_status_t check_bits(const assay_node_t* node, assay_type_t from, assay_type_t to) {
  if (from && from != ASSAY_TYPE_STRING && assay_type_bits(from) == assay_type_bits(to))
    return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "the input is %s (%d bits) and attribute to is %s (%d bits); they must "
                          "have the same number of bits",
                          assay_type_name(from), assay_type_bits(from), assay_type_name(to),
                          assay_type_bits(to));
}

static assay_status_t bit_cast_eval(assay_eval_t* c) {
  cast_t p = {.node = c->node, .x = c->in[0]};
  assay_type_t to;
  ASSAY_TRY(type_of_attr(c->node, &to));
  if (c->unquantized && assay_quant_is_real(c->node->inputs[0], c->in[0])) {
    assay_tensor_t* settled = NULL;
    ASSAY_TRY(assay_quant_settle(c->in[0], c->node->inputs[0]->type->elem, &settled));
    assay_tensor_release(c->in[0]);
    p.x = c->in[0] = settled;
  }
  ASSAY_TRY(check_bits(c->node, p.x->type, to));
  ASSAY_TRY(assay_eval_output(c, 0, to, p.x->rank, p.x->dims, &p.y));
  assay_chunks_run(p.x->size, 4, bit_cast_chunk, &p);
  return NULL;
}

static assay_status_t bit_cast_infer(assay_infer_t* c) {
  assay_type_t to, from = assay_infer_elem(c, 0);
  ASSAY_TRY(type_of_attr(c->node, &to));
  if (from) ASSAY_TRY(check_bits(c->node, from, to));
  assay_shape_t shape = assay_infer_shape(c, 0);
  return assay_infer_set(c, 0, to, &shape);
}

// Of inexact numbers: what is true at both ends may be 0 in between.
static assay_status_t truth_value_bound(assay_bound_t* c) {
  double* limits[2];
  if (assay_bound_inputs_exact(c)) return NULL;
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  for (int probable = 0; limits[0] && probable < 2; probable++) {
    const double* e = assay_bound_in(c, 0, probable);
    for (int64_t k = 0; k < c->out[0]->size; k++)
      limits[probable][k] = e[k] > 0 && fabs(assay_elem_f64(c->in[0], k)) <= e[k];
  }
  return NULL;
}

// Storing rounds; before that only an integer that does not fit the arithmetic is rounded.
static assay_status_t cast_bound(assay_bound_t* c) {
  const assay_type_t to = c->out[0]->type;
  if (to == ASSAY_TYPE_BOOL) return truth_value_bound(c);
  if (!assay_type_is_float(to) || assay_type_bits(to) < 16 || c->out[0]->store != ASSAY_STORE_F64)
    return assay_bound_exact(c);
  return c->in[0]->store == ASSAY_STORE_I64 ? assay_bound_one_rounding(c) : assay_bound_exact(c);
}

// ---- in twice the precision ---------------------------------------------------------------------

static assay_dd_t truncated(assay_dd_t x) {
  if (x.high >= 0) return assay_dd_floor(x);
  return assay_dd_negated(assay_dd_floor(assay_dd_negated(x)));
}

// Truth of a cast to floats of 16 bits or more is the number itself.
static void cast_dd(assay_dd_eval_t* c) {
  const assay_valtype_t* to = c->node->outputs[0]->type;
  const assay_pair_t* x = assay_dd_in(c, 0);
  const assay_pair_t* in[] = {x, assay_dd_in(c, 1)};
  const bool is_float = to && assay_type_is_float(to->elem);
  if (is_float && assay_type_bits(to->elem) >= 16) {
    assay_dd_put(c, 0, x);
  } else if (x->low && (!to || is_float || to->elem == ASSAY_TYPE_STRING)) {
    assay_dd_unsupported(c, "a cast to this type is not known");
  } else {
    // The test of being 0 is told by the high part.
    if (x->low && to->elem != ASSAY_TYPE_BOOL) in[0] = assay_dd_map1(c, truncated, x);
    assay_dd_whole(c, in);
  }
}

enum { FLAGS = ASSAY_OP_POINTWISE | ASSAY_OP_KEEPS_TYPE };

// Later versions add types and attributes (saturate in 19, round_mode in 24) whose defaults are
// what earlier ones do. Output 0 is marked as discrete since it may be an integer; the account
// looks at its type.
const assay_op_t assay_ops_cast[] = {
    {.domain = "",
     .name = "Cast",
     .since = 1,
     .flags = FLAGS,
     .discrete = 1,
     .infer = cast_infer,
     .eval = cast_eval,
     .bound = cast_bound,
     .dd = cast_dd},
    {.domain = "",
     .name = "CastLike",
     .since = 15,
     .flags = FLAGS,
     .discrete = 1,
     .infer = cast_like_infer,
     .eval = cast_like_eval,
     .bound = cast_bound,
     .dd = cast_dd},
    {.domain = "",
     .name = "BitCast",
     .since = 26,
     .flags = FLAGS,
     .infer = bit_cast_infer,
     .eval = bit_cast_eval,
     .bound = assay_bound_exact},
    {0},
};
