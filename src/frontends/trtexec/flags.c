// The flags of trtexec: one table, and what a command line says of them.
#include "frontends/trtexec/flags.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "base/shown.h"
#include "cli/output_paths.h"
#include "cli/verbs/rules_file.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"

const trt_flag_t trt_flags[TRT_N_FLAGS] = {
#define TRT_FLAG(id, kind, level, block, value, fallback, text) \
  {"--" #id, TRT_##kind, TRT_##level, TRT_##block, value, fallback, text},
#define TRT_OWN_FLAG(id, name, kind, level, block, value, fallback, text) \
  {name, TRT_##kind, TRT_##level, TRT_##block, value, fallback, text},
#include "frontends/trtexec/flags.inc"
#undef TRT_FLAG
};

const trt_alias_t trt_aliases[] = {
    {"--vc", TRT_FLAG_versionCompatible, NULL},
    {"--pi", TRT_FLAG_pluginInstanceNorm, NULL},
    {"--buildOnly", TRT_FLAG_skipInference, "--buildOnly is deprecated: use --skipInference"},
    {"--weightless", TRT_FLAG_stripWeights, "--weightless is deprecated: use --stripWeights"},
    {"--streams", TRT_FLAG_infStreams, "--streams is deprecated: use --infStreams"},
    {"--nvtxMode", TRT_FLAG_profilingVerbosity,
     "--nvtxMode is deprecated: use --profilingVerbosity"},
    {0}};

bool trt_is(const trt_options_t* o, trt_flag_id_t f, const char* word) {
  return o->at[f].text && strcmp(o->at[f].text, word) == 0;
}

void trt_options_deinit(trt_options_t* o) {
  assay_free(o->profiles);
  assay_free(o->pairs);
  assay_str_deinit(&o->fix);
  assay_str_deinit(&o->unknown);
}

// ---- finding ------------------------------------------------------------------------------------

static bool is_name(const char* name, const char* arg, size_t n) {
  return strlen(name) == n && strncmp(name, arg, n) == 0;
}

// TRT_N_FLAGS: there is none of this name.
static trt_flag_id_t find(const char* arg, size_t n, const char** note) {
  *note = NULL;
  for (const trt_alias_t* a = trt_aliases; a->name; a++)
    if (is_name(a->name, arg, n)) return *note = a->note, a->flag;
  for (int f = 0; f < TRT_N_FLAGS; f++)
    if (is_name(trt_flags[f].name, arg, n)) return (trt_flag_id_t)f;
  return TRT_N_FLAGS;
}

static const char* nearest(const char* arg, size_t n) {
  const char* best = NULL;
  char name[64];
  if (n >= sizeof name) return NULL;
  int minimum = (int)n / 3 + 1;
  memcpy(name, arg, n);
  name[n] = 0;
  for (int f = 0; f < TRT_N_FLAGS; f++) {
    const int d = assay_distance(name, trt_flags[f].name, minimum);
    if (d < minimum) minimum = d, best = trt_flags[f].name;
  }
  return best;
}

static void add_unknown(trt_options_t* o, const char* arg, const char* why) {
  const char* equals = strchr(arg, '=');
  const size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
  const char* near = why ? NULL : nearest(arg, n);
  assay_str_append_n(&o->unknown, arg, n);
  if (equals) assay_str_printf_raw(&o->unknown, " %s", equals + 1);
  if (why) assay_str_printf_raw(&o->unknown, " (%s)", why);
  if (near) assay_str_printf_raw(&o->unknown, " (did you mean %s?)", near);
  if (!near && !why && arg[0] != '-')
    assay_str_append(&o->unknown, " (values stand after '=': --name=value)");
  assay_str_append(&o->unknown, "\n");
}

// ---- values -------------------------------------------------------------------------------------

static bool is_choice(const char* words, const char* value) {
  const size_t n = strlen(value);
  for (const char* at = words; *at;) {
    const size_t len = strcspn(at, "|");
    if (len == n && strncmp(at, value, n) == 0) return true;
    at += len + (at[len] == '|');
  }
  return false;
}

static bool read_number(const char* text, bool whole, double* out) {
  char* end;
  errno = 0;
  if (whole) {
    const long long i = strtoll(text, &end, 10);
    *out = (double)i;
  } else {
    *out = strtod(text, &end);
  }
  return trt_is_decimal(text) && !*end && !errno && isfinite(*out);
}

static assay_status_t set_value(const trt_flag_t* f, const char* value, trt_value_t* v) {
  const bool whole = f->kind == TRT_INT || f->kind == TRT_PROFILE || f->kind == TRT_PAIR;
  if (f->kind == TRT_SWITCH) return NULL;
  if (!value || !*value)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s needs a value: %s=%s", f->name, f->name,
                       f->value);
  v->text = value;
  if ((whole || f->kind == TRT_FLOAT) && !read_number(value, whole, &v->number))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s=%s: '%s' is not a %snumber", f->name, value,
                       value, whole ? "whole " : "");
  if (f->kind == TRT_CHOICE && !is_choice(f->value, value))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s=%s: it is one of %s", f->name, value, f->value);
  return NULL;
}

// ---- profiles -----------------------------------------------------------------------------------

static assay_status_t new_profile(trt_options_t* o, int64_t index) {
  for (size_t i = 0; i < o->n_profiles; i++)
    if (o->profiles[i].index == index)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--profile=%lld is given twice", (long long)index);
  ASSAY_TRY(assay_grow(&o->profiles, &o->cap_profiles, o->n_profiles + 1, sizeof *o->profiles));
  o->profiles[o->n_profiles++] = (trt_profile_text_t){.index = index};
  return NULL;
}

// grouped: --profile stands before, with nothing but shapes between.
static assay_status_t add_shapes(trt_options_t* o, trt_flag_id_t f, bool grouped) {
  const bool any_group = trt_given(o, TRT_FLAG_profile);
  if (!grouped && any_group)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s=%s: it has to follow its --profile directly",
                       trt_flags[f].name, o->at[f].text);
  if (!o->n_profiles) ASSAY_TRY(new_profile(o, 0));
  trt_profile_text_t* p = &o->profiles[o->n_profiles - 1];
  const char** at = f == TRT_FLAG_minShapes ? &p->min : f == TRT_FLAG_optShapes ? &p->opt : &p->max;
  if (*at)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s=%s: it was given before; several profiles are "
                       "said with --profile=N before each one's shapes",
                       trt_flags[f].name, o->at[f].text);
  *at = o->at[f].text;
  return NULL;
}

static assay_status_t start_profile(trt_options_t* o) {
  const double n = o->at[TRT_FLAG_profile].number;
  if (n < 0 || n > 1e6)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--profile=%s: profiles are numbered from 0",
                       o->at[TRT_FLAG_profile].text);
  return new_profile(o, (int64_t)n);
}

// ---- pairs of inputs and outputs ----------------------------------------------------------------

static assay_status_t start_pair(trt_options_t* o) {
  const trt_value_t* v = &o->at[TRT_FLAG_refPair];
  for (size_t i = 0; i < o->n_pairs; i++)
    if ((double)o->pairs[i].index == v->number)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--refPair=%s is given twice", v->text);
  if (v->number < 0 || v->number > 1e6)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--refPair=%s: pairs are numbered from 0", v->text);
  ASSAY_TRY(assay_grow(&o->pairs, &o->cap_pairs, o->n_pairs + 1, sizeof *o->pairs));
  o->pairs[o->n_pairs++] = (trt_pair_text_t){.index = (int64_t)v->number};
  return NULL;
}

static assay_status_t add_paired(trt_options_t* o, trt_flag_id_t f, bool grouped) {
  if (!o->n_pairs) return NULL;
  if (!grouped)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s=%s: it has to follow its --refPair directly",
                       trt_flags[f].name, o->at[f].text);
  trt_pair_text_t* p = &o->pairs[o->n_pairs - 1];
  const char** at = f == TRT_FLAG_loadInputs ? &p->inputs : &p->outputs;
  if (*at)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s=%s: its --refPair has one already",
                       trt_flags[f].name, o->at[f].text);
  *at = o->at[f].text;
  return NULL;
}

// ---- the command line ---------------------------------------------------------------------------

// What flags that come now may belong to.
typedef enum group { GROUP_NONE = 0, GROUP_PROFILE, GROUP_PAIR } group_t;

static group_t next_group(trt_kind_t kind, group_t now) {
  if (kind == TRT_PROFILE) return GROUP_PROFILE;
  if (kind == TRT_PAIR) return GROUP_PAIR;
  const bool goes_on =
      (kind == TRT_SHAPES && now == GROUP_PROFILE) || (kind == TRT_PAIRED && now == GROUP_PAIR);
  return goes_on ? now : GROUP_NONE;
}

// One argument. *group: what it may belong to.
static assay_status_t take(trt_options_t* o, const char* arg, group_t* group) {
  const char* equals = strchr(arg, '=');
  const char* note;
  const size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
  const trt_flag_id_t id = find(arg, n, &note);
  if (id == TRT_N_FLAGS) return add_unknown(o, arg, NULL), NULL;
  const trt_flag_t* f = &trt_flags[id];
  const bool again = f->kind == TRT_WORDS || f->kind == TRT_PROFILE || f->kind == TRT_SHAPES ||
                     f->kind == TRT_PAIR || (f->kind == TRT_PAIRED && o->n_pairs);
  if (o->at[id].given && !again) return add_unknown(o, arg, "given twice"), NULL;
  ASSAY_TRY(set_value(f, equals ? equals + 1 : NULL, &o->at[id]));
  if (f->kind == TRT_SWITCH && equals)
    trt_warn("%s: its value is ignored, and it is on: leave it out to switch it off", arg);
  if (note) trt_warn("%s", note);
  if (f->kind == TRT_SHAPES) ASSAY_TRY(add_shapes(o, id, *group == GROUP_PROFILE));
  if (f->kind == TRT_PAIR) ASSAY_TRY(start_pair(o));
  if (f->kind == TRT_PAIRED) ASSAY_TRY(add_paired(o, id, *group == GROUP_PAIR));
  if (f->kind == TRT_PROFILE) {
    if (!o->at[id].given && o->n_profiles)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: shapes stand before it that belong to no profile", arg);
    ASSAY_TRY(start_profile(o));
  }
  o->at[id].given = true;
  *group = next_group(f->kind, *group);
  return NULL;
}

assay_status_t trt_options_take_fix(trt_options_t* o) {
  const char* path = o->at[TRT_FLAG_fix_file].text;
  group_t group = GROUP_NONE;
  if (!o->at[TRT_FLAG_fix_file].given) return NULL;
  ASSAY_TRY(assay_status_note(cli_rules_file_trtexec(path, &o->fix), "--fix-file"));
  if (o->at[TRT_FLAG_layerPrecisions].given)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--layerPrecisions is given, and --fix-file=%s has one, too", path);
  for (const char* at = o->fix.text; at < o->fix.text + o->fix.len; at += strlen(at) + 1) {
    const char* note;
    const trt_flag_id_t id = find(at, strcspn(at, "="), &note);
    if (id == TRT_N_FLAGS || !o->at[id].given) ASSAY_TRY(take(o, at, &group));
  }
  return NULL;
}

assay_status_t trt_options_parse(int argc, char** argv, trt_options_t* out,
                                 trt_outcome_t* out_outcome) {
  group_t group = GROUP_NONE;
  *out_outcome = TRT_OUTCOME_HELP;
  if (!argc) return NULL;
  for (int i = 0; i < argc; i++)
    if (strcmp(argv[i], "-h") == 0 || is_name("--help", argv[i], strcspn(argv[i], "=")))
      return NULL;
  for (int f = 0; f < TRT_N_FLAGS; f++) {
    trt_value_t* v = &out->at[f];
    v->text = trt_flags[f].fallback;
    if (v->text && trt_flags[f].kind != TRT_CHOICE && trt_flags[f].kind != TRT_TEXT)
      v->number = strtod(v->text, NULL);
  }
  *out_outcome = TRT_OUTCOME_RUN;
  for (int i = 0; i < argc; i++) ASSAY_TRY(take(out, argv[i], &group));
  if (out->unknown.len || out->unknown.failed) *out_outcome = TRT_OUTCOME_UNKNOWN;
  return assay_str_status(&out->unknown);
}

assay_status_t trt_options_check_outputs(const trt_options_t* o) {
  for (int f = 0; f < TRT_N_FLAGS; f++) {
    const trt_kind_t kind = trt_flags[f].kind;
    if (!o->at[f].given || (kind != TRT_OUTPUT && kind != TRT_CACHE)) continue;
    ASSAY_TRY(cli_output_check(trt_flags[f].name, o->at[f].text,
                               kind == TRT_CACHE ? OUTPUT_CACHE : OUTPUT_FILE));
  }
  return NULL;
}
