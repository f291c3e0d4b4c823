// What values cannot be, and what flags of other machines mean here.
#include <string.h>
#include <strings.h>

#include "frontends/polygraphy/flags.h"
#include "frontends/polygraphy/log.h"

// Words that a flag may have, whatever their case, and those that ask for nothing that is not so
// anyway: they get no note, and no error.
typedef struct wording {
  pg_flag_id_t flag;
  const char* words;  // NULL: any
  const char* plain;  // "": none
} wording_t;
static const wording_t wordings[] = {
    {PG_FLAG_model_type, "onnx|engine|frozen|keras|ckpt|uff|caffe|trt-network-script",
     "onnx|engine"},
    {PG_FLAG_providers, NULL, "cpu|CPUExecutionProvider"},
    {PG_FLAG_data_loader_backend_module, "numpy|torch", "numpy"},
    {PG_FLAG_graph_optimization_level,
     "ORT_DISABLE_ALL|ORT_ENABLE_BASIC|ORT_ENABLE_EXTENDED|ORT_ENABLE_LAYOUT|ORT_ENABLE_ALL|"
     "DISABLE_ALL|ENABLE_BASIC|ENABLE_EXTENDED|ENABLE_LAYOUT|ENABLE_ALL",
     "ORT_DISABLE_ALL|DISABLE_ALL"},
    {PG_FLAG_hardware_compatibility_level, "none|ampere_plus|same_compute_capability", "none"},
    {PG_FLAG_runtime_platform, "same_as_build|windows_amd64", "same_as_build"},
    {PG_FLAG_engine_capability, "standard|safety|dla_standalone", "standard"},
    {PG_FLAG_tiling_optimization_level, "none|fast|moderate|full", "none"},
    {PG_FLAG_onnx_flags,
     "native_instancenorm|enable_uint8_and_asymmetric_quantization_dla|report_capability_dla|"
     "enable_plugin_override|adjust_for_dla",
     ""},
    {PG_FLAG_calib_base_cls,
     "IInt8EntropyCalibrator2|IInt8EntropyCalibrator|IInt8MinMaxCalibrator|IInt8LegacyCalibrator",
     NULL},
    {PG_FLAG_profiling_verbosity, "layer_names_only|none|detailed", NULL},
    {PG_FLAG_allocation_strategy, "static|profile|runtime", NULL},
};
enum { N_WORDINGS = sizeof wordings / sizeof *wordings };

static bool is_among(const char* words, const char* word) {
  for (const char* at = words; *at;) {
    const size_t n = strcspn(at, "|");
    if (n == strlen(word) && strncasecmp(at, word, n) == 0) return true;
    at += n + (at[n] == '|');
  }
  return false;
}

static const wording_t* wording_of(pg_flag_id_t f) {
  for (int i = 0; i < N_WORDINGS; i++)
    if (wordings[i].flag == f) return &wordings[i];
  return NULL;
}

// The first spelling.
static int name_length(const pg_flag_t* f) { return (int)strcspn(f->names, " "); }

static assay_status_t check_word(pg_flag_id_t id, const wording_t* w, const char* word,
                                 bool* out_plain) {
  const pg_flag_t* f = &pg_flags[id];
  if (w->words && !is_among(w->words, word))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%.*s: '%s' is none of %s", name_length(f), f->names,
                       word, w->words);
  *out_plain &= w->plain && is_among(w->plain, word);
  return NULL;
}

// Whether all that was given for a flag asks for what is so anyway.
static assay_status_t is_plain(const pg_args_t* a, pg_flag_id_t id, bool* out) {
  const wording_t* w = wording_of(id);
  const pg_value_t* v = &a->at[id];
  *out = w != NULL;
  if (w && v->text) ASSAY_TRY(check_word(id, w, v->text, out));
  for (size_t i = 0; w && i < v->words.n; i++) ASSAY_TRY(check_word(id, w, v->words.items[i], out));
  return NULL;
}

static assay_status_t check_flag(const pg_args_t* a, pg_flag_id_t id) {
  const pg_flag_t* f = &pg_flags[id];
  const int n = name_length(f);
  bool plain;
  ASSAY_TRY(is_plain(a, id, &plain));
  if (plain) return NULL;
  switch (f->level) {
    case PG_WORKS:
      return NULL;
    case PG_ACCEPT:
      pg_log(PG_WARNING, "%.*s has no effect in Assay: %s", n, f->names, f->text);
      return NULL;
    case PG_REJECT:
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "%.*s is not supported: %s", n, f->names, f->text);
  }
  return NULL;
}

// Fractions, whether they are used or not.
static assay_status_t check_fractions(const pg_args_t* a) {
  static const pg_flag_id_t flags[] = {PG_FLAG_quantile, PG_FLAG_regression_cutoff};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    const double x = pg_float(a, flags[i]);
    if (pg_given(a, flags[i]) && !(x >= 0 && x <= 1))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s %g: it is 0 to 1", pg_flags[flags[i]].names,
                         x);
  }
  return NULL;
}

assay_status_t pg_args_check(const pg_args_t* a) {
  if (a->note) pg_log(PG_WARNING, "%s", a->note);
  for (int f = 0; f < PG_N_FLAGS; f++)
    if (a->at[f].given) ASSAY_TRY(check_flag(a, (pg_flag_id_t)f));
  ASSAY_TRY(check_fractions(a));
  const char* type = a->at[PG_FLAG_model_type].text;
  if (type && strcmp(type, "onnx") != 0 && strcmp(type, "engine") != 0)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "--model-type %s is not supported: convert the model to ONNX", type);
  for (size_t i = 0; i < a->at[PG_FLAG_compare].words.n; i++)
    if (strcmp(a->at[PG_FLAG_compare].words.items[i], "perceptual_metrics") == 0)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "--compare perceptual_metrics is not supported: it needs a neural network "
                         "of its own; use psnr or snr");
  return NULL;
}
