// Polygraphy's command lines and values: what they are read as, and what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "front_case.h"
#include "frontends/polygraphy/build.h"
#include "frontends/polygraphy/flags.h"
#include "frontends/polygraphy/inspect/layer_types.h"
#include "frontends/polygraphy/log.h"
#include "frontends/polygraphy/model.h"
#include "tensor/tensor.h"

static pg_args_t args;

// Reads words with ' ' between; what misuse prints goes nowhere.
static pg_outcome_t read_line(const char* line) {
  static char copy[4096];
  char *argv[64], *save = NULL;
  int argc = 0;
  pg_outcome_t outcome = PG_OUTCOME_RUN;
  snprintf(copy, sizeof copy, "%s", line);
  for (char* w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) argv[argc++] = w;
  expect(pg_args_parse(arena, argc, argv, &args, &outcome), NULL, line);
  return outcome;
}

// ---- lines --------------------------------------------------------------------------------------

static void outcomes(void** state) {
  static const struct {
    const char* line;
    pg_outcome_t outcome;
  } rows[] = {
      {"", PG_OUTCOME_MISUSED},
      {"frob", PG_OUTCOME_MISUSED},
      {"template trt-network", PG_OUTCOME_MISUSED},
      {"inspect", PG_OUTCOME_MISUSED},
      {"inspect frob", PG_OUTCOME_MISUSED},
      {"data to-input a b -o c", PG_OUTCOME_RUN},
      {"data merge a b", PG_OUTCOME_MISUSED},
      {"run", PG_OUTCOME_RUN},
      {"run m.onnx --onnxrt --trt", PG_OUTCOME_RUN},
      {"run m.onnx --atol", PG_OUTCOME_MISUSED},
      {"run m.onnx --atol --rtol 1", PG_OUTCOME_MISUSED},
      {"run m.onnx --seed x", PG_OUTCOME_MISUSED},
      {"run m.onnx --seed 1.5", PG_OUTCOME_MISUSED},
      {"run m.onnx --seed", PG_OUTCOME_MISUSED},
      {"run m.onnx --trt=1", PG_OUTCOME_MISUSED},
      {"run m.onnx --compare nearly", PG_OUTCOME_MISUSED},
      {"run m.onnx --onnx-out c", PG_OUTCOME_MISUSED},
      {"run m.onnx --load-inputs a --data-loader-script b", PG_OUTCOME_MISUSED},
      {"run m.onnx --save-tactics a --load-tactics b", PG_OUTCOME_MISUSED},
      {"run m.onnx --frob", PG_OUTCOME_UNKNOWN},
      {"run m.onnx n.onnx", PG_OUTCOME_UNKNOWN},
      {"run m.onnx -x", PG_OUTCOME_UNKNOWN},
      {"run m.onnx --stronglyTyped", PG_OUTCOME_RUN},
      {"surgeon extract", PG_OUTCOME_MISUSED},
      {"surgeon extract m.onnx", PG_OUTCOME_MISUSED},
      {"surgeon extract m.onnx -o p.onnx", PG_OUTCOME_RUN},
      {"convert m.onnx", PG_OUTCOME_MISUSED},
      {"debug precision m.onnx -p float64", PG_OUTCOME_MISUSED},
      {"debug reduce m.onnx -o o.onnx --no-reduce-inputs --no-reduce-outputs", PG_OUTCOME_MISUSED},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const pg_outcome_t got = read_line(rows[i].line);
    if (got != rows[i].outcome) fail_msg("'%s': %d", rows[i].line, got);
  }
}

static void words_are(const pg_words_t* words, const char* text) {
  assay_str_t got = {0};
  for (size_t i = 0; i < words->n; i++)
    assay_str_printf(&got, "%s%s", i ? " " : "", words->items[i]);
  assert_string_equal(assay_str_get(&got), text);
  assay_str_deinit(&got);
}

static void lists(void** state) {
  (void)state;
  assert_int_equal(read_line("run --onnx-outputs a b m.onnx"), PG_OUTCOME_RUN);
  words_are(pg_words(&args, PG_FLAG_onnx_outputs), "a b m.onnx");
  assert_int_equal(args.positional.n, 0);
  assert_int_equal(read_line("run --onnx-outputs a b -- m.onnx"), PG_OUTCOME_RUN);
  words_are(pg_words(&args, PG_FLAG_onnx_outputs), "a b");
  words_are(&args.positional, "m.onnx");
  assert_int_equal(read_line("run --atol -1e-3 x:2 -.5 --trt m.onnx"), PG_OUTCOME_RUN);
  words_are(pg_words(&args, PG_FLAG_atol), "-1e-3 x:2 -.5");
  words_are(&args.positional, "m.onnx");
  // Given again, the last one counts; profiles add up.
  read_line("run m.onnx --atol 1 --atol 2 3");
  words_are(pg_words(&args, PG_FLAG_atol), "2 3");
  read_line("run m.onnx --trt-min-shapes x:[1] --trt-min-shapes x:[2] y:[3]");
  assert_int_equal(args.at[PG_FLAG_trt_min_shapes].n_lists, 2);
  words_are(&args.at[PG_FLAG_trt_min_shapes].lists[1], "x:[2] y:[3]");
  assert_int_equal(read_line("run m.onnx --tactic-sources --trt"), PG_OUTCOME_RUN);
  assert_true(pg_given(&args, PG_FLAG_tactic_sources));
  assert_int_equal(pg_words(&args, PG_FLAG_tactic_sources)->n, 0);
  read_line("run m.onnx --atol=1e-3 --rtol=x:1");
  words_are(pg_words(&args, PG_FLAG_rtol), "x:1");
  words_are(pg_words(&args, PG_FLAG_compare), "simple");
}

static void names(void** state) {
  (void)state;
  read_line("run m.onnx --abs 1e-3 --rel 1e-2 --save-out o.json --fail-f --load-inp a b");
  words_are(pg_words(&args, PG_FLAG_atol), "1e-3");
  words_are(pg_words(&args, PG_FLAG_rtol), "1e-2");
  assert_string_equal(pg_text(&args, PG_FLAG_save_outputs), "o.json");
  assert_true(pg_given(&args, PG_FLAG_fail_fast));
  words_are(pg_words(&args, PG_FLAG_load_inputs), "a b");  // two spellings of one flag
  read_line("debug precision m.onnx -pfloat16 -vvv -qv");
  assert_string_equal(pg_text(&args, PG_FLAG_precision), "float16");
  assert_int_equal(pg_int(&args, PG_FLAG_verbose), 4);
  assert_int_equal(pg_int(&args, PG_FLAG_quiet), 1);
  read_line("debug precision m.onnx");
  assert_string_equal(pg_text(&args, PG_FLAG_precision), "float32");
  assert_string_equal(pg_text(&args, PG_FLAG_mode), "bisect");
  assert_false(pg_given(&args, PG_FLAG_mode));
  read_line("run m.onnx --stronglyTyped");
  assert_true(pg_given(&args, PG_FLAG_strongly_typed) && args.note);
}

static void rest(void** state) {
  (void)state;
  read_line("debug precision m.onnx --fp16 --check polygraphy run x.engine --trt --abs 1e-2 -v --");
  words_are(pg_words(&args, PG_FLAG_check), "polygraphy run x.engine --trt --abs 1e-2 -v --");
  assert_int_equal(args.unknown.n, 0);
  assert_int_equal(args.positional.n, 1);
}

static void runners(void** state) {
  static const pg_flag_id_t want[] = {PG_FLAG_trt, PG_FLAG_onnxrt, PG_FLAG_onnxrt, PG_FLAG_truth};
  (void)state;
  read_line("run --trt m.onnx --onnxrt --onnxrt --truth");
  assert_int_equal(args.n_runners, 4);
  for (size_t i = 0; i < 4; i++) assert_int_equal(args.runners[i], want[i]);
}

static void nearest(void** state) {
  (void)state;
  const char* near = pg_flag_nearest(PG_CMD_run, "--onxrt");
  assert_true(near && strncmp(near, "--onnxrt", 8) == 0);
  near = pg_flag_nearest(PG_CMD_run, "--load-intputs=a");
  assert_true(near && strncmp(near, "--load-inputs", 13) == 0);
  assert_null(pg_flag_nearest(PG_CMD_run, "--completely-different"));
}

// ---- the table ----------------------------------------------------------------------------------

// A value that asks for more than what is so anyway.
static const char* value_for(pg_flag_id_t f) {
  switch (f) {
    case PG_FLAG_providers:
      return "cuda";
    case PG_FLAG_graph_optimization_level:
      return "ORT_ENABLE_ALL";
    case PG_FLAG_hardware_compatibility_level:
      return "ampere_plus";
    case PG_FLAG_runtime_platform:
      return "windows_amd64";
    case PG_FLAG_engine_capability:
      return "safety";
    case PG_FLAG_tiling_optimization_level:
      return "fast";
    case PG_FLAG_onnx_flags:
      return "native_instancenorm";
    case PG_FLAG_calib_base_cls:
      return "IInt8LegacyCalibrator";
    case PG_FLAG_quantile:
    case PG_FLAG_regression_cutoff:
      return "0.5";
    case PG_FLAG_profiling_verbosity:
      return "none";
    default:
      return "7";
  }
}

// " --name value" with this spelling.
static void put_flag(pg_flag_id_t id, const char* name, size_t n, assay_str_t* out) {
  const pg_flag_t* f = &pg_flags[id];
  const char* last = f->value && strrchr(f->value, '|') ? strrchr(f->value, '|') + 1 : f->value;
  assay_str_printf(out, " %.*s", (int)n, name);
  if (f->kind == PG_SWITCH || f->kind == PG_COUNT) return;
  assay_str_printf(out, " %s",
                   f->kind == PG_CHOICE || f->kind == PG_CHOICES ? last : value_for(id));
}

// How many lines of the log there are in a file that is copied to.
static long log_of(assay_status_t* out_st, char* text, size_t capacity) {
  char path[] = "/tmp/assay-polygraphy-XXXXXX";
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  pg_log_set(PG_WARNING, NULL, 0);
  expect(pg_log_copy(path), NULL, path);
  *out_st = pg_args_check(&args);
  assert_true(pg_log_close());
  FILE* f = fopen(path, "r");
  const size_t n = fread(text, 1, capacity - 1, f);
  text[n] = 0;
  fclose(f);
  unlink(path);
  return (long)n;
}

static void check_row(pg_command_id_t c, pg_flag_id_t id, const char* name, size_t n) {
  const pg_flag_t* f = &pg_flags[id];
  const pg_command_t* command = &pg_commands[c];
  assay_str_t line = {0};
  char log[4096];
  assay_status_t st = NULL;
  assay_str_printf(&line, "%s %s%s", command->tool, command->name ? command->name : "",
                   *command->model ? " m.onnx" : "");
  if (id != PG_FLAG_output)
    assay_str_append(&line, pg_flag_has(PG_FLAG_output, c) ? " -o o.onnx" : "");
  // What else a subcommand cannot do without.
  if (c == PG_CMD_surgeon_insert && id != PG_FLAG_op) assay_str_append(&line, " --op Relu");
  if (c == PG_CMD_surgeon_insert && id != PG_FLAG_inputs) assay_str_append(&line, " --inputs a");
  if (c == PG_CMD_surgeon_insert && id != PG_FLAG_outputs) assay_str_append(&line, " --outputs b");
  if (id != PG_FLAG_until)
    assay_str_append(&line, pg_flag_has(PG_FLAG_until, c) ? " --until 1" : "");
  put_flag(id, name, n, &line);
  const char* text = assay_str_get(&line);
  if (read_line(text) != PG_OUTCOME_RUN || !pg_given(&args, id)) fail_msg("'%s' is not read", text);
  log_of(&st, log, sizeof log);
  if (f->level == PG_WORKS) {
    // Some values of flags that work are those of another program.
    if (id != PG_FLAG_model_type && id != PG_FLAG_compare)
      expect(st, NULL, text);
    else
      assay_status_free(st);
  } else if (f->level == PG_ACCEPT) {
    expect(st, NULL, text);
    if (!strstr(log, "has no effect in Assay: ")) fail_msg("'%s' has no note", text);
  } else {
    expect(st, "is not supported: ", text);
  }
  assay_str_deinit(&line);
}

static void rows(void** state) {
  (void)state;
  for (int f = 0; f < PG_N_FLAGS; f++) {
    size_t n;
    if (!*pg_flags[f].text) fail_msg("'%s' says nothing", pg_flags[f].names);
    for (int c = 0; c < PG_N_COMMANDS; c++) {
      if (!pg_flag_has((pg_flag_id_t)f, (pg_command_id_t)c)) continue;
      for (const char* at = pg_flags[f].names; *at; at += n + (at[n] == ' ')) {
        n = strcspn(at, " ");
        check_row((pg_command_id_t)c, (pg_flag_id_t)f, at, n);
      }
    }
  }
}

// No two flags of a subcommand have a spelling in common.
static void unique(void** state) {
  (void)state;
  for (int f = 0; f < PG_N_FLAGS; f++)
    for (const char* at = pg_flags[f].names; *at;) {
      const size_t n = strcspn(at, " ");
      for (int g = f + 1; g < PG_N_FLAGS; g++)
        if (pg_flag_is(&pg_flags[g], at, n) && pg_flags[f].commands & pg_flags[g].commands)
          fail_msg("'%.*s' stands for two flags", (int)n, at);
      at += n + (at[n] == ' ');
    }
}

static void refused_values(void** state) {
  static const char* const lines[][2] = {
      {"run m.onnx --model-type keras", "convert the model to ONNX"},
      {"run m.onnx --compare perceptual_metrics", "neural network"},
      {"convert m.onnx -o p.plan --engine-capability weak", "'weak' is none of"},
      {"run m.onnx --hardware-compatibility-level hopper", "'hopper' is none of"},
      {"run m.onnx --runtime-platform same_as_build", NULL},
      {"run m.onnx --profiling-verbosity loud", "'loud' is none of"},
      {"run m.onnx --calib-base-cls IInt8", "'IInt8' is none of"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    assert_int_equal(read_line(lines[i][0]), PG_OUTCOME_RUN);
    expect(pg_args_check(&args), lines[i][1], lines[i][0]);
  }
}

// ---- values -------------------------------------------------------------------------------------

static void pairs(void** state) {
  const char* items[] = {"1", "x:2", "a:b:3", "y*:4"};
  const pg_words_t words = {items, 4};
  static const char* const want[][2] = {{"x", "2"}, {"a:b", "3"}, {"yes", "4"}, {"other", "1"}};
  const char* value;
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    expect(pg_pair_find(arena, &words, want[i][0], &value), NULL, want[i][0]);
    assert_string_equal(value, want[i][1]);
  }
  expect(pg_pair_find(arena, &(pg_words_t){items + 1, 3}, "other", &value), NULL, "other");
  assert_null(value);
}

static void shapes(void** state) {
  static const struct {
    const char* text;
    int rank;
    int64_t last;
    const char* error;
  } rows[] = {{"[1,3,224,224]", 4, 224, NULL},
              {"(1,3)", 2, 3, NULL},
              {"1x3x224", 3, 224, NULL},
              {"[]", 0, 0, NULL},
              {"[5]", 1, 5, NULL},
              {"[-1,3]", 2, 3, NULL},
              {"[1,3", 0, 0, "brackets do not match"},
              {"1,3]", 0, 0, "is not a size"},
              {"[1,a]", 0, 0, "'a' is not a size"},
              {"[1,]", 1, 1, NULL},
              {"[1,,2]", 0, 0, "'' is not a size"},
              {"[1,99999999999999999999]", 0, 0, "is not a size"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t dims[ASSAY_MAX_RANK];
    int rank = -1;
    expect(pg_shape(arena, "--x", rows[i].text, &rank, dims, NULL), rows[i].error, rows[i].text);
    if (rows[i].error) continue;
    assert_int_equal(rank, rows[i].rank);
    if (rank) assert_int_equal(dims[rank - 1], rows[i].last);
  }
  const char* symbols[ASSAY_MAX_RANK];
  int64_t dims[ASSAY_MAX_RANK];
  int rank;
  expect(pg_shape(arena, "--x", "['N',3]", &rank, dims, symbols), NULL, "['N',3]");
  assert_string_equal(symbols[0], "N");
  assert_true(dims[0] == -1 && dims[1] == 3 && !symbols[1]);
}

static void numbers(void** state) {
  double x;
  int64_t n;
  (void)state;
  expect(pg_number("--x", "1e-3", &x), NULL, "1e-3");
  assert_true(x == 1e-3);
  expect(pg_number("--x", "nan", &x), "is not a number", "nan");
  expect(pg_number("--x", "1e-3 ", &x), "is not a number", "1e-3 ");
  expect(pg_whole("--x", "-5", &n), NULL, "-5");
  assert_int_equal(n, -5);
  expect(pg_whole("--x", "1.0", &n), "is not a whole number", "1.0");
}

static void renamed(void** state) {
  assay_str_t text = {0};
  (void)state;
  pg_rename_flags("--layerPrecisions: 'x' (--precisionConstraints=obey), --timingCacheFile=t",
                  &text);
  assert_string_equal(
      assay_str_get(&text),
      "--layer-precisions: 'x' (--precision-constraints obey), --load-timing-cache t");
  assay_str_deinit(&text);
}

static void layer_types(void** state) {
  assay_node_t n = {.op_type = "Conv"};
  (void)state;
  assert_true(pg_is_layer_type(&n, "convolution") && pg_is_layer_type(&n, "Conv"));
  assert_false(pg_is_layer_type(&n, "DECONVOLUTION"));
  n.op_type = "ReduceSum";
  assert_true(pg_is_layer_type(&n, "REDUCE"));
  n.op_type = "Sum";  // within another operator's name
  assert_false(pg_is_layer_type(&n, "REDUCE"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(outcomes), cmocka_unit_test(lists),       cmocka_unit_test(names),
      cmocka_unit_test(rest),     cmocka_unit_test(runners),     cmocka_unit_test(nearest),
      cmocka_unit_test(rows),     cmocka_unit_test(unique),      cmocka_unit_test(refused_values),
      cmocka_unit_test(pairs),    cmocka_unit_test(shapes),      cmocka_unit_test(numbers),
      cmocka_unit_test(renamed),  cmocka_unit_test(layer_types),
  };
  return cmocka_run_group_tests(tests, make_arena, free_arena);
}
