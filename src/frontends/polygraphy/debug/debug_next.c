// The command of 'assay' that finds fewer layers than a prefix: those that need the precision,
// wherever they are.
#include "frontends/polygraphy/debug/debug_next.h"

#include <stdlib.h>
#include <string.h>

#include "base/shell.h"
#include "exec/targets.h"

// The value of the check's own flag: the word after one of these beginnings ('|' between them), or
// what stands after its '='. NULL: the check has none.
static const char* check_value(const pg_words_t* check, const char* names) {
  const char* found = NULL;
  for (size_t i = 0; i < check->n; i++) {
    const char* word = check->items[i];
    const size_t n = strcspn(word, "=");
    for (const char* at = names; *at;) {
      const size_t len = strcspn(at, "|");
      // The whole name, or a beginning of it that is long enough to be its own.
      if (n >= 5 && n <= len && strncmp(word, at, n) == 0)
        found = word[n] ? word + n + 1 : i + 1 < check->n ? check->items[i + 1] : NULL;
      at += len + (at[len] == '|');
    }
  }
  return found && *found && *found != '-' ? found : NULL;
}

// Of inputs that are not known their shapes: "x:[1,3]" of the profile, as "x=1x3".
static assay_status_t put_shapes(pg_job_t* j, assay_str_t* out) {
  const pg_value_t* v = &j->args->at[PG_FLAG_trt_opt_shapes];
  for (size_t i = 0; v->n_lists && i < v->lists[0].n; i++) {
    int64_t dims[ASSAY_MAX_RANK];
    int rank;
    pg_pair_t pair;
    ASSAY_TRY(pg_pair_split(j->arena, v->lists[0].items[i], &pair));
    ASSAY_TRY(pg_shape(j->arena, "--trt-opt-shapes", pair.value, &rank, dims, NULL));
    assay_str_append(out, " --shape ");
    assay_shell_word(out, pair.name);
    for (int d = 0; d < rank; d++)
      assay_str_printf(out, "%c%lld", d ? 'x' : '=', (long long)dims[d]);
  }
  return NULL;
}

assay_status_t pg_put_fewest(pg_job_t* j, assay_str_t* out) {
  const pg_args_t* a = j->args;
  const pg_words_t* check = pg_words(a, PG_FLAG_check);
  const char* own =
      pg_words(a, PG_FLAG_load_inputs)->n ? pg_words(a, PG_FLAG_load_inputs)->items[0] : NULL;
  const char* inputs = check_value(check, "--load-inputs|--load-input-data");
  const char* golden = check_value(check, "--load-outputs|--load-results");
  const char* atol = check_value(check, "--abs-tol|--atol");
  const char* format = pg_given(a, PG_FLAG_fp16) ? "fp16" : "bf16";
  char* end = NULL;
  // The account is of float formats; int8 is Q/DQ nodes, and TF32 does not exist here.
  if (!pg_given(a, PG_FLAG_fp16) && !pg_given(a, PG_FLAG_bf16)) return NULL;
  if (!inputs) inputs = own;
  assay_str_append(out, "assay debug precision ");
  assay_shell_word(out, a->positional.items[0]);
  assay_str_printf(out, " --precision %s --target %s", format,
                   assay_target_default(ASSAY_TARGET_BUILD)->name);
  if (inputs) {
    assay_str_append(out, " --inputs ");
    assay_shell_word(out, inputs);
  } else {
    ASSAY_TRY(put_shapes(j, out));
  }
  if (golden) {
    assay_str_append(out, " --golden ");
    assay_shell_word(out, golden);
  }
  // A bound for single outputs ("y:1e-3") is not a tolerance for all of them.
  if (atol && strtod(atol, &end) > 0 && !*end)
    assay_str_printf(out, " --require '%smax_abs <= %s'", golden ? "golden_" : "", atol);
  return assay_str_status(out);
}
