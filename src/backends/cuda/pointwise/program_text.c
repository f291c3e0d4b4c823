// The texts of programs.
#include <stdio.h>
#include <string.h>

#include "backends/cuda/pointwise/program.h"

static const char* word_name(assay_type_t t) {
  switch (t) {
    case ASSAY_TYPE_FLOAT16:
      return "f16";
    case ASSAY_TYPE_BFLOAT16:
      return "bf16";
    case ASSAY_TYPE_FLOAT8E4M3FN:
      return "e4m3";
    case ASSAY_TYPE_FLOAT8E4M3FNUZ:
      return "e4m3z";
    case ASSAY_TYPE_FLOAT8E5M2:
      return "e5m2";
    case ASSAY_TYPE_FLOAT8E5M2FNUZ:
      return "e5m2z";
    case ASSAY_TYPE_BOOL:
      return "b8";
    case ASSAY_TYPE_UINT8:
      return "u8";
    case ASSAY_TYPE_INT8:
      return "s8";
    case ASSAY_TYPE_UINT16:
      return "u16";
    case ASSAY_TYPE_INT16:
      return "s16";
    case ASSAY_TYPE_UINT32:
      return "u32";
    case ASSAY_TYPE_INT32:
      return "s32";
    case ASSAY_TYPE_UINT64:
      return "u64";
    case ASSAY_TYPE_INT64:
      return "s64";
    default:
      return "f32";
  }
}

// The functions of vmath, and which of them have a form in float32 (kernels/vmath.h).
static const struct {
  const char* name;
  bool quick;
} vmath[] = {
#define VFAST(name, in_float32, in_float64) {#name, true},
#define VFUNCTION(name, n_in, in_float64) {#name, false},
#include "backends/vmath/functions.inc"
#undef VFAST
#undef VFUNCTION
};

// The functions of vmath that have a rough form (kernels/rough.h).
static const char* const rough[] = {
#define ROUGH(name, roughly, finely) #name,
#include "backends/cuda/kernels/rough.inc"
#undef ROUGH
};

// Forms of the last function: whole; in float32 with what that leaves open, and what is open; and
// what a result of 16 bits lies between, of which open ones are found finely, or whole.
typedef enum form { WHOLE, QUICK, EXACTLY, ROUGHLY, FINELY } form_t;
static const struct {
  const char *prefix, *program, *result, *argument;  // what a program of it is given besides
  const char* type;
} forms[] = {[WHOLE] = {"", "program_of", "", "", "value_t"},
             [QUICK] = {"quick_", "program_quick", ", bool* open", ", open", "value_t"},
             [EXACTLY] = {"exactly_", "program_exactly", "", "", "value_t"},
             [ROUGHLY] = {"rough_", "program_rough", ", float* least", ", least", "value_t"},
             [FINELY] = {"fine_", "program_fine", ", float* slack", ", slack", "double"}};

// do_ADD, or one of vmath's in the form in which its result is used.
static void print_function(const pointwise_code_t* c, int f, bool last, form_t form,
                           assay_type_t out, assay_str_t* text) {
#define POINTWISE(name, n, expression) #name,
  static const char* const floats[] = {
#include "backends/layers/pointwise_functions.inc"
  };
#undef POINTWISE
#define POINTWISE_INTEGER(name, expression) #name,
  static const char* const integers[] = {
#include "backends/layers/pointwise_integers.inc"
  };
#undef POINTWISE_INTEGER
  static const char* const uses[] = {
      [CPU_V_FLOAT32] = "float", [CPU_V_FLOAT16] = "half", [CPU_V_BFLOAT16] = "bf16"};
  if (c->integers && f == POINTWISE_INT_OF_FLOAT)
    assay_str_printf(text, "to_%s_of", word_name(out));
  else if (c->integers)
    assay_str_printf(text, "do_%s", integers[f]);
  else if (f < POINTWISE_VMATH)
    assay_str_printf(text, "do_%s", floats[f]);
  else
    assay_str_printf(text, "%s_%s%s", uses[last ? pointwise_use(out) : CPU_V_FLOAT32],
                     forms[form].prefix, vmath[f - POINTWISE_VMATH].name);
}

// Whether the last function has a form in float32, which leaves few results open.
static bool is_quick(const pointwise_code_t* c) {
  const int last = c->n_code ? c->code[c->n_code - 1].function : 0;
  return !c->integers && last >= POINTWISE_VMATH && vmath[last - POINTWISE_VMATH].quick;
}

static bool is_rough(const pointwise_code_t* c, assay_type_t out) {
  const int last = c->n_code ? c->code[c->n_code - 1].function : 0;
  if (c->integers || last < POINTWISE_VMATH || pointwise_use(out) == CPU_V_FLOAT32) return false;
  for (size_t i = 0; i < sizeof rough / sizeof *rough; i++)
    if (strcmp(rough[i], vmath[last - POINTWISE_VMATH].name) == 0) return true;
  return false;
}

static bool is_scalar(const pointwise_stream_t* s) { return s->constant && s->n_constant == 1; }
static bool in_memory(const pointwise_stream_t* s) {
  return s->input != POINTWISE_RESULT && s->input != CUDA_PROGRAM_SECOND && !is_scalar(s);
}

// What elements are given of the result: as parameters, by the names of one element, and of element
// i of a vector.
typedef struct given {
  const char *parameters, *unused, *one, *each;
} given_t;
static const given_t whole_result = {"float x", "(void)x", "x", "x ? x[i] : 0"};
static const given_t halves = {"float x, float second", "(void)x, (void)second", "x, second",
                               "x[i], x[PROGRAM_VECTOR + i]"};

static const given_t* given_to(const pointwise_code_t* c) {
  for (size_t s = 0; s < c->n_streams; s++)
    if (c->streams[s].input == CUDA_PROGRAM_SECOND) return &halves;
  return &whole_result;
}

static void print_operand(const pointwise_code_t* c, int operand, assay_str_t* text) {
  if (operand < 0)
    assay_str_append(text, "0");
  else if (operand >= POINTWISE_STREAMS)
    assay_str_printf(text, "v%d", operand - POINTWISE_STREAMS);
  else if (c->streams[operand].input == POINTWISE_RESULT)
    assay_str_append(text, "x");
  else if (c->streams[operand].input == CUDA_PROGRAM_SECOND)
    assay_str_append(text, "second");
  else if (is_scalar(&c->streams[operand]))
    assay_str_printf(text, "p->scalars[%d]", operand);
  else
    assay_str_printf(text, "s%d", operand);
}

static unsigned bits_of(float x) {
  unsigned b;
  memcpy(&b, &x, sizeof b);
  return b;
}

static const char* value_type(const pointwise_code_t* c, const pointwise_stream_t* s) {
  return !c->integers || assay_type_is_float(s->type) ? "float" : "int64_t";
}

// What is done to one element.
static void print_code(const pointwise_code_t* c, assay_type_t out, form_t form,
                       assay_str_t* text) {
  const given_t* given = given_to(c);
  assay_str_printf(text, "DEVICE %s %s(%s, ", forms[form].type, forms[form].program,
                   given->parameters);
  for (size_t s = 0; s < c->n_streams; s++)
    if (in_memory(&c->streams[s]))
      assay_str_printf(text, "%s s%d, ", value_type(c, &c->streams[s]), (int)s);
  assay_str_printf(text, "const program_args_t* p%s) {\n  %s, (void)p;\n", forms[form].result,
                   given->unused);
  for (size_t i = 0; i < c->n_code; i++) {
    const pointwise_instruction_t* code = &c->code[i];
    const bool from_float = c->integers && code->function == POINTWISE_INT_OF_FLOAT;
    if (!from_float)
      assay_str_printf(text, "  const float p%d[2] = {float_of(0x%08xu), float_of(0x%08xu)};\n",
                       (int)i, bits_of(code->param[0]), bits_of(code->param[1]));
    const bool last = i + 1 == c->n_code;
    assay_str_printf(text, "  const %s v%d = ", last ? forms[form].type : "value_t", (int)i);
    print_function(c, code->function, last, last ? form : WHOLE, out, text);
    const bool simple = c->integers || code->function < POINTWISE_VMATH;
    const int n = from_float ? 1 : simple ? 3 : 2;
    for (int k = 0; k < n; k++) {
      assay_str_append(text, k ? ", " : "(");
      print_operand(c, code->operand[k], text);
    }
    if (!from_float) assay_str_printf(text, ", p%d", (int)i);
    assay_str_printf(text, "%s);\n", last ? forms[form].argument : "");
  }
  assay_str_printf(text, "  return v%d;\n}\n", (int)c->n_code - 1);
}

// ---- where elements are -------------------------------------------------------------------------

static bool needs_row(const pointwise_code_t* c, size_t s) {
  return in_memory(&c->streams[s]) && c->walks[s].access == POINTWISE_STRIDED;
}

// The first row of a moved stream's period that has the row.
static void print_periods(const pointwise_code_t* c, assay_str_t* text) {
  for (size_t s = 0; s < c->n_streams; s++) {
    if (c->walks[s].access != POINTWISE_MOVED) continue;
    if (c->streams[s].table.period == c->rows)
      assay_str_printf(text, "  const index_t m%d = 0;\n", (int)s);
    else
      assay_str_printf(text, "  const index_t m%d = row - row %% (index_t)p->periods[%d];\n",
                       (int)s, (int)s);
  }
}

// The row's number in each dimension, where a stream goes by it.
static void print_row(const pointwise_code_t* c, assay_str_t* text) {
  bool needed = false;
  print_periods(c, text);
  for (size_t s = 0; s < c->n_streams; s++) needed |= needs_row(c, s);
  if (!needed) return;
  assay_str_append(text, "  index_t rest = row;\n");
  for (int d = c->rank - 2; d > 0; d--)
    assay_str_printf(text,
                     "  const index_t r%d = rest %% (index_t)p->dims[%d];\n"
                     "  rest /= (index_t)p->dims[%d];\n  (void)r%d;\n",
                     d, d, d, d);
  if (c->rank > 1) assay_str_append(text, "  const index_t r0 = rest;\n  (void)r0;\n");
}

// Whether the last dimension is one of blocks.
static bool blocks_columns(const pointwise_code_t* c, size_t s) {
  return c->walks[s].block && c->walks[s].blocked == c->rank - 1;
}

// Whether a stream has more than one element in a vector.
static bool varies(const pointwise_code_t* c, size_t s, int vector) {
  return c->walks[s].strides[c->rank - 1] &&
         !(blocks_columns(c, s) && c->walks[s].block % vector == 0);
}

// The term of a dimension, whose number has a name.
static void print_term(const pointwise_code_t* c, size_t s, int d, const char* number,
                       assay_str_t* text) {
  const pointwise_walk_t* w = &c->walks[s];
  if (w->block && w->blocked == d)
    assay_str_printf(text, "%s / %lldu", number, (long long)w->block);
  else
    assay_str_append(text, number);
  if (d < c->rank - 1 || w->strides[d] != 1)
    assay_str_printf(text, " * (index_t)p->strides[%d][%d]", (int)s, d);
}

// column: what it is called; NULL: without its term.
static void print_place(const pointwise_code_t* c, size_t s, const char* column,
                        assay_str_t* text) {
  const pointwise_walk_t* w = &c->walks[s];
  const int last = c->rank - 1;
  if (w->access == POINTWISE_WHOLE) {
    assay_str_append(text, last ? "row * (index_t)p->columns + column" : "column");
    return;
  }
  if (w->access == POINTWISE_MOVED) {
    assay_str_printf(text, "(m%d + GLOBAL(const int32_t, p->rows[%d])[row - m%d]) * %s", (int)s,
                     (int)s, (int)s, "(index_t)p->columns + column");
    return;
  }
  bool any = false;
  for (int d = 0; d <= last; d++) {
    char number[16];
    snprintf(number, sizeof number, "r%d", d);
    if (!w->strides[d] || (d == last && !column)) continue;
    if (any) assay_str_append(text, " + ");
    print_term(c, s, d, d == last ? column : number, text);
    any = true;
  }
  if (!any) assay_str_append(text, "0");
}

// How an element of a vector is named: "[i]", or picked by a number that only the run knows.
typedef enum element_name { OF_ONE, OF_VECTOR, PICKED } element_name_t;

static void print_arguments(const pointwise_code_t* c, element_name_t name, int vector,
                            assay_str_t* text) {
  for (size_t s = 0; s < c->n_streams; s++) {
    if (!in_memory(&c->streams[s])) continue;
    if (name == OF_ONE || !varies(c, s, vector))
      assay_str_printf(text, "s%d, ", (int)s);
    else
      assay_str_printf(text, name == PICKED ? "pick(s%d, i), " : "s%d[i], ", (int)s);
  }
  assay_str_append(text, "p");
}

// An element by its place: what `of` gives for its operands.
static void print_one(const pointwise_code_t* c, const char* name, const char* of,
                      assay_str_t* text) {
  const given_t* given = given_to(c);
  assay_str_printf(text, "DEVICE value_t %s(%s, index_t row, index_t column, const ", name,
                   given->parameters);
  assay_str_append(text, "program_args_t* p) {\n  (void)row, (void)column;\n");
  print_row(c, text);
  for (size_t s = 0; s < c->n_streams; s++) {
    if (!in_memory(&c->streams[s])) continue;
    const char* word = word_name(c->streams[s].type);
    assay_str_printf(text, "  const %s s%d = of_%s(GLOBAL(const word_%s, p->streams[%d])[",
                     value_type(c, &c->streams[s]), (int)s, word, word, (int)s);
    print_place(c, s, "column", text);
    assay_str_append(text, "]);\n");
  }
  assay_str_printf(text, "  return %s(%s, ", of, given->one);
  print_arguments(c, OF_ONE, 0, text);
  assay_str_append(text, ");\n}\n");
}

// Whether a stream's vectors begin where vectors may: parts of inputs may begin anywhere.
static bool is_aligned(const pointwise_code_t* c, size_t s, int vector) {
  const int64_t* strides = c->walks[s].strides;
  bool aligned =
      !blocks_columns(c, s) && strides[c->rank - 1] == 1 && c->streams[s].offset % vector == 0;
  for (int d = 0; c->streams[s].cut && d < c->rank - 1; d++) aligned &= strides[d] % vector == 0;
  return aligned;
}

// The elements of a vector one by one.
static void print_each(const pointwise_code_t* c, size_t s, const char* type, assay_str_t* text) {
  assay_str_printf(text,
                   "  %s s%d[PROGRAM_VECTOR];\n  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++) "
                   "s%d[i] = of_%s(at%d[",
                   type, (int)s, (int)s, word_name(c->streams[s].type), (int)s);
  print_term(c, s, c->rank - 1, blocks_columns(c, s) ? "(column + (index_t)i)" : "(index_t)i",
             text);
  assay_str_append(text, "]);\n");
}

// How a vector's elements are made: at first, and those that this leaves open.
static form_t form_at_first(const pointwise_code_t* c, assay_type_t out) {
  if (given_to(c) == &halves) return WHOLE;
  return is_rough(c, out) ? ROUGHLY : is_quick(c) ? QUICK : WHOLE;
}

static void print_each_element(const pointwise_code_t* c, int vector, form_t form,
                               assay_str_t* text) {
  static const char* const begins[] = {
      [WHOLE] = "    y[i] = ",
      [QUICK] = "    bool open;\n    y[i] = ",
      [ROUGHLY] = "    y[i] = ",
  };
  static const char* const ends[] = {
      [WHOLE] = ");\n  }\n",
      [QUICK] = ", &open);\n    all_open |= (uint32_t)open << i;\n  }\n",
      [ROUGHLY] = ", &least[i]);\n  }\n",
  };
  assay_str_append(text, "  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++) {\n");
  assay_str_append(text, begins[form]);
  assay_str_printf(text, "%s(%s, ", forms[form].program, given_to(c)->each);
  print_arguments(c, OF_VECTOR, vector, text);
  assay_str_append(text, ends[form]);
}

// Of all elements at once whether any is open, then of each. Zeros of either sign are the same.
static void print_compared(assay_str_t* text) {
  assay_str_append(text,
                   "  uint32_t differ[PROGRAM_VECTOR / 2], any = 0;\n"
                   "  UNROLL for (int i = 0; i < PROGRAM_VECTOR / 2; i++) {\n"
                   "    differ[i] = PROGRAM_PAIRS(y[2 * i], y[2 * i + 1]) ^\n"
                   "                PROGRAM_PAIRS(least[2 * i], least[2 * i + 1]);\n"
                   "    any |= differ[i];\n  }\n"
                   "  if (!(any & 0x7fff7fffu)) return 0;\n"
                   "  UNROLL for (int i = 0; i < PROGRAM_VECTOR; i++)\n"
                   "    if (differ[i / 2] & 0x7fffu << 16 * (i % 2)) all_open |= 1u << i;\n"
                   "  return all_open;\n");
}

static void print_exactly(const pointwise_code_t* c, int vector, assay_str_t* text) {
  assay_str_append(text,
                   "  if (!all_open) return;\n"
                   "  ROLLED for (int i = 0; i < PROGRAM_VECTOR; i++) {\n"
                   "    if (!(all_open >> i & 1)) continue;\n"
                   "    const value_t made = program_exactly(x ? pick(x, i) : 0, ");
  print_arguments(c, PICKED, vector, text);
  assay_str_append(text, ");\n    put_at(made, i, y);\n  }\n");
}

static void print_elements(const pointwise_code_t* c, int vector, assay_type_t out,
                           assay_str_t* text) {
  const form_t form = form_at_first(c, out);
  if (form != WHOLE) assay_str_append(text, "  uint32_t all_open = 0;\n");
  if (form == ROUGHLY) assay_str_append(text, "  float least[PROGRAM_VECTOR];\n");
  print_each_element(c, vector, form, text);
  if (form == ROUGHLY) print_compared(text);
  if (form == QUICK) print_exactly(c, vector, text);
  assay_str_append(text, "}\n");
}

#define VECTOR_PARAMETERS \
  "(const float* x, index_t row, index_t column, const program_args_t* p, value_t* y) {\n"

// Streams that run along the row as vectors, others element by element or once.
static void print_vector(const pointwise_code_t* c, int vector, assay_type_t out,
                         assay_str_t* text) {
  assay_str_append(text, form_at_first(c, out) == ROUGHLY ? "DEVICE uint32_t program_at_once"
                                                          : "DEVICE void program_vector");
  assay_str_append(text, VECTOR_PARAMETERS "  (void)x, (void)row, (void)column;\n");
  print_row(c, text);
  for (size_t s = 0; s < c->n_streams; s++) {
    if (!in_memory(&c->streams[s])) continue;
    const char *word = word_name(c->streams[s].type), *type = value_type(c, &c->streams[s]);
    assay_str_printf(text, "  const word_%s* at%d = GLOBAL(const word_%s, p->streams[%d]) + (",
                     word, (int)s, word, (int)s);
    print_place(c, s, blocks_columns(c, s) && varies(c, s, vector) ? NULL : "column", text);
    assay_str_append(text, ");\n");
    if (!varies(c, s, vector))
      assay_str_printf(text, "  const %s s%d = of_%s(*at%d);\n", type, (int)s, word, (int)s);
    else if (is_aligned(c, s, vector))
      assay_str_printf(text, "  %s s%d[PROGRAM_VECTOR];\n  LOAD_VECTOR(%s, at%d, s%d)\n", type,
                       (int)s, word, (int)s, (int)s);
    else
      print_each(c, s, type, text);
  }
  print_elements(c, vector, out, text);
}

// An element by a form that may leave it open; then by another function.
static void print_settled(const pointwise_code_t* c, const char* name, form_t form,
                          const char* otherwise, assay_str_t* text) {
  assay_str_printf(text, "DEVICE value_t %s(float x, ", name);
  for (size_t s = 0; s < c->n_streams; s++)
    if (in_memory(&c->streams[s])) assay_str_printf(text, "float s%d, ", (int)s);
  assay_str_append(text, "const program_args_t* p) {\n  float least;\n");
  assay_str_append(
      text, form == FINELY ? "  float slack;\n  const double middle = " : "  const float most = ");
  assay_str_printf(text, "%s(x, ", forms[form].program);
  print_arguments(c, OF_ONE, 0, text);
  assay_str_append(
      text, form == FINELY
                ? ", &slack);\n"
                  "  const float most = fine_ends(middle, slack, &least);\n"
                  "  if (slack < 1 && TO_WORD(PROGRAM_OUT)(most) == TO_WORD(PROGRAM_OUT)(least)) "
                : ", &least);\n"
                  "  if (!((TO_WORD(PROGRAM_OUT)(most) ^ TO_WORD(PROGRAM_OUT)(least)) & 0x7fff)) ");
  assay_str_printf(text, "return most;\n  return %s(x, ", otherwise);
  print_arguments(c, OF_ONE, 0, text);
  assay_str_append(text, ");\n}\n");
}

static void print_settling(assay_str_t* text) {
  assay_str_append(text, "DEVICE void program_vector" VECTOR_PARAMETERS
                         "  const uint32_t open = program_at_once(x, row, column, p, y);\n"
                         "  ROLLED for (uint32_t left = open; left; left &= left - 1) {\n"
                         "    const int i = lowest_bit(left);\n"
                         "    put_at(program_later(x ? pick(x, i) : 0, row, column + (index_t)i, "
                         "p), i, y);\n  }\n}\n");
}

enum { SHORT = 4 };  // functions of a program that loops may hold several times

void cuda_program_print(const pointwise_code_t* c, const cuda_program_way_t* way,
                        assay_str_t* text) {
  bool is_short = c->n_code <= SHORT;
  for (size_t i = 0; i < c->n_code; i++)
    is_short &= c->integers || c->code[i].function < POINTWISE_VMATH;
  const char* pairs = c->integers                       ? ""
                      : way->out == ASSAY_TYPE_FLOAT16  ? "#define PROGRAM_PAIRS two_f16\n"
                      : way->out == ASSAY_TYPE_BFLOAT16 ? "#define PROGRAM_PAIRS two_bf16\n"
                                                        : "";
  assay_str_append(text, pairs);
  if (c->integers) assay_str_append(text, "#define PROGRAM_INTEGERS\n");
  assay_str_printf(text,
                   "#define PROGRAM_OUT %s\n#define PROGRAM_VECTOR %d\n#define PROGRAM_ROWS %d\n"
                   "#define PROGRAM_IS_SHORT %d\n"
                   "#include \"program_args.h\"\n#include \"functions.h\"\n"
                   "typedef %s index_t;\n",
                   word_name(way->out), way->vector, c->rank > 1, is_short,
                   way->short_index ? "uint32_t" : "int64_t");
  print_code(c, way->out, WHOLE, text);
  print_one(c, "program", forms[WHOLE].program, text);
  if (way->vector < 2) return;
  const form_t at_first = form_at_first(c, way->out);
  if (at_first != WHOLE) print_code(c, way->out, at_first, text);
  if (at_first == QUICK) print_code(c, way->out, EXACTLY, text);
  if (at_first == ROUGHLY) {
    assay_str_append(text, "#define PROGRAM_IS_ROUGH 1\n");
    print_code(c, way->out, FINELY, text);
    print_settled(c, "program_settled", FINELY, forms[WHOLE].program, text);
    print_one(c, "program_later", "program_settled", text);
  }
  print_vector(c, way->vector, way->out, text);
  if (at_first == ROUGHLY) print_settling(text);
}

// The names of another program's functions.
static const char* const renamed[] = {"program",      "program_of",      "program_rough",
                                      "program_fine", "program_settled", "program_at_first"};
enum { RENAMED = sizeof renamed / sizeof *renamed };

void cuda_program_print_before(const pointwise_code_t* c, assay_type_t out, assay_str_t* text) {
  const bool roughly = is_rough(c, out);
  for (int i = 0; i < RENAMED; i++)
    assay_str_printf(text, "#define %s %s_before\n", renamed[i], renamed[i]);
  print_code(c, out, WHOLE, text);
  if (roughly) {
    print_code(c, out, ROUGHLY, text);
    print_code(c, out, FINELY, text);
    print_settled(c, "program_settled", FINELY, forms[WHOLE].program, text);
    print_settled(c, "program_at_first", ROUGHLY, "program_settled", text);
  }
  print_one(c, "program", roughly ? "program_at_first" : forms[WHOLE].program, text);
  for (int i = 0; i < RENAMED; i++) assay_str_printf(text, "#undef %s\n", renamed[i]);
}
