// What --tensor-dtypes and --tensor-formats ask of inputs and outputs.
#include "frontends/polygraphy/ends.h"

#include <ctype.h>
#include <string.h>

#include "frontends/polygraphy/model.h"
#include "frontends/trtexec/layouts.h"
#include "frontends/trtexec/specs.h"

// The first name of a flag, for messages.
static assay_status_t name_of(pg_job_t* j, pg_flag_id_t flag, const char** out) {
  const char* names = pg_flags[flag].names;
  return assay_arena_strndup(j->arena, names, strcspn(names, " "), out);
}

static const assay_valtype_t* type_of(const assay_value_t* v) {
  return v->type ? v->type : v->declared;
}

// ---- types --------------------------------------------------------------------------------------

// The type that is asked for a value; NULL: none.
static assay_status_t wanted_type(pg_job_t* j, const assay_value_t* v, const char** out) {
  const pg_args_t* a = j->args;
  const assay_valtype_t* t = type_of(v);
  const char *name = NULL, *flag = NULL;
  ASSAY_TRY(pg_pair_find(j->arena, pg_words(a, PG_FLAG_tensor_dtypes), v->name, &name));
  ASSAY_TRY(name_of(j, name ? PG_FLAG_tensor_dtypes : PG_FLAG_all_tensor_dtypes, &flag));
  if (!name && t && assay_type_is_float(t->elem)) name = pg_text(a, PG_FLAG_all_tensor_dtypes);
  *out = NULL;
  if (!name) return NULL;
  const assay_type_t type = pg_type_parse(name);
  *out = type ? trt_type_word(type) : "";
  return **out ? NULL
               : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' is not a type, such as float16",
                             flag, name);
}

// ---- layouts ------------------------------------------------------------------------------------

static assay_status_t refuse_layout(const char* flag, const char* word) {
  assay_str_t known = {0};
  if (strncmp(word, "dla_", 4) == 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s': there is no DLA; use linear", flag, word);
  for (const trt_layout_t* l = trt_layouts; l->word; l++)
    assay_str_printf(&known, "%s%s", known.len ? ", " : "", l->spatial ? l->word : "linear");
  assay_status_t st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' is not a layout: %s", flag,
                                  word, assay_str_get(&known));
  assay_str_deinit(&known);
  return st;
}

// A name of TensorRT's TensorFormat, in any case, in trtexec's word. A ',' after it, as
// Polygraphy's help shows it, is not part of it.
static assay_status_t put_layout(pg_job_t* j, const char* flag, const char* word,
                                 assay_str_t* out) {
  char* lower = NULL;
  size_t n = strlen(word);
  if (n && word[n - 1] == ',') n--;
  ASSAY_TRY(assay_arena_new(j->arena, n + 1, 1, &lower));
  for (size_t i = 0; i < n; i++) lower[i] = (char)tolower((unsigned char)word[i]);
  lower[n] = '\0';
  const trt_layout_t* l = trt_layout_find(lower, n);
  if (strcmp(lower, "linear") == 0)
    l = trt_layouts;
  else if (l && !l->spatial)
    l = NULL;  // chw is not its name here
  if (!l) return refuse_layout(flag, lower);
  assay_str_printf(out, "%s%s", out->len ? "+" : "", l->word);
  return NULL;
}

static assay_status_t put_layouts(pg_job_t* j, const char* flag, const char* list,
                                  assay_str_t* out) {
  pg_words_t words;
  ASSAY_TRY(pg_list_split(j->arena, flag, list, &words));
  for (size_t i = 0; i < words.n; i++) ASSAY_TRY(put_layout(j, flag, words.items[i], out));
  if (words.n) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' names no layout, such as [linear,chw4]",
                     flag, list);
}

static assay_status_t choose(pg_job_t* j, const char* flag, const assay_value_t* v,
                             const char* layouts, const trt_layout_t** out) {
  const assay_valtype_t* t = type_of(v);
  const bool known = t && t->kind == ASSAY_KIND_TENSOR && t->has_shape;
  const char* word = NULL;
  assay_type_t type = t ? t->elem : ASSAY_TYPE_UNDEFINED;
  ASSAY_TRY(pg_pair_find(j->arena, pg_words(j->args, PG_FLAG_tensor_dtypes), v->name, &word));
  if (word) type = pg_type_parse(word);
  return trt_layout_choose(flag, layouts, v->name, known ? t->rank : -1, type,
                           pg_given(j->args, PG_FLAG_direct_io), out);
}

// The layout that is asked for a value; rows where none is.
static assay_status_t wanted_layout(pg_job_t* j, const assay_value_t* v, const trt_layout_t** out) {
  const pg_words_t* all = pg_words(j->args, PG_FLAG_all_tensor_formats);
  const char *list = NULL, *flag = NULL;
  assay_str_t layouts = {0};
  assay_status_t st = NULL;
  *out = trt_layouts;
  ASSAY_TRY(pg_pair_find(j->arena, pg_words(j->args, PG_FLAG_tensor_formats), v->name, &list));
  ASSAY_TRY(name_of(j, list ? PG_FLAG_tensor_formats : PG_FLAG_all_tensor_formats, &flag));
  if (list) st = put_layouts(j, flag, list, &layouts);
  for (size_t i = 0; !st && !list && i < all->n; i++)
    st = put_layouts(j, flag, all->items[i], &layouts);
  if (!st) st = assay_str_status(&layouts);
  if (!st && layouts.len) st = choose(j, flag, v, assay_str_get(&layouts), out);
  assay_str_deinit(&layouts);
  return st;
}

// ---- both ---------------------------------------------------------------------------------------

assay_status_t pg_put_ends(pg_job_t* j, assay_value_t* const* values, size_t n, bool formats,
                           assay_str_t* out) {
  const pg_args_t* a = j->args;
  const bool types = pg_given(a, PG_FLAG_tensor_dtypes) || pg_given(a, PG_FLAG_all_tensor_dtypes);
  formats &= pg_given(a, PG_FLAG_tensor_formats) || pg_given(a, PG_FLAG_all_tensor_formats);
  if (!types && !formats) return NULL;
  for (size_t i = 0; i < n; i++) {
    const char* type = NULL;
    const trt_layout_t* l = trt_layouts;
    if (values[i]->constant && values[i]->is_input) continue;
    if (types) ASSAY_TRY(wanted_type(j, values[i], &type));
    if (formats) ASSAY_TRY(wanted_layout(j, values[i], &l));
    assay_str_printf(out, "%s%s%s%s", out->len ? "," : "", type ? type : "", type ? ":" : "",
                     l->word);
  }
  return NULL;
}

assay_status_t pg_warn_of_ends(pg_job_t* j, const assay_graph_t* g) {
  static const pg_flag_id_t flags[] = {PG_FLAG_tensor_dtypes, PG_FLAG_tensor_formats};
  for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
    const pg_words_t* words = pg_words(j->args, flags[f]);
    const char* flag = NULL;
    ASSAY_TRY(name_of(j, flags[f], &flag));
    for (size_t i = 0; i < words->n; i++) {
      pg_pair_t pair;
      bool known = false;
      ASSAY_TRY(pg_pair_split(j->arena, words->items[i], &pair));
      for (size_t k = 0; k < g->n_inputs; k++) known |= pg_fits(pair.name, g->inputs[k]->name);
      for (size_t k = 0; k < g->n_outputs; k++) known |= pg_fits(pair.name, g->outputs[k]->name);
      if (*pair.name && !known)
        pg_log(PG_WARNING, "%s: '%s' is neither an input nor an output of the engine", flag,
               pair.name);
    }
  }
  return NULL;
}
