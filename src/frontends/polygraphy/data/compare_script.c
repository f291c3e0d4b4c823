// --compare-func-script: a function of the user's in place of the metrics.
#include "frontends/polygraphy/data/compare_script.h"

#include "frontends/polygraphy/data/script.h"
#include "io/json.h"

// A list, since an object's keys would lose their order.
static const char driver[] =
    "verdicts = function(*sets)\n"
    "json.dump([[str(k), bool(v)] for k, v in verdicts.items()], out)\n"
    "out.close()\n";

static void put_name(assay_str_t* out, const char* name) {
  assay_str_printf(out, "%s'%s'", out->len ? ", " : "", name);
}

static assay_status_t report(const char* script, const assay_compared_run_t* run) {
  assay_str_t all = {0}, failed = {0};
  for (size_t i = 0; i < run->n; i++) {
    put_name(&all, run->outputs[i].output);
    if (!run->outputs[i].verdict) put_name(&failed, run->outputs[i].output);
  }
  assay_status_t st = assay_status_join(assay_str_status(&all), assay_str_status(&failed));
  pg_log_indent(1);
  if (!st && !run->n)
    pg_log(PG_WARNING, "%s gave no verdicts: nothing was compared", script);
  else if (!st && failed.len)
    pg_log(PG_ERROR, "FAILED | %s | Mismatched outputs: [%s]", script, failed.text);
  else if (!st)
    pg_log(PG_FINISH, "PASSED | %s | All outputs matched | Outputs: [%s]", script, all.text);
  pg_log_indent(-1);
  assay_str_deinit(&all);
  assay_str_deinit(&failed);
  return st;
}

// The verdicts that the driver wrote, into the results.
static assay_status_t take(const json_t* verdicts, assay_accuracy_results_t* r,
                           assay_compared_run_t* run, bool* failed) {
  for (size_t i = 0; i < json_array_size(verdicts); i++) {
    const json_t* one = json_array_get(verdicts, i);
    const char* name = json_string_value(json_array_get(one, 0));
    assay_compared_t* c = NULL;
    if (!name) return ASSAY_ERROR(ASSAY_CORRUPT, "verdict %zu has no name", i);
    ASSAY_TRY(assay_compared_run_add(r, run, name, name, &c));
    c->decided = true;
    c->verdict = json_is_true(json_array_get(one, 1));
    *failed |= !c->verdict;
  }
  return NULL;
}

assay_status_t pg_compare_by_script(pg_job_t* j, assay_comparing_t* c, size_t pair,
                                    const assay_set_t* a, const assay_set_t* b, bool* out_failed) {
  assay_compared_pair_t* of = &c->results.items[0].pairs[pair];
  const pg_script_call_t call = {
      .flag = "--compare-func-script",
      .script = pg_text(j->args, PG_FLAG_compare_func_script),
      .function = "compare_outputs",
      .driver = driver,
      .sets = {a, b},
      .runners = {of->first, of->second},
      .n_sets = 2,
      .instead = "without one, save the outputs (--save-outputs) and compare them elsewhere"};
  assay_compared_run_t* run = NULL;
  assay_str_t text = {0};
  json_t* verdicts = NULL;
  *out_failed = false;
  assay_status_t st = pg_script_call(j, &call, &text);
  if (!st)
    st = assay_status_note(assay_json_parse(assay_str_get(&text), text.len, &verdicts), "%s",
                           call.flag);
  if (!st) st = assay_compared_pair_add(of, &run);
  if (!st) st = take(verdicts, &c->results, run, out_failed);
  if (!st) st = report(call.script, run);
  json_decref(verdicts);
  assay_str_deinit(&text);
  return st;
}
