// What an int8 layer does to its sums, as a text for a kernel to include.
#include <math.h>
#include <string.h>

#include "backends/cuda/int8/end.h"
#include "backends/cuda/types.h"

bool cuda_int8_has_inverse(const assay_int8_t* q) {
  return q->quantizes && q->scale >= 0x1p-60F && q->scale <= 0x1p60F;
}

// The form (kernels/int8/int8_finish.h) of a function that is all that is done to sums and whose
// results become bytes alone; NULL: there is none. Forms leave out what fp16 has no numbers for,
// which must be 0 in steps, too.
static const char* rough_form(const assay_int8_t* q) {
  static const struct {
    const char *function, *form;
  } forms[] = {{"Gelu", "GELU"},       {"gelu_tanh", "GELU_TANH"},
               {"Sigmoid", "SIGMOID"}, {"HardSwish", "HARD_SWISH"},
               {"silu", "SWISH"},      {"Swish", "SWISH"}};
  if (q->simple || q->n_steps != 1 || q->steps[0].a != 0 ||
      q->sources[0].kind != ASSAY_INT8_RESULT || !cuda_int8_has_inverse(q) || q->scale < 0x1p-16F)
    return NULL;
  const char* name = assay_int8_function_name(q->steps[0].function);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (strcmp(forms[i].function, name) == 0) return forms[i].form;
  return NULL;
}

static void print_rough(const cuda_int8_end_t* e, assay_str_t* text) {
  const assay_int8_t* q = e->q;
  const char* form = e->both ? NULL : rough_form(q);
  if (!form) return;
  const bool has_alpha = strcmp(assay_int8_function_name(q->steps[0].function), "Swish") == 0;
  assay_str_printf(text, "#define INT8_ROUGH %s\n#define INT8_ALPHA %s\n", form,
                   has_alpha ? "(float)e->p[0][0]" : "1");
}

static void print_type(const cuda_int8_end_t* e, bool short_index, assay_str_t* text) {
  const assay_int8_t* q = e->q;
  assay_str_printf(text,
                   "#include \"types.h\"\ntypedef %s index_t;\n#define INT8_QUANTIZES %d\n"
                   "#define INT8_BOTH %d\n",
                   short_index ? "uint32_t" : "int64_t", q->quantizes, e->both);
  assay_str_printf(text, "#define INT8_OUT %s\n#define INT8_SIGNED %d\n#define INT8_INVERSE %d\n",
                   !q->quantizes ? "float" : cuda_whole_name(q->type), q->type == ASSAY_TYPE_INT8,
                   cuda_int8_has_inverse(q));
  assay_str_printf(text, "#define INT8_BELOW %d\n#define INT8_ABOVE %d\n",
                   q->simple && q->low > -(float)INFINITY, q->simple && q->high < (float)INFINITY);
  if (!q->simple) assay_str_append(text, "#define INT8_HAS_STEPS\n");
  print_rough(e, text);
  if (e->n_cells) assay_str_printf(text, "#define INT8_CELLS %d\n", e->n_cells);
  assay_str_append(text, "#include \"int8_end.h\"\n");
}

// What reads a source's elements: int8_signed, int8_all_signed...
static const char* kind_of(const assay_int8_source_t* s) {
  if (s->kind == ASSAY_INT8_REAL) return "real";
  return s->type == ASSAY_TYPE_INT8 ? "signed" : "unsigned";
}

// ---- what is computed of an element's sources ---------------------------------------------------

// Whether the layer reads the source: one operation has two at most.
static bool is_read(const assay_int8_t* q, size_t i) {
  return !q->simple || !i || (int)i == q->other;
}

// Whether it is a number of the element, s0, s1...; scalars are arguments.
static bool is_number(const assay_int8_t* q, size_t i) {
  return is_read(q, i) && q->sources[i].kind != ASSAY_INT8_SCALAR;
}

static void print_scalars(const assay_int8_t* q, assay_str_t* text) {
  for (size_t i = 0; i < q->n_sources; i++)
    if (is_read(q, i) && q->sources[i].kind == ASSAY_INT8_SCALAR)
      assay_str_printf(text, "  const float s%d = (float)e->sources[%d].scalar;\n", (int)i, (int)i);
}

// One operation in float32.
static void print_simple(const assay_int8_t* q, assay_str_t* text) {
  static const char* const signs[] = {
      [ASSAY_INT8_ADD] = "+", [ASSAY_INT8_SUB] = "-", [ASSAY_INT8_MUL] = "*"};
  print_scalars(q, text);
  assay_str_append(text, "  return ");
  if (q->other < 0)
    assay_str_append(text, "s0;\n");
  else if (q->operation == ASSAY_INT8_SUB_FROM)
    assay_str_printf(text, "s%d - s0;\n", q->other);
  else
    assay_str_printf(text, "s0 %s s%d;\n", signs[q->operation], q->other);
}

// Nodes in float64, rounded once.
static void print_steps(const assay_int8_t* q, assay_str_t* text) {
  const int n = (int)q->n_sources;
  for (int i = 0; i < n; i++)
    if (q->sources[i].kind == ASSAY_INT8_SCALAR)
      assay_str_printf(text, "  const double v%d = e->sources[%d].scalar;\n", i, i);
    else
      assay_str_printf(text, "  const double v%d = (double)s%d;\n", i, i);
  for (int i = 0; i < (int)q->n_steps; i++) {
    const assay_int8_step_t* s = &q->steps[i];
    assay_str_printf(text, "  const double v%d = int8_do_%s(v%d, ", n + i,
                     assay_int8_function_name(s->function), s->a);
    if (s->b < 0)
      assay_str_append(text, "0, ");
    else
      assay_str_printf(text, "v%d, ", s->b);
    assay_str_printf(text, "e->p[%d]);\n", i);
  }
  assay_str_printf(text, "  return (float)v%d;\n", n + (int)q->n_steps - 1);
}

void cuda_int8_made_print(const assay_int8_t* q, const char* name, assay_str_t* text) {
  assay_str_printf(text, "DEVICE float %s(", name);
  for (size_t i = 0; i < q->n_sources; i++)
    if (is_number(q, i)) assay_str_printf(text, "float s%d, ", (int)i);
  assay_str_append(text, "const int8_end_args_t* e) {\n  (void)e;\n");
  if (q->simple)
    print_simple(q, text);
  else
    print_steps(q, text);
  assay_str_append(text, "}\n");
}

// ---- for one element, and for several -----------------------------------------------------------

static void print_source(const assay_int8_t* q, const int8_stream_t* s, int i, assay_str_t* text) {
  const assay_int8_source_t* source = &q->sources[i];
  assay_str_printf(text, "  const float s%d = ", i);
  if (source->kind == ASSAY_INT8_RESULT)
    assay_str_append(text, "f;\n");
  else if (source->kind == ASSAY_INT8_CHANNEL)
    assay_str_printf(text, "int8_channel(&e->sources[%d], channel);\n", i);
  else if (s->whole)
    assay_str_printf(text, "int8_%s(&e->sources[%d], at);\n", kind_of(source), i);
  else
    assay_str_printf(text, "int8_%s(&e->sources[%d], int8_place(&e->sources[%d], at));\n",
                     kind_of(source), i, i);
}

// Whether a source's elements lie as those of the output do, so that several are read at once.
static bool is_word(const assay_int8_t* q, const int8_stream_t* streams, size_t i) {
  return is_number(q, i) && assay_int8_reads_value(&q->sources[i]) && streams[i].whole;
}

static bool is_real(const assay_int8_t* q, size_t i) {
  return q->sources[i].kind == ASSAY_INT8_REAL;
}

static void print_words(const assay_int8_t* q, const int8_stream_t* streams, assay_str_t* text) {
  assay_str_append(text, "typedef struct int8_words {\n  uint32_t none;\n");
  for (size_t i = 0; i < q->n_sources; i++)
    if (is_word(q, streams, i))
      assay_str_printf(text, "  uint32_t w%d%s;\n", (int)i, is_real(q, i) ? "[INT8_TOGETHER]" : "");
  assay_str_append(text,
                   "} int8_words_t;\nDEVICE void int8_read(index_t at, const int8_end_args_t* e, "
                   "int8_words_t* words) {\n  (void)at, (void)e;\n  words->none = 0;\n");
  for (size_t i = 0; i < q->n_sources; i++)
    if (is_word(q, streams, i) && is_real(q, i))
      assay_str_printf(text, "  int8_reals(e->sources[%d].at, at, words->w%d);\n", (int)i, (int)i);
    else if (is_word(q, streams, i))
      assay_str_printf(text, "  words->w%d = int8_word(e->sources[%d].at, at);\n", (int)i, (int)i);
  assay_str_append(text, "}\n");
}

// s1: an array.
static void print_sources(const assay_int8_t* q, const int8_stream_t* s, int i, assay_str_t* text) {
  static const char each[] = "  for (int i = 0; i < INT8_TOGETHER; i++)";
  const assay_int8_source_t* source = &q->sources[i];
  if (source->kind == ASSAY_INT8_RESULT) {
    assay_str_printf(text, "  const float* s%d = f;\n", i);
    return;
  }
  assay_str_printf(text, "  float s%d[INT8_TOGETHER];\n", i);
  if (source->kind == ASSAY_INT8_CHANNEL)
    assay_str_printf(text,
                     "  UNROLL\n%s s%d[i] = int8_channel(&e->sources[%d], channel + (index_t)i);\n",
                     each, i, i);
  else if (s->whole)
    assay_str_printf(text, "  int8_all_%s(&e->sources[%d], words->w%d, s%d);\n", kind_of(source), i,
                     i, i);
  else if (s->inner == 1 && s->n % INT8_TOGETHER == 0 && is_real(q, (size_t)i))
    assay_str_printf(text,
                     "  uint32_t p%d[INT8_TOGETHER];\n  int8_reals(e->sources[%d].at, "
                     "int8_place(&e->sources[%d], at), p%d);\n  int8_all_real(&e->sources[%d], "
                     "p%d, s%d);\n",
                     i, i, i, i, i, i, i);
  else
    assay_str_printf(text,
                     "  UNROLL\n%s s%d[i] = int8_%s(&e->sources[%d], "
                     "int8_place(&e->sources[%d], at + (index_t)i));\n",
                     each, i, kind_of(source), i, i);
}

static void print_call(const assay_int8_t* q, const char* element, assay_str_t* text) {
  assay_str_append(text, "int8_made(");
  for (size_t i = 0; i < q->n_sources; i++)
    if (is_number(q, i)) assay_str_printf(text, "s%d%s, ", (int)i, element);
  assay_str_append(text, "e);\n");
}

void cuda_int8_end_print(const cuda_int8_end_t* e, bool short_index, assay_str_t* out) {
  const assay_int8_t* q = e->q;
  const int8_stream_t* streams = e->streams;
  print_type(e, short_index, out);
  cuda_int8_made_print(q, "int8_made", out);
  assay_str_append(out,
                   "DEVICE float int8_value(float f, index_t at, index_t channel, const "
                   "int8_end_args_t* e) {\n  (void)f, (void)at, (void)channel;\n");
  for (size_t i = 0; i < q->n_sources; i++)
    if (is_number(q, i)) print_source(q, &streams[i], (int)i, out);
  assay_str_append(out, "  return ");
  print_call(q, "", out);
  assay_str_append(out, "}\n");
  print_words(q, streams, out);
  assay_str_append(
      out,
      "DEVICE void int8_values(const float* f, const int8_words_t* words, index_t at, "
      "index_t channel, const int8_end_args_t* e, float* y) {\n  (void)f, (void)words, "
      "(void)at, (void)channel;\n");
  for (size_t i = 0; i < q->n_sources; i++)
    if (is_number(q, i)) print_sources(q, &streams[i], (int)i, out);
  assay_str_append(out, "  UNROLL\n  for (int i = 0; i < INT8_TOGETHER; i++) y[i] = ");
  print_call(q, "[i]", out);
  assay_str_append(out, "}\n");
}
