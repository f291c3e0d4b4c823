// trtexec's values and command lines: what they are read as, and what is refused.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "edit/weights/calibration_cache.h"
#include "front_case.h"
#include "frontends/trtexec/flags.h"
#include "frontends/trtexec/measure.h"
#include "frontends/trtexec/specs.h"

// ---- values -------------------------------------------------------------------------------------

static void items(void** state) {
  static const struct {
    const char *text, *names[3], *values[3], *error;
  } rows[] = {
      {"a:1x3", {"a"}, {"1x3"}, NULL},
      {"a:1,b:2,c:", {"a", "b", "c"}, {"1", "2", ""}, NULL},
      {"model/layer:0:fp32", {"model/layer:0"}, {"fp32"}, NULL},
      {"'in:0':C:\\x.bin", {"in:0"}, {"C:\\x.bin"}, NULL},
      {"'a,b':1,c:2", {"a,b", "c"}, {"1", "2"}, NULL},
      {"'a:1", {0}, {0}, "quotes"},
      {"a':'1", {0}, {0}, "quotes"},
      {"'a'b:1", {0}, {0}, "quotes"},
      {"'in':0':1", {0}, {0}, "quotes"},
      {"'a':it's.bin", {0}, {0}, "quotes"},
      {"a:'b'", {0}, {0}, "quotes"},
      {"a", {0}, {0}, "is not NAME:VALUE"},
      {":1", {0}, {0}, "no name"},
      {"'':1", {0}, {0}, "no name"},
      {"a:1,", {0}, {0}, "is not NAME:VALUE"},
      {"", {0}, {0}, "is not NAME:VALUE"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    trt_item_t* got = NULL;
    size_t n = 0;
    expect(trt_items_parse(arena, "--x", rows[i].text, &got, &n), rows[i].error, rows[i].text);
    for (size_t k = 0; !rows[i].error && k < 3 && rows[i].names[k]; k++) {
      assert_true(k < n);
      assert_string_equal(got[k].name, rows[i].names[k]);
      assert_string_equal(got[k].value, rows[i].values[k]);
    }
  }
}

static void names(void** state) {
  static const struct {
    const char *name, *text;
    bool matches;
  } rows[] = {{"a", "a", true},    {"a", "b", false},         {"*", "", true},
              {"*", "x/y", true},  {"/enc/*", "/enc/", true}, {"/enc/*", "/dec/a", false},
              {"a*b", "ab", true}, {"a*a", "a", false},       {"*.bias", "x.bias", true},
              {"a?", "ab", false}, {"[a]", "[a]", true},      {"a*c", "abd", false}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (trt_name_matches(rows[i].name, rows[i].text) != rows[i].matches)
      fail_msg("'%s' and '%s'", rows[i].name, rows[i].text);
  expect(trt_name_check("--x", "a*b"), NULL, "a*b");
  expect(trt_name_check("--x", "*b*"), "more than one '*'", "*b*");
}

static void dims(void** state) {
  static const struct {
    const char* text;
    int rank;
    int64_t last;
    bool good;
  } rows[] = {{"1x3x224x224", 4, 224, true},
              {"7", 1, 7, true},
              {"scalar", 0, 0, true},
              {"", 0, 0, true},
              {"-1x3", 0, 0, false},
              {"0", 0, 0, false},
              {"1x", 0, 0, false},
              {"x1", 0, 0, false},
              {"1 x3", 0, 0, false},
              {"1x3.5", 0, 0, false},
              {"99999999999999999999", 0, 0, false},
              {"+1", 0, 0, false},
              {"1X3", 0, 0, false}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const trt_item_t item = {"x", rows[i].text};
    int64_t got[ASSAY_MAX_RANK];
    int rank = -1;
    expect(trt_dims_parse("--x", &item, &rank, got), rows[i].good ? NULL : "is not a shape",
           rows[i].text);
    if (!rows[i].good) continue;
    assert_int_equal(rank, rows[i].rank);
    if (rank) assert_int_equal(got[rank - 1], rows[i].last);
  }
}

static void sizes(void** state) {
  static const struct {
    const char* text;
    uint64_t bytes;
    const char* error;
  } rows[] = {{"16", 16 << 20, NULL},   {"0.25M", 1 << 18, NULL}, {"2g", 2ull << 30, NULL},
              {"5B", 5, NULL},          {"3k", 3072, NULL},       {"1T", 0, "B, K, M or G"},
              {"-1", 0, "not a size"},  {"M", 0, "not a size"},   {"1MB", 0, "B, K, M or G"},
              {"1e30G", 0, "too much"}, {"", 0, "not a size"},    {"0x1M", 0, "not a size"},
              {" 1M", 0, "not a size"}, {"nanM", 0, "not a size"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint64_t bytes = 0;
    expect(trt_size_parse("--x", rows[i].text, 0x1p20, &bytes), rows[i].error, rows[i].text);
    assert_int_equal(bytes, rows[i].bytes);
  }
}

static void io_formats(void** state) {
  trt_io_format_t* f = NULL;
  size_t n;
  (void)state;
  expect(trt_io_formats_parse(arena, "--x", "fp16:chw,int8:chw32+chw,hwc", &f, &n), NULL, "three");
  assert_int_equal(n, 3);
  assert_int_equal(f[0].type, ASSAY_TYPE_FLOAT16);
  assert_string_equal(f[1].layouts, "chw32+chw");
  assert_int_equal(f[2].type, ASSAY_TYPE_UNDEFINED);
  expect(trt_io_formats_parse(arena, "--x", "fp12:chw", &f, &n), "'fp12' is not a type",
         "fp12:chw");
  expect(trt_io_formats_parse(arena, "--x", "fp16:wch", &f, &n), "'wch' is not a layout",
         "fp16:wch");
  expect(trt_io_formats_parse(arena, "--x", "fp16:dla_linear", &f, &n), "no DLA", "dla_linear");
  expect(trt_io_formats_parse(arena, "--x", "fp16:chw+", &f, &n), "is not a layout", "fp16:chw+");
}

static void percentiles(void** state) {
  const double sorted[] = {1, 2, 3, 4};
  double* p = NULL;
  size_t n;
  (void)state;
  expect(trt_percentiles_parse(arena, "--x", "0,50,99.9,100", &p, &n), NULL, "four");
  assert_int_equal(n, 4);
  assert_true(p[2] == 99.9);
  expect(trt_percentiles_parse(arena, "--x", "101", &p, &n), "0 to 100", "101");
  expect(trt_percentiles_parse(arena, "--x", "nan", &p, &n), "0 to 100", "nan");
  expect(trt_percentiles_parse(arena, "--x", "5%", &p, &n), "0 to 100", "5%");
  // max(n - 1 - trunc((1 - p/100) n), 0)
  assert_true(trt_percentile(sorted, 4, 100) == 4);
  assert_true(trt_percentile(sorted, 4, 99) == 4);
  assert_true(trt_percentile(sorted, 4, 75) == 3);
  assert_true(trt_percentile(sorted, 4, 50) == 2);
  assert_true(trt_percentile(sorted, 4, 0) == 1);
  assert_true(trt_median(sorted, 4) == 2.5);
  assert_true(trt_median(sorted, 3) == 2);
}

static void file_names(void** state) {
  char name[201];
  assay_str_t text = {0};
  (void)state;
  trt_file_name("a/b:0 c.d_e-f,g", &text);
  assert_string_equal(assay_str_get(&text), "a_b_0_c.d_e-f,g");
  assay_str_deinit(&text);
  text = (assay_str_t){0};
  memset(name, 'x', 200);
  name[0] = 'a', name[199] = 'z', name[200] = 0;
  trt_file_name(name, &text);
  assert_true(text.len <= 150 && text.text[0] == 'a' && text.text[text.len - 1] == 'z');
  assert_non_null(strstr(text.text, "..."));
  assay_str_deinit(&text);
}

static void calibration(void** state) {
  static const char good[] =
      "TRT-8601-EntropyCalibration2\nx: 3c010a14\na:b c: 3f800000\nno scale\n";
  static const char* const bad[][2] = {{"x: 3c010a14\n", "not a calibration cache"},
                                       {"TRT-1-E\nx:3c010a14\n", "line 2"},
                                       {"TRT-1-E\nx: 3c010a1\n", "8 hexadecimal"},
                                       {"TRT-1-E\nx: 3c010a1g\n", "8 hexadecimal"},
                                       {"TRT-1-E\nx: 7fc00000\n", "negative or no number"},
                                       {"", "not a calibration cache"}};
  assay_edit_scale_t* s = NULL;
  size_t n;
  (void)state;
  expect(assay_calibration_cache_parse(arena, good, sizeof good - 1, &s, &n), NULL, "good");
  assert_int_equal(n, 2);
  assert_string_equal(s[1].name, "a:b c");
  assert_true(s[1].scale == 1.0f && fabsf(s[0].scale - 0.0078759f) < 1e-6f);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    expect(assay_calibration_cache_parse(arena, bad[i][0], strlen(bad[i][0]), &s, &n), bad[i][1],
           bad[i][0]);
}

// A cache that is written is read again to the bit.
static void calibration_written(void** state) {
  static const assay_edit_scale_t scales[] = {{"x", 0.1f}, {"a: b", 0x1p-140f}, {"y", 3.0f}};
  char path[] = "/tmp/assay-calibration-XXXXXX";
  assay_edit_scale_t* s = NULL;
  size_t n = 0;
  (void)state;
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  expect(assay_calibration_cache_write(path, "MinMaxCalibration", scales, 3), NULL, "write");
  expect(assay_calibration_cache_read(arena, path, &s, &n), NULL, "read");
  unlink(path);
  assert_int_equal(n, 3);
  for (size_t i = 0; i < n; i++) {
    assert_string_equal(s[i].name, scales[i].name);
    assert_memory_equal(&s[i].scale, &scales[i].scale, sizeof s[i].scale);
  }
  expect(assay_calibration_cache_write("/no/such/folder/c", "MinMaxCalibration", scales, 3),
         "/no/such", "no folder");
}

// ---- command lines ------------------------------------------------------------------------------

// Reads words with ' ' between, and checks them.
static assay_status_t read_line(const char* line, trt_options_t* o, trt_outcome_t* outcome) {
  static char copy[4096];
  char *argv[64], *save = NULL;
  int argc = 0;
  *o = (trt_options_t){0};
  snprintf(copy, sizeof copy, "%s", line);
  for (char* w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) argv[argc++] = w;
  assay_status_t st = trt_options_parse(argc, argv, o, outcome);
  return st || *outcome != TRT_OUTCOME_RUN ? st : trt_options_check(o);
}

static void lines(void** state) {
  static const struct {
    const char *line, *error, *unknown;
    trt_outcome_t outcome;
  } rows[] = {
      {"", NULL, NULL, TRT_OUTCOME_HELP},
      {"--onnx=m --fp17 --help", NULL, NULL, TRT_OUTCOME_HELP},
      {"-h", NULL, NULL, TRT_OUTCOME_HELP},
      {"--help=0 --nonsense", NULL, NULL, TRT_OUTCOME_HELP},
      {"--onnx=m --duration=0x10", "is not a number", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --percentile=0x10", "0 to 100", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --iterations=9223372036854775808", "is not a whole number", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --memPoolSize=workspace:1 --workspace=1", "give one", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --streams=2 --infStreams=2", NULL, "--infStreams 2 (given twice)\n",
       TRT_OUTCOME_UNKNOWN},
      {"--onnx=m --fp16=0", NULL, NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --fp17", NULL, "--fp17 (did you mean --fp16?)\n", TRT_OUTCOME_UNKNOWN},
      {"--onnx m", "--onnx needs a value", NULL, TRT_OUTCOME_RUN},
      {"--fp16 m", NULL, "m (values stand after '=': --name=value)\n", TRT_OUTCOME_UNKNOWN},
      {"--ONNX=m", NULL, "--ONNX m (did you mean --onnx?)\n", TRT_OUTCOME_UNKNOWN},
      {"--fp", NULL, "--fp (did you mean --fp8?)\n", TRT_OUTCOME_UNKNOWN},
      {"--onnx=m --fp16 --fp16", NULL, "--fp16 (given twice)\n", TRT_OUTCOME_UNKNOWN},
      {"--onnx=m --show_native", NULL, "--show_native (did you mean --show-native?)\n",
       TRT_OUTCOME_UNKNOWN},
      {"--fp16", "Model missing or format not recognized", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --loadEngine=p", "do not go together", NULL, TRT_OUTCOME_RUN},
      {"--loadEngine=p --saveEngine=q", "--loadEngine and --saveEngine", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --best --stronglyTyped", "do not go together", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --fp8 --int8", "do not go together", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --iterations=10abc", "is not a whole number", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --iterations=", "needs a value", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --iterations=1.5", "is not a whole number", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --duration=inf", "is not a number", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --duration=-2", "it is -1 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --builderOptimizationLevel=6", "it is 0 to 5", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --infStreams=0", "it is 1 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --profilingVerbosity=loud", "is one of layer_names_only|", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --percentile=50,101", "0 to 100", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --memPoolSize=attic:5", "is not a pool", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --memPoolSize=workspace:-5", "not a size", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --runtimePlatform=WindowsAMD64", "not supported", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --useRuntime=lean", "needs --loadEngine", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --preview=+profileSharing0806,-nothing", "is not a feature", NULL,
       TRT_OUTCOME_RUN},
      {"--onnx=m --preview=profileSharing0806", "needs + or -", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --layerDeviceTypes=a:TPU", "neither GPU nor DLA", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --weightStreamingBudget=5", "needs --allowWeightStreaming", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --allowWeightStreaming --weightStreamingBudget=50%", NULL, NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --allowWeightStreaming --weightStreamingBudget=-2", NULL, NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --allowWeightStreaming --weightStreamingBudget=2G", NULL, NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --allowWeightStreaming --weightStreamingBudget=-3", "not a size", NULL,
       TRT_OUTCOME_RUN},
      {"--onnx=m --allowWeightStreaming --weightStreamingBudget=101%", "B, K, M or G", NULL,
       TRT_OUTCOME_RUN},
      {"--onnx=m --refitFromOnnx=n", "do not go together", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --noDataTransfers --includeDataTransfers", "do not go together", NULL,
       TRT_OUTCOME_RUN},
      {"--onnx=m --useSpinWait --noSpinWait", "do not go together", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --useCudaGraph --noCudaGraph", "do not go together", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --builderOptimizationLevel=-1", "it is 0 to 5", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --iterations=-1", "it is 0 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --warmUp=-1", "it is 0 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --sleepTime=-1", "it is 0 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --idleTime=-1", "it is 0 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --avgRuns=0", "it is 1 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --avgTiming=0", "it is 1 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --maxTactics=-2", "it is -1 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --workspace=-1", "it is 0 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --useProfile=-1", "it is 0 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --device=-1", "it is 0 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --calibProfile=1", "highest profile is number 0", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --accuracyThreshold=1", "needs --loadRefOutputs", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --profile=-1", "numbered from 0", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --refPair=-1", "numbered from 0", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --persistentCacheRatio=2", "it is 0 to 1", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --tilingOptimizationLevel=4", "it is 0 to 3", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --maxAuxStreams=-2", "it is -1 to", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --sparsity=force", NULL, NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --minShapes=x:1 --minShapes=x:2", "given before", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --profile=0 --optShapes=x:1 --maxShapes=x:2", NULL, NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --profile=0 --fp16 --optShapes=x:1", "follow its --profile directly", NULL,
       TRT_OUTCOME_RUN},
      {"--onnx=m --optShapes=x:1 --profile=0", "belong to no profile", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --profile=0 --profile=0", "given twice", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --profile=1 --optShapes=x:1", "no number 0", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --profile=0 --optShapes=x:1 --profile=1 --optShapes=x:2 --useProfile=1", NULL,
       NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --profile=0 --optShapes=x:1 --profile=1 --optShapes=x:2 --useProfile=2",
       "highest profile is number 1", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --loadInputs=a:b --loadInputs=a:c", NULL, "--loadInputs a:c (given twice)\n",
       TRT_OUTCOME_UNKNOWN},
      {"--onnx=m --refPair=0 --loadInputs=a:b --loadInputs=a:c", "has one already", NULL,
       TRT_OUTCOME_RUN},
      {"--onnx=m --refPair=1 --refPair=1", "--refPair=1 is given twice", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --useProfile=1", "highest profile is number 0", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --getPlanVersionOnly", "needs --loadEngine", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --timeRefit", "needs --refitFromOnnx", NULL, TRT_OUTCOME_RUN},
      {"--onnx=m --output=a --output=b", "--output is not supported", NULL, TRT_OUTCOME_RUN},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    trt_options_t o;
    trt_outcome_t outcome = TRT_OUTCOME_RUN;
    expect(read_line(rows[i].line, &o, &outcome), rows[i].error, rows[i].line);
    if (!rows[i].error && outcome != rows[i].outcome)
      fail_msg("'%s': outcome %d, not %d", rows[i].line, (int)outcome, (int)rows[i].outcome);
    if (rows[i].unknown) assert_string_equal(assay_str_get(&o.unknown), rows[i].unknown);
    trt_options_deinit(&o);
  }
}

static void meanings(void** state) {
  trt_options_t o;
  trt_outcome_t outcome;
  (void)state;
  expect(read_line(
             "--onnx=a=b --profile=0 --maxShapes=x:2 --minShapes=x:1 --int8 --int4 --stronglyTyped",
             &o, &outcome),
         NULL, "1");
  assert_string_equal(trt_text(&o, TRT_FLAG_onnx), "a=b");
  assert_string_equal(o.profiles[0].max, "x:2");
  assert_null(o.profiles[0].opt);
  assert_false(trt_given(&o, TRT_FLAG_int8));
  assert_false(trt_given(&o, TRT_FLAG_int4));
  assert_true(trt_number(&o, TRT_FLAG_duration) == 3 && !trt_given(&o, TRT_FLAG_duration));
  trt_options_deinit(&o);
  expect(read_line("--onnx=m --compat=11 --streams=2 --nvtxMode=verbose --heuristic", &o, &outcome),
         NULL, "2");
  assert_true(trt_given(&o, TRT_FLAG_stronglyTyped) && trt_given(&o, TRT_FLAG_noDataTransfers));
  assert_true(trt_number(&o, TRT_FLAG_infStreams) == 2);
  assert_true(trt_is(&o, TRT_FLAG_profilingVerbosity, "detailed"));
  assert_true(trt_number(&o, TRT_FLAG_builderOptimizationLevel) == 2);
  assert_string_equal(trt_text(&o, TRT_FLAG_builderOptimizationLevel), "2");
  trt_options_deinit(&o);
  expect(read_line("--onnx=m --compat=11 --best --heuristic --builderOptimizationLevel=4", &o,
                   &outcome),
         NULL, "3");
  assert_false(trt_given(&o, TRT_FLAG_best));
  assert_true(trt_number(&o, TRT_FLAG_builderOptimizationLevel) == 4);
  trt_options_deinit(&o);
}

// Every flag, with a value of its kind: what its level says happens.
static void levels(void** state) {
  (void)state;
  for (int i = 0; i < TRT_N_FLAGS; i++) {
    const trt_flag_t* f = &trt_flags[i];
    trt_options_t o;
    trt_outcome_t outcome;
    char line[256], word[64] = "1";
    if (f->level == TRT_WORKS || f->level == TRT_ACCEPT) continue;  // test_trtexec.py
    if (f->kind == TRT_CHOICE)
      snprintf(word, sizeof word, "%.*s", (int)strcspn(f->value, "|"), f->value);
    snprintf(line, sizeof line, f->kind == TRT_SWITCH ? "--onnx=m %s" : "--onnx=m %s=%s", f->name,
             word);
    assay_status_t st = read_line(line, &o, &outcome);
    const char* message = st ? assay_status_message(st) : "(good)";
    const char* says = " is not supported: ";
    if (strncmp(message, f->name, strlen(f->name)) != 0 || !strstr(message, says) ||
        !strstr(message, f->text))
      fail_msg("%s: %s", line, message);
    assay_status_free(st);
    trt_options_deinit(&o);
  }
}

// Folders for temporary files are made where the line says, or not at all.
static void temporary(void** state) {
  static const struct {
    const char *more, *error, *refused;
  } rows[] = {
      {"", NULL, NULL},
      {" --tempfileControls=temporary:allow,in_memory:deny", NULL, NULL},
      {" --tempfileControls=in_memory:allow,temporary:deny", NULL, "temporary:deny does not allow"},
      {" --tempfileControls=temporary:deny,temporary:deny", "given twice", NULL},
      {" --tempfileControls=", "", NULL},
  };
  char folder[] = "/tmp/assay_test.XXXXXX", line[256];
  (void)state;
  assert_non_null(mkdtemp(folder));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    trt_options_t o;
    trt_outcome_t outcome;
    assay_str_t path = {0};
    snprintf(line, sizeof line, "--onnx=m --tempdir=%s%s", folder, rows[i].more);
    assay_status_t st = read_line(line, &o, &outcome);
    if (!st) st = trt_rule_temporary(&o);
    expect(st, rows[i].error, line);
    if (!rows[i].error) {
      expect(assay_folder_make_temporary(&path), rows[i].refused, line);
      assert_int_equal(strncmp(assay_str_get(&path), folder, path.len ? strlen(folder) : 0), 0);
      assert_int_equal(path.len > 0, !rows[i].refused);
      if (path.len) assert_int_equal(rmdir(assay_str_get(&path)), 0);
    }
    assay_folder_rule_temporary(NULL, NULL);
    assay_str_deinit(&path);
    trt_options_deinit(&o);
  }
  // What nobody may write; to the superuser that is nothing.
  if (geteuid() != 0) {
    trt_options_t o;
    trt_outcome_t outcome;
    assert_int_equal(chmod(folder, 0500), 0);
    snprintf(line, sizeof line, "--onnx=m --tempdir=%s", folder);
    assay_status_t st = read_line(line, &o, &outcome);
    if (!st) st = trt_rule_temporary(&o);
    expect(st, "nothing can be written there", line);
    trt_options_deinit(&o);
  }
  assert_int_equal(rmdir(folder), 0);
}

// A line of one flag, as it is read; nothing of what flags say together is checked.
static void expect_read(const char* line, const char* error, const char* unknown) {
  char copy[512];
  char* argv[8];
  char* save = NULL;
  int argc = 0;
  trt_options_t o = {0};
  trt_outcome_t outcome;
  snprintf(copy, sizeof copy, "%s", line);
  for (char* w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) argv[argc++] = w;
  expect(trt_options_parse(argc, argv, &o, &outcome), error, line);
  if (!error && (outcome == TRT_OUTCOME_UNKNOWN) != (unknown != NULL))
    fail_msg("'%s': outcome %d", line, (int)outcome);
  if (unknown && !strstr(assay_str_get(&o.unknown), unknown))
    fail_msg("'%s': '%s'; '%s' was expected", line, assay_str_get(&o.unknown), unknown);
  trt_options_deinit(&o);
}

// Every flag: without its value, with one that is none of its kind, twice, and misspelt.
static void malformed(void** state) {
  static const struct {
    const char *bad, *bad_error, *good, *twice_error;
    bool again;  // without any error
  } kinds[] = {
      [TRT_SWITCH] = {NULL, NULL, NULL, NULL, false},
      [TRT_TEXT] = {NULL, NULL, "1", NULL, false},
      [TRT_OUTPUT] = {NULL, NULL, "1", NULL, false},
      [TRT_CACHE] = {NULL, NULL, "1", NULL, false},
      [TRT_INT] = {"10abc", "is not a whole number", "1", NULL, false},
      [TRT_FLOAT] = {"10abc", "is not a number", "1", NULL, false},
      [TRT_CHOICE] = {"any", "it is one of ", NULL, NULL, false},
      [TRT_WORDS] = {NULL, NULL, "1", NULL, true},
      [TRT_PROFILE] = {"0.5", "is not a whole number", "1", "is given twice", false},
      [TRT_SHAPES] = {NULL, NULL, "x:1", "it was given before", false},
      [TRT_PAIR] = {"0.5", "is not a whole number", "1", "is given twice", false},
      [TRT_PAIRED] = {NULL, NULL, "x:y", NULL, false},
  };
  (void)state;
  for (int i = 0; i < TRT_N_FLAGS; i++) {
    const trt_flag_t* f = &trt_flags[i];
    const bool value = f->kind != TRT_SWITCH;
    char line[512], word[64] = "", wrong[128];
    if (kinds[f->kind].good) snprintf(word, sizeof word, "%s", kinds[f->kind].good);
    if (f->kind == TRT_CHOICE)
      snprintf(word, sizeof word, "%.*s", (int)strcspn(f->value, "|"), f->value);
    snprintf(line, sizeof line, "%s", f->name);
    expect_read(line, value ? "needs a value" : NULL, NULL);
    snprintf(line, sizeof line, "%s=", f->name);
    expect_read(line, value ? "needs a value" : NULL, NULL);
    if (kinds[f->kind].bad) {
      snprintf(line, sizeof line, "%s=%s", f->name, kinds[f->kind].bad);
      expect_read(line, kinds[f->kind].bad_error, NULL);
    }
    snprintf(line, sizeof line, "%s%s%s %s%s%s", f->name, value ? "=" : "", word, f->name,
             value ? "=" : "", word);
    const bool unknown = !kinds[f->kind].again && !kinds[f->kind].twice_error;
    expect_read(line, kinds[f->kind].twice_error, unknown ? "(given twice)\n" : NULL);
    snprintf(line, sizeof line, "%sq", f->name);
    snprintf(wrong, sizeof wrong, "%sq (did you mean %s?)\n", f->name, f->name);
    expect_read(line, NULL, wrong);
  }
}

// Any allocation may fail while a line is read.
static void no_memory(void** state) {
  (void)state;
  bool reached = true;
  for (uint64_t nth = 1; reached; nth++) {
    trt_options_t o;
    trt_outcome_t outcome;
    assay_alloc_fail_after(nth, false);
    assay_status_t st = read_line(
        "--onnx=m --profile=0 --optShapes=x:1 --memPoolSize=workspace:5,dlaSRAM:1 "
        "--preview=+profileSharing0806",
        &o, &outcome);
    reached = assay_alloc_fail_after(0, false) >= nth;
    if (!reached) assert_null(st);
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    trt_options_deinit(&o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(items),
      cmocka_unit_test(names),
      cmocka_unit_test(dims),
      cmocka_unit_test(sizes),
      cmocka_unit_test(io_formats),
      cmocka_unit_test(percentiles),
      cmocka_unit_test(file_names),
      cmocka_unit_test(calibration),
      cmocka_unit_test(calibration_written),
      cmocka_unit_test(lines),
      cmocka_unit_test(meanings),
      cmocka_unit_test(levels),
      cmocka_unit_test(temporary),
      cmocka_unit_test(malformed),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, make_arena, free_arena);
}
