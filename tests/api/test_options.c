// Options of the public API that several nouns have: the same value is taken, or refused with the
// same error, by all of them.
#include "node_model.h"

static char square[] = "/tmp/assay_api_options_XXXXXX";

// What a noun is asked for; struct_size and the like are its own.
typedef struct asked {
  assay_format_t precision, accumulator;
  const char* layer_precision;
  const char* target;
  assay_fusion_t fusion;
  const char* const* passes_off;
  size_t n_passes_off;
  assay_fp32_t fp32;
} asked_t;

// Copies what the options of a noun have of it.
#define FORMATS(o, a) (o).precision = (a)->precision, (o).layer_precision = (a)->layer_precision
#define PLANS(o, a)                                                                     \
  (o).target = (a)->target, (o).fusion = (a)->fusion, (o).passes_off = (a)->passes_off, \
  (o).n_passes_off = (a)->n_passes_off, (o).fp32 = (a)->fp32

static assay_status_t make_check(assay_model_t* m, const asked_t* a) {
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_t* made = NULL;
  FORMATS(o, a);
  PLANS(o, a);
  o.accumulator = a->accumulator;
  assay_status_t st = assay_check_create(m, &o, &made);
  assay_check_destroy(made);
  return st;
}

static assay_status_t make_tune(assay_model_t* m, const asked_t* a) {
  assay_tune_options_t o = ASSAY_TUNE_OPTIONS_INIT;
  assay_tune_t* made = NULL;
  PLANS(o, a);
  o.layer_precision = a->layer_precision;
  assay_status_t st = assay_tune_create(m, &o, &made);
  assay_tune_destroy(made);
  return st;
}

static assay_status_t make_certificate(assay_model_t* m, const asked_t* a) {
  assay_certify_options_t o = ASSAY_CERTIFY_OPTIONS_INIT;
  assay_certificate_t* made = NULL;
  FORMATS(o, a);
  PLANS(o, a);
  assay_status_t st = assay_certificate_make(m, &o, &made);
  assay_certificate_destroy(made);
  return st;
}

static assay_status_t make_audit(assay_model_t* m, const asked_t* a) {
  assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
  assay_audit_t* made = NULL;
  FORMATS(o, a);
  o.accumulator = a->accumulator;
  o.no_witness = o.no_radius = true;
  assay_status_t st = assay_audit_run(m, &o, &made);
  assay_audit_destroy(made);
  return st;
}

static assay_status_t make_engine(assay_model_t* m, const asked_t* a) {
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t* made = NULL;
  FORMATS(o, a);
  o.accumulator = a->accumulator;
  o.target = a->target;
  o.fusion = a->fusion;
  o.fp32 = a->fp32;
  assay_status_t st = assay_engine_build(m, &o, &made);
  assay_engine_release(made);
  return st;
}

static assay_status_t make_session(assay_model_t* m, const asked_t* a) {
  assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
  assay_session_t* made = NULL;
  FORMATS(o, a);
  PLANS(o, a);
  o.accumulator = a->accumulator;
  o.mode = ASSAY_RUN_PLAN;
  assay_status_t st = assay_session_create(m, &o, &made);
  assay_session_destroy(made);
  return st;
}

// Which options a noun has.
enum { PRECISION = 1, ACCUMULATOR = 2, RULES = 4, TARGET = 8, FUSION = 16, PASSES = 32, FP32 = 64 };
static const struct {
  const char* name;
  assay_status_t (*make)(assay_model_t* m, const asked_t* a);
  int has;
} nouns[] = {
    {"check", make_check, PRECISION | ACCUMULATOR | RULES | TARGET | FUSION | PASSES | FP32},
    {"tune", make_tune, RULES | TARGET | FUSION | PASSES | FP32},
    {"certify", make_certificate, PRECISION | RULES | TARGET | FUSION | PASSES | FP32},
    {"audit", make_audit, PRECISION | ACCUMULATOR | RULES},
    {"engine", make_engine, PRECISION | ACCUMULATOR | RULES | TARGET | FUSION | FP32},
    {"session", make_session, PRECISION | ACCUMULATOR | RULES | TARGET | FUSION | PASSES | FP32},
};

static void all_nouns_refuse_the_same(void** state) {
  (void)state;
  static const char *const no_pass = "frobnication", *const pass = "constant_folding";
  static const struct {
    asked_t asked;
    int needs;
    assay_code_t code;
    const char* word;
  } rows[] = {
      {{0}, 0, ASSAY_OK, NULL},
      {{.precision = ASSAY_FORMAT_INT8}, PRECISION, ASSAY_UNSUPPORTED, "QuantizeLinear"},
      {{.precision = ASSAY_FORMAT_INT4}, PRECISION, ASSAY_INVALID_ARGUMENT, "int4"},
      {{.precision = (assay_format_t)99}, PRECISION, ASSAY_INVALID_ARGUMENT, "the precision"},
      {{.accumulator = ASSAY_FORMAT_INT8}, ACCUMULATOR, ASSAY_INVALID_ARGUMENT, "the accumulator"},
      {{.layer_precision = "n"}, RULES, ASSAY_INVALID_ARGUMENT, "PATTERN:FORMAT"},
      {{.layer_precision = "m:fp16"}, RULES, ASSAY_NOT_FOUND, "'m'"},
      {{.target = "abacus"}, TARGET, ASSAY_INVALID_ARGUMENT, "abacus"},
      {{.fusion = (assay_fusion_t)3}, FUSION, ASSAY_INVALID_ARGUMENT, "fusion 3"},
      {{.fp32 = (assay_fp32_t)3}, FP32, ASSAY_INVALID_ARGUMENT, "not 3"},
      {{.passes_off = &no_pass, .n_passes_off = 1}, PASSES, ASSAY_NOT_FOUND, "frobnication"},
      {{.passes_off = &pass, .n_passes_off = 1, .fusion = ASSAY_FUSION_OFF},
       PASSES | FUSION,
       ASSAY_INVALID_ARGUMENT,
       "fusion is off"},
      {{.passes_off = &pass, .n_passes_off = 1, .fusion = ASSAY_FUSION_ON}, PASSES, ASSAY_OK, NULL},
  };
  assay_model_t* m = NULL;
  ok(assay_model_load(square, &m));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t k = 0; k < sizeof nouns / sizeof *nouns; k++) {
      if ((nouns[k].has & rows[i].needs) != rows[i].needs) continue;
      assay_status_t st = nouns[k].make(m, &rows[i].asked);
      if (assay_status_code(st) != rows[i].code)
        fail_msg("row %zu, %s: code %d: %s", i, nouns[k].name, (int)assay_status_code(st),
                 assay_status_message(st));
      if (rows[i].code)
        fails(st, rows[i].code, rows[i].word);
      else
        ok(st);
    }
  assay_model_release(m);
}

// A model that has its quantizers is taken as it declares, by all nouns.
static void int8_is_of_models_that_quantize(void** state) {
  (void)state;
  const asked_t asked = {.precision = ASSAY_FORMAT_INT8};
  assay_model_t *m = NULL, *quantized = NULL;
  assay_edited_t* e = NULL;
  assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
  ok(assay_model_load("models/small/cnn.onnx", &m));
  ok(assay_edit_run(m, "quantize", &o, &e));
  ok(assay_edited_model(e, &quantized));
  assert_false(assay_model_quantizes(m));
  assert_true(assay_model_quantizes(quantized));
  for (size_t k = 0; k < sizeof nouns / sizeof *nouns; k++)
    if (nouns[k].has & PRECISION) ok(nouns[k].make(quantized, &asked));
  assay_model_release(quantized);
  assay_edited_destroy(e);
  assay_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_nouns_refuse_the_same),
      cmocka_unit_test(int8_is_of_models_that_quantize),
  };
  close(mkstemp(square));
  write_node_model(square, "", "Mul");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(square);
  return failed;
}
