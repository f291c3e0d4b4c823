// What include/assay/environment.h declares.
#include <assay/environment.h>

#include "base/alloc.h"
#include "io/json.h"
#include "report/environment.h"
#include "report/report_public.h"

static assay_status_t print(assay_report_kind_t kind, assay_str_t* out) {
  json_t* j = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "environments"));
  assay_status_t st = assay_environment_collect(&j);
  if (kind == ASSAY_REPORT_JSON) return assay_report_print(st, j, out);
  if (!st) st = assay_environment_text(j, out);
  json_decref(j);
  return st;
}

assay_status_t assay_environment_report(assay_report_kind_t kind, assay_report_fn_t* write,
                                        void* user) {
  assay_str_t text = {0};
  assay_status_t st = print(kind, &text);
  return assay_report_deliver(st, &text, write, user);
}

struct assay_environment_comparison {
  assay_str_t text;
  json_t* json;
  bool numbers;
};

assay_status_t assay_environment_compare(const char* first, const char* second,
                                         assay_environment_comparison_t** out) {
  json_t *a = NULL, *b = NULL;
  assay_environment_comparison_t* c = NULL;
  *out = NULL;
  assay_status_t st = assay_new_array(1, sizeof *c, &c);
  if (!st) st = assay_json_read(first, &a);
  if (!st) st = assay_json_read(second, &b);
  if (!st) st = assay_environment_difference(a, b, &c->text, &c->json, &c->numbers);
  if (!st && c->text.failed) st = ASSAY_ERROR(ASSAY_NO_MEMORY, "no memory for a report");
  json_decref(a);
  json_decref(b);
  if (st)
    assay_environment_comparison_destroy(c);
  else
    *out = c;
  return st;
}

void assay_environment_comparison_destroy(assay_environment_comparison_t* c) {
  if (!c) return;
  assay_str_deinit(&c->text);
  json_decref(c->json);
  assay_free(c);
}

bool assay_environment_comparison_changes_numbers(const assay_environment_comparison_t* c) {
  return c->numbers;
}

assay_status_t assay_environment_comparison_report(const assay_environment_comparison_t* c,
                                                   assay_report_kind_t kind,
                                                   assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = assay_report_want_kind(kind, "environments");
  if (!st && kind == ASSAY_REPORT_TEXT) assay_str_append(&text, assay_str_get(&c->text));
  if (!st && kind == ASSAY_REPORT_JSON) st = assay_report_print(NULL, json_incref(c->json), &text);
  return assay_report_deliver(st, &text, write, user);
}
