// --show-native: the commands of Assay that do the same.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/trtexec/job.h"

// A word as a shell reads it.
static void print_word(const char* word) {
  bool plain = *word;
  for (const char* c = word; *c; c++)
    plain &= isalnum((unsigned char)*c) || strchr("_-./=:,+%@", *c);
  if (plain) {
    printf(" %s", word);
    return;
  }
  fputs(" '", stdout);
  for (const char* c = word; *c; c++) {
    if (*c == '\'')
      fputs("'\\''", stdout);
    else
      putchar(*c);
  }
  putchar('\'');
}

static void print_option(const char* name, const char* value) {
  if (!value) return;
  printf(" %s", name);
  print_word(value);
}

static void print_build(const trt_job_t* j, const char* plan) {
  const trt_options_t* o = j->options;
  const cli_engine_args_t* n = &j->native;
  const char* model = n->model;
  if (j->io_types.n) {
    fputs("assay edit set", stdout);
    print_word(model);
    print_option("--output", model = "model.formats.onnx");
    for (size_t i = 0; i < j->io_types.n; i++) print_option("--type", j->io_types.items[i]);
    putchar('\n');
  }
  if (j->quantized) {
    fputs("assay edit quantize", stdout);
    print_word(model);
    print_option("--output", model = "model.int8.onnx");
    putchar('\n');
  }
  fputs("assay build", stdout);
  print_word(model);
  print_option("--output", plan);
  print_option("--precision", n->precision);
  print_option("--layer-precision", n->layer_precision);
  for (size_t i = 0; i < n->profiles.n; i++) print_option("--profile", n->profiles.items[i]);
  print_option("--tactic-sources", n->tactic_sources);
  if (n->batch_variant) fputs(" --no-batch-invariant", stdout);
  if (!trt_given(o, TRT_FLAG_noBuilderCache))
    print_option("--timing-cache", trt_text(o, TRT_FLAG_timingCacheFile));
  putchar('\n');
}

static void print_bench(const trt_job_t* j, const char* plan) {
  const trt_options_t* o = j->options;
  fputs("assay bench", stdout);
  print_word(plan);
  printf(" --seconds %g --warm-up %g", trt_number(o, TRT_FLAG_duration),
         1e-3 * trt_number(o, TRT_FLAG_warmUp));
  if (trt_number(o, TRT_FLAG_infStreams) != 1)
    printf(" --contexts %g", trt_number(o, TRT_FLAG_infStreams));
  if (trt_given(o, TRT_FLAG_dumpProfile) || trt_given(o, TRT_FLAG_exportProfile))
    fputs(" --layers", stdout);
  putchar('\n');
}

assay_status_t trt_print_native(const trt_job_t* j) {
  const trt_options_t* o = j->options;
  const char* save = trt_text(o, TRT_FLAG_saveEngine);
  const char* plan = j->model ? (save ? save : "model.plan") : trt_text(o, TRT_FLAG_loadEngine);
  if (j->model) print_build(j, plan);
  const char* weights = trt_text(o, TRT_FLAG_refitFromOnnx);
  if (weights) {
    fputs("assay refit", stdout);
    print_word(plan);
    print_option("--weights", weights);
    putchar('\n');
  }
  if (trt_given(o, TRT_FLAG_dumpLayerInfo) || trt_given(o, TRT_FLAG_exportLayerInfo)) {
    fputs("assay inspect plan", stdout);
    print_word(plan);
    putchar('\n');
  }
  if (!trt_given(o, TRT_FLAG_skipInference)) print_bench(j, plan);
  return NULL;
}
