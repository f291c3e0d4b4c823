// What an int8 layer does to its sums, as a text for a kernel to include.
#include "backends/cuda/int8/end.h"
#include "backends/cuda/types.h"

static void print_type(const assay_int8_t* q, bool short_index, assay_str_t* text) {
  const bool is_unsigned = q->type == ASSAY_TYPE_UINT8;
  assay_str_printf(text, "#include \"types.h\"\ntypedef %s index_t;\n#define INT8_QUANTIZES %d\n",
                   short_index ? "uint32_t" : "int64_t", q->quantizes);
  assay_str_printf(text, "#define INT8_OUT %s\n",
                   !q->quantizes ? "float" : cuda_whole_name(q->type));
  assay_str_printf(text, "#define INT8_LOW %s\n#define INT8_HIGH %s\n",
                   is_unsigned ? "0.0F" : "-128.0F", is_unsigned ? "255.0F" : "127.0F");
  if (!q->simple) assay_str_append(text, "#define INT8_HAS_STEPS\n");
  assay_str_append(text, "#include \"int8_end.h\"\n");
}

static const char* sign_of(const assay_int8_source_t* s) {
  return s->type == ASSAY_TYPE_INT8 ? "signed" : "unsigned";
}

static void print_source(const assay_int8_t* q, const int8_stream_t* s, size_t i,
                         assay_str_t* text) {
  const assay_int8_source_t* source = &q->sources[i];
  const int n = (int)i;
  assay_str_printf(text, "  const float s%d = ", n);
  if (source->kind == ASSAY_INT8_RESULT)
    assay_str_append(text, "f;\n");
  else if (source->kind == ASSAY_INT8_CHANNEL)
    assay_str_printf(text, "int8_channel(&e->sources[%d], channel);\n", n);
  else if (source->kind == ASSAY_INT8_SCALAR)
    assay_str_printf(text, "(float)e->sources[%d].scalar;\n", n);
  else if (s->whole)
    assay_str_printf(text, "int8_%s(&e->sources[%d], at);\n", sign_of(source), n);
  else
    assay_str_printf(text, "int8_%s(&e->sources[%d], int8_place(&e->sources[%d], at));\n",
                     sign_of(source), n, n);
}

// One operation in float32.
static void print_simple(const assay_int8_t* q, const int8_stream_t* streams, assay_str_t* text) {
  static const char* const signs[] = {
      [ASSAY_INT8_ADD] = "+", [ASSAY_INT8_SUB] = "-", [ASSAY_INT8_MUL] = "*"};
  print_source(q, &streams[0], 0, text);
  if (q->other > 0) print_source(q, &streams[q->other], (size_t)q->other, text);
  assay_str_append(text, "  return ");
  if (q->other < 0)
    assay_str_append(text, "s0;\n");
  else if (q->operation == ASSAY_INT8_SUB_FROM)
    assay_str_printf(text, "s%d - s0;\n", q->other);
  else
    assay_str_printf(text, "s0 %s s%d;\n", signs[q->operation], q->other);
}

// Nodes in float64, rounded once.
static void print_steps(const assay_int8_t* q, const int8_stream_t* streams, assay_str_t* text) {
  const int n = (int)q->n_sources;
  for (int i = 0; i < n; i++) {
    if (q->sources[i].kind == ASSAY_INT8_SCALAR) {
      assay_str_printf(text, "  const double v%d = e->sources[%d].scalar;\n", i, i);
    } else {
      print_source(q, &streams[i], (size_t)i, text);
      assay_str_printf(text, "  const double v%d = (double)s%d;\n", i, i);
    }
  }
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

void cuda_int8_end_print(const assay_int8_t* q, const int8_stream_t* streams, bool short_index,
                         assay_str_t* out) {
  print_type(q, short_index, out);
  assay_str_append(out,
                   "DEVICE float int8_value(float f, index_t at, index_t channel, const "
                   "int8_end_args_t* e) {\n  (void)f, (void)at, (void)channel, (void)e;\n");
  if (q->simple)
    print_simple(q, streams, out);
  else
    print_steps(q, streams, out);
  assay_str_append(out, "}\n");
}
