// What completion scripts know of trtexec's command line, from the table of flags.
#include <string.h>

#include "cli/shell/completion.h"
#include "frontends/trtexec/flags.h"
#include "frontends/trtexec/trtexec.h"

static assay_status_t take_flag(assay_arena_t* arena, const trt_flag_t* f, const char* name,
                                complete_option_t* out) {
  const trt_kind_t k = f->kind;
  *out = (complete_option_t){.name = name,
                             .takes = k == TRT_SWITCH ? TAKES_NOTHING : TAKES_ONE,
                             .kind = VALUE_ANY,
                             .value = f->value,
                             .help = f->text,
                             .again = k == TRT_WORDS || k == TRT_PROFILE || k == TRT_SHAPES ||
                                      k == TRT_PAIR || k == TRT_PAIRED};
  if (f->level == TRT_ACCEPT)
    ASSAY_TRY(assay_arena_printf(arena, &out->help, "no effect: %s", f->text));
  if (k == TRT_CHOICE) {
    out->kind = VALUE_WORDS;
    return complete_words(arena, f->value, &out->words);
  }
  if (f->value && strcmp(f->value, "FILE") == 0) out->kind = VALUE_FILE;
  return NULL;
}

// Flags that are refused are not offered.
static bool is_offered(const trt_flag_t* f) {
  return f->level == TRT_WORKS || f->level == TRT_ACCEPT;
}

assay_status_t assay_trtexec_complete(completion_t* out) {
  complete_option_t* options = NULL;
  const front_t* front = complete_front("trtexec");
  complete_line_t line = {.path = front->name, .summary = front->summary, .glued = true};
  size_t n = TRT_N_FLAGS;
  for (const trt_alias_t* a = trt_aliases; a->name; a++) n++;
  ASSAY_TRY(assay_arena_new(out->arena, n, sizeof *options, &options));
  for (int f = 0; f < TRT_N_FLAGS; f++)
    if (is_offered(&trt_flags[f]))
      ASSAY_TRY(take_flag(out->arena, &trt_flags[f], trt_flags[f].name, &options[line.n++]));
  for (const trt_alias_t* a = trt_aliases; a->name; a++)  // those that are not deprecated
    if (!a->note && is_offered(&trt_flags[a->flag]))
      ASSAY_TRY(take_flag(out->arena, &trt_flags[a->flag], a->name, &options[line.n++]));
  line.options = options;
  return complete_add(out, &line);
}
