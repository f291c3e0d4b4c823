// --show-native: the commands of Assay that do the same.
#include <stdio.h>
#include <string.h>

#include "base/shell.h"
#include "base/shown.h"
#include "frontends/trtexec/job.h"
#include "frontends/trtexec/specs.h"

// A word as a shell reads it.
static void print_word(const char* word) {
  assay_str_t text = {0};
  assay_shell_word(&text, word);
  assay_print(stdout, " %s", assay_str_get(&text));
  assay_str_deinit(&text);
}

static void print_option(const char* name, const char* value) {
  if (!value) return;
  assay_print(stdout, " %s", name);
  print_word(value);
}

static void print_build(const trt_job_t* j, const char* plan) {
  const trt_options_t* o = j->options;
  const cli_engine_args_t* n = &j->native;
  const char* model = n->model;
  if (j->n_debug_outputs) {
    fputs("assay edit extract", stdout);
    print_word(model);
    print_option("--output", model = "model.debug.onnx");
    for (size_t i = 0; i < j->ends.n; i++) print_option("--to", j->ends.items[i]);
    putchar('\n');
  }
  if (j->pruned) {
    fputs("assay polygraphy surgeon prune", stdout);
    print_word(model);
    print_option("--output", model = "model.sparse.onnx");
    putchar('\n');
  }
  if (j->quantized) {
    fputs("assay edit quantize", stdout);
    print_word(model);
    print_option("--output", model = "model.int8.onnx");
    print_option("--calib", trt_text(o, TRT_FLAG_calib));
    if (j->samples) print_option("--inputs", "inputs.json");
    if (j->samples) print_option("--calibrator", j->calibrator);
    if (j->samples && j->percentile > 0) printf(" --percentile %g", j->percentile);
    putchar('\n');
  }
  if (j->io_types.n) {
    fputs("assay edit set", stdout);
    print_word(model);
    print_option("--output", model = "model.formats.onnx");
    for (size_t i = 0; i < j->io_types.n; i++) print_option("--type", j->io_types.items[i]);
    putchar('\n');
  }
  fputs("assay build", stdout);
  print_word(model);
  print_option("--output", plan);
  print_option("--target", n->target);
  print_option("--precision", n->precision);
  print_option("--layer-precision", n->layer_precision);
  if (n->layer_precision && j->obey) fputs(" --strict", stdout);
  for (size_t i = 0; i < n->profiles.n; i++) print_option("--profile", n->profiles.items[i]);
  print_option("--tactic-sources", n->tactic_sources);
  if (n->max_scratch) printf(" --max-scratch %lld", (long long)n->max_scratch);
  if (n->batch_variant) fputs(" --no-batch-invariant", stdout);
  if (n->strip_weights) fputs(" --strip-weights", stdout);
  if (n->strip_weights && n->refittable) fputs(" --refittable", stdout);
  if (!trt_given(o, TRT_FLAG_noBuilderCache))
    print_option("--timing-cache", trt_text(o, TRT_FLAG_timingCacheFile));
  putchar('\n');
}

static const char* text_of(const trt_job_t* j, trt_flag_id_t f) { return trt_text(j->options, f); }

// --loadInputs as NAME=FILE; '*' names no input natively.
static assay_status_t print_inputs(const trt_job_t* j) {
  trt_item_t* items = NULL;
  size_t n = 0;
  assay_str_t text = {0};
  if (!text_of(j, TRT_FLAG_loadInputs)) return NULL;
  ASSAY_TRY(trt_items_parse(j->arena, "--loadInputs", text_of(j, TRT_FLAG_loadInputs), &items, &n));
  for (size_t i = 0; i < n; i++) {
    assay_str_printf_raw(&text, "%s=%s", items[i].name, items[i].value);
    print_option("--inputs", assay_str_get(&text));
    assay_str_deinit(&text);
    text = (assay_str_t){0};
  }
  return NULL;
}

// What is asked of outputs and debug tensors, in one run.
static assay_status_t print_run(const trt_job_t* j, const char* plan) {
  const trt_options_t* o = j->options;
  const bool outputs = trt_given(o, TRT_FLAG_dumpOutput) || trt_given(o, TRT_FLAG_exportOutput) ||
                       trt_given(o, TRT_FLAG_dumpRawBindingsToFile);
  const bool values =
      trt_given(o, TRT_FLAG_saveDebugTensors) || trt_given(o, TRT_FLAG_saveAllDebugTensors);
  if (!outputs && !values) return NULL;
  fputs("assay run", stdout);
  print_word(plan);
  ASSAY_TRY(print_inputs(j));
  print_option("--save-outputs", outputs && !values && trt_given(o, TRT_FLAG_exportOutput)
                                     ? "outputs.trtexec.json"
                                     : "outputs.npz");
  putchar('\n');
  return NULL;
}

// The shapes of the run, where they are not those that the plan is best for.
static assay_status_t print_shapes(const trt_job_t* j) {
  trt_item_t* items = NULL;
  size_t n = 0;
  assay_str_t text = {0};
  if (!text_of(j, TRT_FLAG_shapes)) return NULL;
  ASSAY_TRY(trt_items_parse(j->arena, "--shapes", text_of(j, TRT_FLAG_shapes), &items, &n));
  for (size_t i = 0; i < n; i++) {
    assay_str_printf_raw(&text, "%s=%s", items[i].name, items[i].value);
    print_option("--shape", assay_str_get(&text));
    assay_str_deinit(&text);
    text = (assay_str_t){0};
  }
  return NULL;
}

static assay_status_t print_bench(const trt_job_t* j, const char* plan) {
  const trt_options_t* o = j->options;
  fputs("assay bench", stdout);
  print_word(plan);
  if (!j->model) ASSAY_TRY(print_shapes(j));
  ASSAY_TRY(print_inputs(j));
  printf(" --seconds %g --warm-up %g", trt_number(o, TRT_FLAG_duration),
         1e-3 * trt_number(o, TRT_FLAG_warmUp));
  if (trt_number(o, TRT_FLAG_infStreams) != 1)
    printf(" --contexts %g", trt_number(o, TRT_FLAG_infStreams));
  const char* when = text_of(j, TRT_FLAG_allocationStrategy);
  if (strcmp(when, "profile") == 0)
    printf(" --allocation %g", trt_number(o, TRT_FLAG_useProfile));
  else if (trt_given(o, TRT_FLAG_allocationStrategy))
    print_option("--allocation", when);
  if (trt_given(o, TRT_FLAG_dumpProfile) || trt_given(o, TRT_FLAG_exportProfile))
    fputs(" --layers", stdout);
  print_option("--trace", text_of(j, TRT_FLAG_exportProfile));
  if (trt_given(o, TRT_FLAG_exportTimes)) {
    fputs(" --latencies >", stdout);
    print_word(text_of(j, TRT_FLAG_exportTimes));
  }
  putchar('\n');
  return print_run(j, plan);
}

// What native commands leave out: their tensors are rows.
static void print_layouts(const trt_job_t* j) {
  for (size_t i = 0; i < j->layouts.n; i++) {
    assay_str_t name = {0};
    assay_shell_word_quoted(&name, j->layouts.items[i].name);  // a newline would end the comment
    assay_print(
        stdout,
        "# %s %s: trtexec's raw files are in layout %s; these commands read and write rows\n",
        j->layouts.items[i].output ? "output" : "input", assay_str_get(&name),
        j->layouts.items[i].layout->word);
    assay_str_deinit(&name);
  }
}

assay_status_t trt_print_native(const trt_job_t* j) {
  const trt_options_t* o = j->options;
  const char* save = trt_text(o, TRT_FLAG_saveEngine);
  const char* plan = j->model ? (save ? save : "model.plan") : trt_text(o, TRT_FLAG_loadEngine);
  print_layouts(j);
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
  return trt_given(o, TRT_FLAG_skipInference) || j->native.strip_weights ? NULL
                                                                         : print_bench(j, plan);
}
