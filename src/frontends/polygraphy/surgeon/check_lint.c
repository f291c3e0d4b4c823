// polygraphy check lint: faulty nodes of a model, as a JSON report.
#include "base/alloc.h"
#include "edit/lint.h"
#include "frontends/polygraphy/data/feed.h"
#include "frontends/polygraphy/model.h"
#include "io/json.h"

static const char* level_name(assay_lint_level_t level) {
  return level == ASSAY_LINT_EXCEPTION ? "exception" : "warning";
}

// Entries from this one on.
static void print(const assay_lint_t* l, size_t from) {
  for (size_t i = from; i < l->n_entries; i++) {
    const assay_lint_entry_t* e = &l->entries[i];
    const pg_severity_t s = e->level == ASSAY_LINT_EXCEPTION ? PG_ERROR : PG_WARNING;
    if (e->node)
      pg_log(s, "LINT | Name: %s, Op: %s | %s", e->node, e->op_type, e->message);
    else
      pg_log(s, "LINT | %s", e->message);
  }
}

// ---- the report ---------------------------------------------------------------------------------

static json_t* names_json(const char* const* names, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++) list = assay_json_push(list, assay_json_text(names[i]));
  return list;
}

static json_t* entry_json(const assay_lint_entry_t* e) {
  json_t* j = json_object();
  j = assay_json_put(j, "level", assay_json_text(level_name(e->level)));
  j = assay_json_put(j, "source", assay_json_text(e->source));
  j = assay_json_put(j, "message", assay_json_text(e->message));
  return e->node ? assay_json_put(j, "nodes", names_json(&e->node, 1)) : j;
}

static assay_status_t save(const pg_job_t* j, const assay_lint_t* l) {
  const char* path = pg_text(j->args, PG_FLAG_output);
  if (!path) return NULL;
  json_t* summary = json_object();
  summary = assay_json_put(summary, "passing", names_json(l->passing, l->n_passing));
  summary = assay_json_put(summary, "failing", names_json(l->failing, l->n_failing));
  json_t* entries = json_array();
  for (size_t i = 0; i < l->n_entries; i++)
    entries = assay_json_push(entries, entry_json(&l->entries[i]));
  json_t* report = assay_json_put(json_object(), "summary", summary);
  report = assay_json_put(report, "lint_entries", entries);
  pg_log(PG_INFO, "Saving linting report to %s", path);
  assay_status_t st = report ? assay_json_write(path, report, 4) : assay_status_no_memory();
  json_decref(report);
  return st;
}

// ---- the check ----------------------------------------------------------------------------------

static assay_status_t lint(pg_job_t* j, assay_model_t* m, assay_lint_t* l) {
  assay_saved_t feed = {0};
  assay_tensor_t** inputs = NULL;
  if (!m->graph->n_nodes) {
    ASSAY_TRY(assay_lint_add(l, ASSAY_LINT_WARNING, "onnx_checker", "ONNX model has no nodes"));
    return print(l, 0), NULL;
  }
  ASSAY_TRY(assay_lint_name_nodes(m));
  ASSAY_TRY(assay_lint_check(m, l));
  print(l, 0);
  const size_t reported = l->n_entries;
  ASSAY_TRY(pg_feed_first(j, m->graph, &feed, &inputs));
  assay_status_t st = assay_lint_run(m, inputs, l);
  if (!st) print(l, reported);
  assay_free(inputs);
  assay_saved_deinit(&feed);
  return st;
}

// What cannot be read at all is a finding, too.
static assay_status_t lint_unreadable(const pg_job_t* j, assay_lint_t* l, assay_status_t fault) {
  if (assay_status_code(fault) == ASSAY_NOT_FOUND || assay_status_code(fault) == ASSAY_NO_MEMORY)
    return fault;
  assay_status_t st =
      assay_lint_add(l, ASSAY_LINT_EXCEPTION, "onnx_checker", assay_status_message(fault));
  assay_status_free(fault);
  if (st) return st;
  print(l, 0);
  return save(j, l);
}

assay_status_t pg_run_check_lint(pg_job_t* j) {
  const assay_onnx_read_options_t allow = {.undefined = true};
  assay_lint_t l = {0};
  assay_model_t* m = NULL;
  ASSAY_TRY(assay_lint_init(&l));
  assay_status_t st = pg_read_model(j, &allow, &m);
  if (st) {
    st = lint_unreadable(j, &l, st);
  } else {
    st = pg_convert_model(j, &m);
    if (!st) st = lint(j, m, &l);
    if (!st) st = save(j, &l);
  }
  j->failed |= l.failed;
  assay_model_release(m);
  assay_lint_deinit(&l);
  return st;
}
