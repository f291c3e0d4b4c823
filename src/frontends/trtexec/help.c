// The help, and the options in use, from the table.
#include <string.h>

#include "frontends/trtexec/flags.h"
#include "frontends/trtexec/log.h"

const char* const trt_block_names[TRT_N_BLOCKS] = {
    [TRT_MODEL] = "Model Options",         [TRT_BUILD] = "Build Options",
    [TRT_SYSTEM] = "System Options",       [TRT_INFERENCE] = "Inference Options",
    [TRT_REPORTING] = "Reporting Options",
};

static void print_flag(const trt_flag_t* f, FILE* out) {
  enum { LEFT = 30 };
  char left[160];
  snprintf(left, sizeof left, "%s%s%s", f->name, f->value ? "=" : "", f->value ? f->value : "");
  if (strlen(left) > LEFT)
    fprintf(out, "  %s\n  %*s  ", left, LEFT, "");
  else
    fprintf(out, "  %-*s  ", LEFT, left);
  fputs(f->text, out);
  if (f->fallback) fprintf(out, " (default: %s)", f->fallback);
  fputc('\n', out);
}

static void print_names(trt_level_t level, const char* title, FILE* out) {
  int column = 0;
  fprintf(out, "\n=== %s ===\n", title);
  for (int i = 0; i < TRT_N_FLAGS; i++) {
    if (trt_flags[i].level != level) continue;
    const int n = (int)strlen(trt_flags[i].name);
    if (column + n > 96) {
      fputc('\n', out);
      column = 0;
    }
    column += fprintf(out, column ? " %s" : "  %s", trt_flags[i].name);
  }
  fputc('\n', out);
}

void trt_print_help(FILE* out) {
  fputs(
      "trtexec's command line over Assay: builds a plan of an ONNX model, runs it, and reports.\n\n"
      "Usage: assay trtexec --onnx=MODEL [options]\n"
      "       assay trtexec --loadEngine=PLAN [options]\n"
      "A link named trtexec to the program does the same. Values stand after '='.\n",
      out);
  for (int b = 0; b < TRT_N_BLOCKS; b++) {
    fprintf(out, "\n=== %s ===\n", trt_block_names[b]);
    for (int i = 0; i < TRT_N_FLAGS; i++)
      if (trt_flags[i].block == (trt_block_t)b && trt_flags[i].level == TRT_WORKS)
        print_flag(&trt_flags[i], out);
  }
  print_names(TRT_ACCEPT, "Read, without effect in Assay (a note says why)", out);
  print_names(TRT_REJECT, "Not supported (an error says what to use in their place)", out);
  fputs(
      "\n=== Help ===\n  --help, -h                      show this text\n"
      "\nExamples:\n"
      "  assay trtexec --onnx=model.onnx --saveEngine=model.plan --bf16\n"
      "  assay trtexec --onnx=model.onnx --minShapes=x:1x80 --optShapes=x:4x80 --maxShapes=x:8x80\n"
      "  assay trtexec --loadEngine=model.plan --dumpProfile --exportOutput=outputs.json\n",
      out);
}

static void print_value(const trt_flag_t* f, const trt_value_t* v) {
  const char* name = f->name + 2;
  if (f->kind == TRT_SWITCH)
    trt_info("%s: %s", name, v->given ? "Enabled" : "Disabled");
  else
    trt_info("%s: %s", name, v->text ? v->text : "");
}

void trt_print_options(const trt_options_t* o) {
  for (int b = 0; b < TRT_N_BLOCKS; b++) {
    trt_info("=== %s ===", trt_block_names[b]);
    if (b == TRT_MODEL) trt_info("Format: %s", o->at[TRT_FLAG_onnx].given ? "ONNX" : "*");
    for (int i = 0; i < TRT_N_FLAGS; i++)
      if (trt_flags[i].block == (trt_block_t)b && trt_flags[i].level == TRT_WORKS)
        print_value(&trt_flags[i], &o->at[i]);
    trt_info("%s", "");
  }
}
