// What a command line cannot say, beyond what each flag's kind says of it.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "frontends/trtexec/flags.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"
#include "runtime/profile.h"

// Flags that do not go together.
static const struct {
  trt_flag_id_t one, other;
  const char* why;
} conflicts[] = {
    {TRT_FLAG_loadEngine, TRT_FLAG_saveEngine, "a plan that is loaded is there already"},
    {TRT_FLAG_onnx, TRT_FLAG_loadEngine, "give the model or the plan"},
    {TRT_FLAG_best, TRT_FLAG_stronglyTyped, "one allows all formats, the other the model's only"},
    {TRT_FLAG_fp8, TRT_FLAG_int8, "a plan is quantized to one of them"},
    {TRT_FLAG_refitFromOnnx, TRT_FLAG_onnx, "it is for a plan that is loaded: --loadEngine"},
    {TRT_FLAG_noDataTransfers, TRT_FLAG_includeDataTransfers, "they are opposites"},
    {TRT_FLAG_useSpinWait, TRT_FLAG_noSpinWait, "they are opposites"},
    {TRT_FLAG_useCudaGraph, TRT_FLAG_noCudaGraph, "they are opposites"},
};

static assay_status_t check_conflicts(const trt_options_t* o) {
  for (size_t i = 0; i < sizeof conflicts / sizeof *conflicts; i++)
    if (trt_given(o, conflicts[i].one) && trt_given(o, conflicts[i].other))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s and %s do not go together: %s",
                         trt_flags[conflicts[i].one].name, trt_flags[conflicts[i].other].name,
                         conflicts[i].why);
  return NULL;
}

static const struct {
  trt_flag_id_t flag;
  double minimum, maximum;
} ranges[] = {
    {TRT_FLAG_builderOptimizationLevel, 0, 5},
    {TRT_FLAG_iterations, 0, 1e12},
    {TRT_FLAG_duration, -1, 1e9},
    {TRT_FLAG_warmUp, 0, 1e9},
    {TRT_FLAG_sleepTime, 0, 1e6},
    {TRT_FLAG_idleTime, 0, 1e6},
    {TRT_FLAG_infStreams, 1, 256},
    {TRT_FLAG_avgRuns, 1, 1e12},
    {TRT_FLAG_maxTactics, -1, 1e6},
    {TRT_FLAG_avgTiming, 1, 1e6},
    {TRT_FLAG_workspace, 0, 1e9},
    {TRT_FLAG_device, 0, 1e6},
    {TRT_FLAG_useProfile, 0, 1e6},
    {TRT_FLAG_persistentCacheRatio, 0, 1},
    {TRT_FLAG_tilingOptimizationLevel, 0, 3},
    {TRT_FLAG_l2LimitForTiling, -1, 1e18},
    {TRT_FLAG_maxAuxStreams, -1, 1e6},
};

static assay_status_t check_ranges(const trt_options_t* o) {
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    const double x = trt_number(o, ranges[i].flag);
    if (trt_given(o, ranges[i].flag) && !(x >= ranges[i].minimum && x <= ranges[i].maximum))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s=%s: it is %g to %g",
                         trt_flags[ranges[i].flag].name, trt_text(o, ranges[i].flag),
                         ranges[i].minimum, ranges[i].maximum);
  }
  return NULL;
}

static assay_status_t check_levels(const trt_options_t* o) {
  for (int i = 0; i < TRT_N_FLAGS; i++) {
    const trt_flag_t* f = &trt_flags[i];
    if (!o->at[i].given) continue;
    if (f->level == TRT_REJECT)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "%s is not supported: %s", f->name, f->text);
  }
  return NULL;
}

void trt_options_note(const trt_options_t* o) {
  for (int i = 0; i < TRT_N_FLAGS; i++)
    if (o->at[i].given && trt_flags[i].level == TRT_ACCEPT)
      trt_warn("%s has no effect in Assay: %s", trt_flags[i].name, trt_flags[i].text);
}

// ---- lists of words of a flag's own -------------------------------------------------------------

static assay_status_t check_preview(assay_arena_t* arena, const char* text) {
  static const char* const known[] = {
      "profileSharing0806", "aliasedPluginIO1003",     "runtimeActivationResize",
      "multiDeviceRuntime", "fasterDynamicShapes0805", "disableExternalTacticSourcesForCore0805"};
  const char** words = NULL;
  size_t n = 0;
  ASSAY_TRY(trt_words_parse(arena, "--preview", text, &words, &n));
  for (size_t i = 0; i < n; i++) {
    size_t k = 0;
    if (*words[i] != '+' && *words[i] != '-')
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--preview: '%s' needs + or - before it",
                         words[i]);
    while (k < sizeof known / sizeof *known && strcasecmp(known[k], words[i] + 1) != 0) k++;
    if (k == sizeof known / sizeof *known)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--preview: '%s' is not a feature that trtexec has", words[i] + 1);
  }
  return NULL;
}

static assay_status_t check_devices(assay_arena_t* arena, const char* text) {
  trt_item_t* items = NULL;
  size_t n = 0;
  ASSAY_TRY(trt_items_parse(arena, "--layerDeviceTypes", text, &items, &n));
  for (size_t i = 0; i < n; i++) {
    ASSAY_TRY(trt_name_check("--layerDeviceTypes", items[i].name));
    if (strcasecmp(items[i].value, "GPU") != 0 && strcasecmp(items[i].value, "DLA") != 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--layerDeviceTypes: '%s' is neither GPU nor DLA",
                         items[i].value);
  }
  return NULL;
}

static assay_status_t check_pools(assay_arena_t* arena, const char* text, bool workspace) {
  static const char* const others[] = {"dlaSRAM", "dlaLocalDRAM", "dlaGlobalDRAM",
                                       "tacticSharedMem"};
  trt_item_t* items = NULL;
  size_t n = 0;
  ASSAY_TRY(trt_items_parse(arena, "--memPoolSize", text, &items, &n));
  for (size_t i = 0; i < n; i++) {
    uint64_t bytes;
    size_t k = 0;
    ASSAY_TRY(trt_size_parse("--memPoolSize", items[i].value, 0x1p20, &bytes));
    if (strcmp(items[i].name, "workspace") == 0) {
      if (!workspace) continue;
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--memPoolSize=workspace and --workspace are the same limit: give one");
    }
    while (k < sizeof others / sizeof *others && strcmp(others[k], items[i].name) != 0) k++;
    if (k == sizeof others / sizeof *others)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--memPoolSize: '%s' is not a pool: workspace, dlaSRAM, dlaLocalDRAM, "
                         "dlaGlobalDRAM or tacticSharedMem",
                         items[i].name);
    trt_warn("--memPoolSize=%s has no effect in Assay: a CPU has no such memory", items[i].name);
  }
  return NULL;
}

// Bytes with a unit or not, a share in percent, or one of trtexec's own -1 and -2.
static assay_status_t check_budget(const char* text) {
  char* end;
  uint64_t bytes;
  const double percent = strtod(text, &end);
  if (strcmp(text, "-1") == 0 || strcmp(text, "-2") == 0) return NULL;
  if (strcmp(end, "%") == 0 && end != text && percent >= 0 && percent <= 100) return NULL;
  return trt_size_parse("--weightStreamingBudget", text, 1, &bytes);
}

// Shapes as NumPy and other tools write them, "x:[1,3]": told as such, before their ',' are taken
// for those between inputs.
static assay_status_t check_brackets(const char* flag, const char* text) {
  const char* open = text ? strpbrk(text, "[(") : NULL;
  while (open && (open == text || open[-1] != ':')) open = strpbrk(open + 1, "[(");
  if (!open) return NULL;
  const char* name = open - 1;
  while (name > text && name[-1] != ',') name--;
  const size_t n = strcspn(open, "])"), len = n + (open[n] != 0);
  assay_str_t right = {0};
  assay_str_append_n(&right, name, (size_t)(open - name));
  for (size_t i = 1; i < n; i++)
    if (open[i] != ' ') assay_str_append_n(&right, open[i] == ',' ? "x" : &open[i], 1);
  assay_status_t st = ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT,
      "%s: '%.*s' of '%.*s': sizes stand without brackets, with 'x' between them: %s=%s", flag,
      (int)len, open, (int)(open - 1 - name), name, flag, assay_str_get(&right));
  assay_str_deinit(&right);
  return st;
}

static assay_status_t check_shapes(const trt_options_t* o) {
  static const trt_flag_id_t flags[] = {TRT_FLAG_shapes, TRT_FLAG_minShapesCalib,
                                        TRT_FLAG_optShapesCalib, TRT_FLAG_maxShapesCalib};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    ASSAY_TRY(check_brackets(trt_flags[flags[i]].name, trt_text(o, flags[i])));
  for (size_t i = 0; i < o->n_profiles; i++) {
    ASSAY_TRY(check_brackets("--minShapes", o->profiles[i].min));
    ASSAY_TRY(check_brackets("--optShapes", o->profiles[i].opt));
    ASSAY_TRY(check_brackets("--maxShapes", o->profiles[i].max));
  }
  return NULL;
}

static assay_status_t check_lists(const trt_options_t* o, assay_arena_t* arena) {
  double* numbers;
  size_t n;
  ASSAY_TRY(check_shapes(o));
  if (trt_given(o, TRT_FLAG_preview))
    ASSAY_TRY(check_preview(arena, trt_text(o, TRT_FLAG_preview)));
  if (trt_given(o, TRT_FLAG_layerDeviceTypes))
    ASSAY_TRY(check_devices(arena, trt_text(o, TRT_FLAG_layerDeviceTypes)));
  if (trt_given(o, TRT_FLAG_memPoolSize))
    ASSAY_TRY(
        check_pools(arena, trt_text(o, TRT_FLAG_memPoolSize), trt_given(o, TRT_FLAG_workspace)));
  if (trt_given(o, TRT_FLAG_weightStreamingBudget))
    ASSAY_TRY(check_budget(trt_text(o, TRT_FLAG_weightStreamingBudget)));
  return trt_percentiles_parse(arena, "--percentile", trt_text(o, TRT_FLAG_percentile), &numbers,
                               &n);
}

// ---- flags that need, or mean, others -----------------------------------------------------------

static assay_status_t check_profiles(const trt_options_t* o) {
  for (size_t i = 0; i < o->n_profiles; i++) {
    bool there = false;
    for (size_t k = 0; k < o->n_profiles; k++) there |= o->profiles[k].index == (int64_t)i;
    if (!there)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--profile: there is no number %zu among %zu "
                         "profiles: they are numbered from 0 without gaps",
                         i, o->n_profiles);
  }
  const size_t n = o->n_profiles ? o->n_profiles : 1;
  if (n > ASSAY_MAX_PROFILES)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--profile: a plan has %d profiles at most",
                       ASSAY_MAX_PROFILES);
  if (trt_given(o, TRT_FLAG_onnx) && trt_number(o, TRT_FLAG_useProfile) >= (double)n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--useProfile=%s: the highest profile is number %zu",
                       trt_text(o, TRT_FLAG_useProfile), n - 1);
  return NULL;
}

static int by_index(const void* a, const void* b) {
  const trt_pair_text_t *x = a, *y = b;
  return (x->index > y->index) - (x->index < y->index);
}

// Pairs are numbered without gaps, and each has both lists; the first one's inputs are measured.
static assay_status_t check_pairs(trt_options_t* o) {
  if (!o->n_pairs) return NULL;
  qsort(o->pairs, o->n_pairs, sizeof *o->pairs, by_index);
  for (size_t i = 0; i < o->n_pairs; i++)
    if (o->pairs[i].index != (int64_t)i || !o->pairs[i].inputs || !o->pairs[i].outputs)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--refPair: number %zu of %zu is missing, or is not followed by "
                         "--loadInputs and --loadRefOutputs",
                         i, o->n_pairs);
  if (o->n_pairs < 2)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--refPair: there are two pairs at least; of one give --loadInputs and "
                       "--loadRefOutputs alone");
  o->at[TRT_FLAG_loadInputs].text = o->pairs[0].inputs;
  o->at[TRT_FLAG_loadRefOutputs].text = o->pairs[0].outputs;
  return NULL;
}

static assay_status_t check_reference(const trt_options_t* o) {
  static const trt_flag_id_t flags[] = {TRT_FLAG_accuracyThreshold, TRT_FLAG_accuracyAlgorithm,
                                        TRT_FLAG_atol, TRT_FLAG_rtol};
  const bool given = trt_given(o, TRT_FLAG_loadRefOutputs);
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    if (!given && trt_given(o, flags[i]))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s needs --loadRefOutputs=NAME:FILE",
                         trt_flags[flags[i]].name);
    if (i > 1 && trt_given(o, flags[i]) && !trt_is(o, TRT_FLAG_accuracyAlgorithm, "l0"))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s is of --accuracyAlgorithm=l0",
                         trt_flags[flags[i]].name);
    if (i > 1 && trt_number(o, flags[i]) < 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s=%s: it is 0 or more", trt_flags[flags[i]].name,
                         trt_text(o, flags[i]));
  }
  if (given && !(trt_number(o, TRT_FLAG_accuracyThreshold) > 0))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--loadRefOutputs needs --accuracyThreshold=X, above 0");
  return NULL;
}

// Shapes of calibration: opt alone, or all three.
static assay_status_t check_calibration(const trt_options_t* o) {
  const bool min = trt_given(o, TRT_FLAG_minShapesCalib),
             opt = trt_given(o, TRT_FLAG_optShapesCalib),
             max = trt_given(o, TRT_FLAG_maxShapesCalib),
             which = trt_given(o, TRT_FLAG_calibProfile);
  const size_t n = o->n_profiles ? o->n_profiles : 1;
  const double profile = trt_number(o, TRT_FLAG_calibProfile);
  if ((min || max) && !(min && opt && max))
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "--minShapesCalib, --optShapesCalib, --maxShapesCalib: give --optShapesCalib "
        "alone, or all three");
  if (which && !(profile >= 0 && profile < (double)n))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--calibProfile=%s: the highest profile is number %zu",
                       trt_text(o, TRT_FLAG_calibProfile), n - 1);
  if ((opt || which) && trt_given(o, TRT_FLAG_onnx) &&
      (!trt_given(o, TRT_FLAG_int8) || trt_given(o, TRT_FLAG_calib)))
    trt_warn("Shapes of calibration have no effect but with --int8 and without --calib");
  return NULL;
}

static assay_status_t check_needs(const trt_options_t* o) {
  const bool loads = trt_given(o, TRT_FLAG_loadEngine);
  if (!loads && !trt_given(o, TRT_FLAG_onnx))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "Model missing or format not recognized");
  if (trt_given(o, TRT_FLAG_getPlanVersionOnly) && !loads)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--getPlanVersionOnly needs --loadEngine=FILE");
  if (trt_given(o, TRT_FLAG_timeRefit) && !trt_given(o, TRT_FLAG_refitFromOnnx))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--timeRefit needs --refitFromOnnx=FILE");
  ASSAY_TRY(check_reference(o));
  ASSAY_TRY(check_calibration(o));
  if (!loads && !trt_is(o, TRT_FLAG_useRuntime, "full"))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--useRuntime=%s builds nothing: it needs "
                       "--loadEngine",
                       trt_text(o, TRT_FLAG_useRuntime));
  if (trt_given(o, TRT_FLAG_weightStreamingBudget) && !trt_given(o, TRT_FLAG_allowWeightStreaming))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--weightStreamingBudget needs --allowWeightStreaming");
  if (trt_is(o, TRT_FLAG_runtimePlatform, "WindowsAMD64"))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "--runtimePlatform=WindowsAMD64 is not supported: plans "
                       "are built on the machine that runs them");
  return NULL;
}

// What a run would have told, where there is none.
static void warn_of_no_run(const trt_options_t* o) {
  static const trt_flag_id_t flags[] = {TRT_FLAG_loadRefOutputs,
                                        TRT_FLAG_saveDebugTensors,
                                        TRT_FLAG_saveAllDebugTensors,
                                        TRT_FLAG_dumpOutput,
                                        TRT_FLAG_exportOutput,
                                        TRT_FLAG_dumpProfile,
                                        TRT_FLAG_dumpRawBindingsToFile,
                                        TRT_FLAG_exportProfile,
                                        TRT_FLAG_exportTimes};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (trt_given(o, flags[i]))
      trt_warn("%s has no effect with --skipInference: nothing is run", trt_flags[flags[i]].name);
}

static void switch_on(trt_options_t* o, trt_flag_id_t f) { o->at[f].given = true; }

// The defaults of trtexec 11, and what stands for something else.
static void settle(trt_options_t* o) {
  static const trt_flag_id_t formats[] = {TRT_FLAG_fp16, TRT_FLAG_bf16, TRT_FLAG_int8,
                                          TRT_FLAG_best, TRT_FLAG_fp8,  TRT_FLAG_int4};
  if (trt_is(o, TRT_FLAG_compat, "11")) {
    switch_on(o, TRT_FLAG_stronglyTyped);
    switch_on(o, TRT_FLAG_separateProfileRun);
    if (!trt_given(o, TRT_FLAG_includeDataTransfers)) switch_on(o, TRT_FLAG_noDataTransfers);
  }
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (trt_given(o, TRT_FLAG_stronglyTyped) && trt_given(o, formats[i])) {
      trt_warn("%s is switched off: with --stronglyTyped formats are the model's own",
               trt_flags[formats[i]].name);
      o->at[formats[i]].given = false;
    }
  if (trt_given(o, TRT_FLAG_heuristic)) {
    if (trt_given(o, TRT_FLAG_builderOptimizationLevel))
      trt_warn("--heuristic has no effect beside --builderOptimizationLevel");
    else
      o->at[TRT_FLAG_builderOptimizationLevel] = (trt_value_t){.text = "2", .number = 2};
  }
  if (trt_given(o, TRT_FLAG_noBuilderCache) && trt_given(o, TRT_FLAG_timingCacheFile))
    trt_warn("--timingCacheFile has no effect beside --noBuilderCache");
  if (trt_given(o, TRT_FLAG_skipInference)) warn_of_no_run(o);
  if (trt_given(o, TRT_FLAG_workspace))
    trt_warn("--workspace is deprecated: use --memPoolSize=workspace:%s",
             trt_text(o, TRT_FLAG_workspace));
  if (trt_is(o, TRT_FLAG_sparsity, "enable") && trt_given(o, TRT_FLAG_onnx))
    trt_warn(
        "--sparsity=enable has no effect in Assay: no kernel uses 2:4 sparse weights, which give "
        "the "
        "same results as others");
  if (trt_is(o, TRT_FLAG_profilingVerbosity, "default"))
    o->at[TRT_FLAG_profilingVerbosity].text = "layer_names_only";
  if (trt_is(o, TRT_FLAG_profilingVerbosity, "verbose"))
    o->at[TRT_FLAG_profilingVerbosity].text = "detailed";
}

assay_status_t trt_options_check(trt_options_t* o) {
  assay_arena_t* arena = NULL;
  ASSAY_TRY(check_conflicts(o));
  ASSAY_TRY(check_ranges(o));
  ASSAY_TRY(check_levels(o));
  ASSAY_TRY(check_pairs(o));
  ASSAY_TRY(check_profiles(o));
  ASSAY_TRY(check_needs(o));
  ASSAY_TRY(assay_arena_create(&arena));
  assay_status_t st = check_lists(o, arena);
  assay_arena_destroy(arena);
  if (!st) settle(o);
  return st;
}
