// --show-native: the commands of 'assay' that do the same as the line.
#include <stdio.h>
#include <string.h>

#include "base/shell.h"
#include "base/shown.h"
#include "frontends/polygraphy/build.h"
#include "frontends/polygraphy/cause.h"
#include "frontends/polygraphy/model.h"
#include "frontends/polygraphy/run.h"

static void put_option(assay_str_t* out, const char* name, const char* value) {
  if (!value) return;
  assay_str_printf(out, " %s ", name);
  assay_shell_word(out, value);
}

// "assay run" of what one runner runs.
static void put_run(pg_job_t* j, pg_flag_id_t kind, const char* plan, assay_str_t* out) {
  const pg_args_t* a = j->args;
  const pg_words_t* files = pg_words(a, PG_FLAG_load_inputs);
  const char* model = a->positional.items[0];
  assay_str_append(out, "assay run ");
  assay_shell_word(out, kind == PG_FLAG_trt ? plan : model);
  if (kind == PG_FLAG_truth) assay_str_append(out, " --mode truth");
  for (size_t i = 0; i < files->n; i++) put_option(out, "--inputs", files->items[i]);
  if (!files->n) put_option(out, "--inputs", pg_text(a, PG_FLAG_save_inputs));
  put_option(out, "--save-outputs", pg_text(a, PG_FLAG_save_outputs));
  assay_str_append(out, "\n");
}

assay_status_t pg_run_print_native(pg_job_t* j) {
  const pg_args_t* a = j->args;
  const char* save = pg_text(a, PG_FLAG_save_engine);
  assay_str_t text = {0};
  bool built = false;
  if (!a->positional.n) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--show-native needs a model");
  const bool engine = pg_is_engine(j, a->positional.items[0]);
  const char* plan = engine ? a->positional.items[0] : save ? save : "model.plan";
  for (size_t i = 0; i < a->n_runners; i++) {
    if (a->runners[i] == PG_FLAG_trt && !engine && !built)
      ASSAY_TRY(pg_build_print_native(j, &(pg_build_t){0}, plan));
    built |= a->runners[i] == PG_FLAG_trt;
    put_run(j, a->runners[i], plan, &text);
  }
  assay_status_t st = pg_put_check(j, NULL, &text);
  if (!st && !pg_saves_inputs(j))
    assay_print(stdout, "# %s: what this line writes with --save-inputs %s\n", PG_INPUTS_FILE,
                PG_INPUTS_FILE);
  if (!st) assay_print(stdout, ASSAY_LINES "\n", assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}
