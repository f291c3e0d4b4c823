// Reports of the public API: every result hands them over in the same way, with the same errors.
#include "node_model.h"

static char square[] = "/tmp/assay_api_report_XXXXXX", written[] = "/tmp/assay_api_written_XXXXXX";

// A result of each kind, of one model.
typedef struct results {
  assay_model_t* model;
  assay_samples_t* samples;
  assay_check_t* check;
  assay_tune_t* tune;
  assay_audit_t* audit;
  assay_edited_t* edited;
  assay_certificate_t* certificate;
  assay_verification_t* verification;
  assay_comparison_t* comparison;
} results_t;

static void open_results(results_t* r) {
  assay_audit_options_t audit = ASSAY_AUDIT_OPTIONS_INIT;
  assay_edit_options_t edit = ASSAY_EDIT_OPTIONS_INIT;
  audit.seconds = 1;
  edit.no_proof = true;
  *r = (results_t){0};
  ok(assay_model_load(square, &r->model));
  ok(assay_samples_random(r->model, 1, 0, NULL, &r->samples));
  ok(assay_check_create(r->model, NULL, &r->check));
  ok(assay_check_run(r->check, r->samples, NULL));
  ok(assay_tune_create(r->model, NULL, &r->tune));
  ok(assay_tune_run(r->tune, r->samples, NULL));
  ok(assay_audit_run(r->model, &audit, &r->audit));
  ok(assay_edit_run(r->model, "sanitize", &edit, &r->edited));
  ok(assay_certificate_make(r->model, NULL, &r->certificate));
  ok(assay_verification_run(r->certificate, r->model, NULL, &r->verification));
  ok(assay_compare_samples(r->samples, r->samples, NULL, &r->comparison));
}

static void close_results(results_t* r) {
  assay_comparison_destroy(r->comparison);
  assay_verification_destroy(r->verification);
  assay_certificate_destroy(r->certificate);
  assay_edited_destroy(r->edited);
  assay_audit_destroy(r->audit);
  assay_tune_destroy(r->tune);
  assay_check_destroy(r->check);
  assay_samples_destroy(r->samples);
  assay_model_release(r->model);
}

// The functions of each noun under one type; those of some take options.
#define DEFAULTS NULL,
#define NOTHING
#define NOUN(noun, options)                                                         \
  static assay_status_t report_##noun(const results_t* r, assay_report_kind_t kind, \
                                      assay_report_fn_t* write, void* user) {       \
    return assay_##noun##_report(r->noun, kind, options write, user);               \
  }                                                                                 \
  static assay_status_t write_##noun(const results_t* r, assay_report_kind_t kind,  \
                                     const char* path) {                            \
    return assay_##noun##_write_report(r->noun, kind, options path);                \
  }
NOUN(check, DEFAULTS)
NOUN(tune, DEFAULTS)
NOUN(audit, DEFAULTS)
NOUN(edited, DEFAULTS)
NOUN(comparison, DEFAULTS)
NOUN(certificate, NOTHING)
NOUN(verification, NOTHING)

static const struct {
  assay_status_t (*report)(const results_t*, assay_report_kind_t, assay_report_fn_t*, void*);
  assay_status_t (*write)(const results_t*, assay_report_kind_t, const char*);
  const char *text, *json;
  bool page;
} nouns[] = {
    {report_check, write_check, "FAITHFUL  ", "\"assay.check/1\"", true},
    {report_tune, write_tune, "TUNED  ", "\"assay.tune/1\"", false},
    {report_audit, write_audit, "SAFE  ", "\"assay.audit/1\"", false},
    {report_edited, write_edited, "sanitize", "\"assay.edit/1\"", false},
    {report_comparison, write_comparison, "PASSED  ", "\"assay.compare/1\"", false},
    {report_certificate, write_certificate, "NOT SAVED  ", "\"assay.certify/1\"", false},
    {report_verification, write_verification, "HOLDS  ", "\"assay.certify.verify/1\"", false},
};
enum { NOUNS = sizeof nouns / sizeof *nouns };

static assay_status_t refuse(void* user, const char* data, size_t size) {
  *(size_t*)user += size == strlen(data);
  return assay_status_create(ASSAY_CANCELLED, "enough");
}

static void file_is(const char* text) {
  const size_t size = strlen(text);
  char* read = malloc(size + 2);
  FILE* f = fopen(written, "rb");
  assert_non_null(read);
  assert_non_null(f);
  assert_int_equal(fread(read, 1, size + 2, f), size);
  assert_memory_equal(read, text, size);
  fclose(f);
  free(read);
}

static void a_function_and_a_file_get_the_same(void** state) {
  (void)state;
  results_t r;
  open_results(&r);
  for (size_t i = 0; i < NOUNS; i++) {
    for (int kind = 0; kind <= ASSAY_REPORT_PAGE; kind++) {
      const assay_report_kind_t k = (assay_report_kind_t)kind;
      char* text = NULL;
      if (k == ASSAY_REPORT_PAGE && !nouns[i].page) continue;
      ok(nouns[i].report(&r, k, assay_report_collect, &text));
      ok(nouns[i].write(&r, k, written));
      file_is(text);
      has(text, k == ASSAY_REPORT_TEXT   ? nouns[i].text
                : k == ASSAY_REPORT_JSON ? nouns[i].json
                                         : "<!doctype html>");
    }
  }
  close_results(&r);
}

static void errors_are_the_same_everywhere(void** state) {
  (void)state;
  results_t r;
  open_results(&r);
  for (size_t i = 0; i < NOUNS; i++) {
    size_t n = 0;
    char untouched[] = "as it was", *text = untouched;
    fails(nouns[i].report(&r, ASSAY_REPORT_TEXT, refuse, &n), ASSAY_CANCELLED, "enough");
    assert_int_equal(n, 1);
    fails(nouns[i].report(&r, (assay_report_kind_t)9, assay_report_collect, &text),
          ASSAY_INVALID_ARGUMENT, "kind 9");
    fails(nouns[i].write(&r, ASSAY_REPORT_JSON, "/nowhere/report.json"), ASSAY_NOT_FOUND,
          "/nowhere/report.json");
    if (!nouns[i].page)
      fails(nouns[i].report(&r, ASSAY_REPORT_PAGE, assay_report_collect, &text), ASSAY_UNSUPPORTED,
            "ASSAY_REPORT_JSON");
    assert_ptr_equal(text, untouched);
  }
  close_results(&r);
}

// Options of a caller whose struct ends before a field: the field has its default.
static void shorter_options_are_read(void** state) {
  (void)state;
  results_t r;
  char *plain = NULL, *same = NULL, *full = NULL;
  open_results(&r);
  assay_edit_report_options_t o = {offsetof(assay_edit_report_options_t, path), "some.onnx", true};
  ok(assay_edited_report(r.edited, ASSAY_REPORT_TEXT, NULL, assay_report_collect, &plain));
  ok(assay_edited_report(r.edited, ASSAY_REPORT_TEXT, &o, assay_report_collect, &same));
  o.struct_size = sizeof o;
  ok(assay_edited_report(r.edited, ASSAY_REPORT_TEXT, &o, assay_report_collect, &full));
  assert_string_equal(plain, same);
  assert_null(strstr(plain, "some.onnx"));
  assay_text_free(plain);
  assay_text_free(same);
  has(full, "some.onnx");
  close_results(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_function_and_a_file_get_the_same),
      cmocka_unit_test(errors_are_the_same_everywhere),
      cmocka_unit_test(shorter_options_are_read),
  };
  close(mkstemp(square));
  close(mkstemp(written));
  write_node_model(square, "", "Mul");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(square);
  unlink(written);
  return failed;
}
