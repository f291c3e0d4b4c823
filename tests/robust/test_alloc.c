// Every allocation fails once: in reading, checking, running and writing of small models. Each run
// ends with a status and frees what it took.
#include <dirent.h>
#include <unistd.h>

#include "check/check.h"
#include "eval/evaluator.h"
#include "io/json.h"
#include "io/npz.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "passes/mixed.h"
#include "report/report.h"
#include "robust/alloc_case.h"

static char folder[] = "/tmp/assay_alloc_XXXXXX";

// ---- the sequence -----------------------------------------------------------------------------

static assay_status_t run_evaluator(const assay_model_t* m, assay_mode_t mode,
                                    const assay_samples_t* samples) {
  assay_evaluator_t* evaluator = NULL;
  const assay_evaluator_config_t config = {.mode = mode};
  assay_status_t st =
      assay_evaluator_create_run(m, &config, assay_samples_get(samples, 0), &evaluator);
  for (size_t i = 0; !st && i < m->graph->n_outputs; i++)
    assert_non_null(assay_evaluator_get(evaluator, m->graph->outputs[i]));
  assay_evaluator_destroy(evaluator);
  return st;
}

// The page, and the findings written into a copy of the model.
static assay_status_t show(const assay_check_t* check, const assay_model_t* m,
                           const assay_report_names_t* names) {
  const assay_report_notes_t notes = {
      .pictures = check->options.pictures, .command = "assay check", .mark_names = true};
  assay_str_t page = {0};
  assay_model_t* noted = NULL;
  uint8_t* bytes = NULL;
  size_t size = 0;
  assay_status_t st = assay_report_html(check, names, check->options.pictures, &page);
  if (!st) st = assay_model_clone(m, &noted);
  if (!st) st = assay_report_annotate(check, names, &notes, noted);
  if (!st) st = assay_onnx_write_bytes(noted, &bytes, &size);
  if (!st) alloc_digest_add(assay_str_get(&page), page.len);
  if (!st) alloc_digest_add(bytes, size);
  assay_free(bytes);
  assay_model_release(noted);
  assay_str_deinit(&page);
  return st;
}

static assay_status_t report(const assay_check_t* check, const assay_model_t* m) {
  static const char* const files[] = {"model.fixed.onnx", "model.fix.txt"};
  assay_report_names_t names = {
      .model = "model.onnx", .target = "emu", .precision = "fp16", .files = files, .n_files = 2};
  assay_str_t text = {0};
  json_t* json = NULL;
  assay_status_t st = assay_report_text(check, &names, &text);
  if (!st) st = assay_report_json(check, &names, &json);
  if (!st) {
    assay_json_print(json, 1, &text);
    st = assay_str_status(&text);
    alloc_digest_add(assay_str_get(&text), text.len);
  }
  json_decref(json);
  assay_str_deinit(&text);
  return st ? st : show(check, m, &names);
}

static assay_status_t run_check(assay_model_t* m, const assay_samples_t* samples) {
  assay_pictures_t pictures = {0};
  assay_check_setting_t options = {.precision.format = ASSAY_FORMAT_FP16,
                                   .precision_name = "fp16",
                                   .pictures = &pictures,
                                   .backend = assay_backend_find("emu")};
  assay_check_t* check = NULL;
  assay_status_t st = assay_precision_parse(&options.precision, "*:fp16");
  if (!st) st = assay_check_model(m, &options, samples, NULL, &check);
  if (!st) st = report(check, m);
  assay_check_destroy(check);
  assay_precision_deinit(&options.precision);
  assay_pictures_deinit(&pictures);
  return st;
}

// All but the first node in fp16, written into memory and read from there.
static assay_status_t export_mixed(const assay_model_t* m) {
  assay_format_t* formats = NULL;
  assay_model_t *mixed = NULL, *again = NULL;
  uint8_t* bytes = NULL;
  size_t size = 0;
  ASSAY_TRY(assay_new_array((size_t)m->n_node_ids, sizeof *formats, &formats));
  for (int i = 0; i < m->n_node_ids; i++) formats[i] = i ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_FP32;
  assay_status_t st = assay_mixed_create(m, formats, &mixed);
  if (!st) st = assay_onnx_write_bytes(mixed, &bytes, &size);
  if (!st) st = assay_onnx_read_bytes(bytes, size, NULL, &again);
  if (!st) st = assay_onnx_check(again);
  if (!st) alloc_digest_add(bytes, size);
  assay_model_release(again);
  assay_model_release(mixed);
  assay_free(bytes);
  assay_free(formats);
  return st;
}

// The model with all weights beside it, the report and the inputs, through files.
static assay_status_t through_files(const assay_model_t* m, const assay_samples_t* samples) {
  char path[64], data[64];
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  snprintf(data, sizeof data, "%s/inputs.npz", folder);
  const assay_onnx_write_options_t all = {.external = ASSAY_ONNX_EXTERNAL_ALL, .min_bytes = 1};
  const assay_graph_t* g = m->graph;
  assay_model_t* again = NULL;
  assay_set_t set = {0}, found = {0};
  assay_samples_t back = {0};
  json_t* json = NULL;
  assay_status_t st = assay_onnx_write(m, path, &all);
  if (!st) st = assay_onnx_load(path, 0, NULL, &again);
  for (size_t i = 0; !st && i < g->n_inputs; i++)
    st = assay_set_add(&set, g->inputs[i]->name,
                       assay_tensor_retain(assay_samples_get(samples, 0)[i]));
  if (!st) st = assay_npz_write(data, &set, true);
  if (!st) st = assay_npz_read(data, &found);
  if (!st) st = assay_samples_from_set(&found, g->inputs, g->n_inputs, true, &back);
  snprintf(path, sizeof path, "%s/some.json", folder);
  if (!st && !(json = assay_json_push(json_array(), assay_json_text("caf\xe9"))))
    st = assay_status_no_memory();
  if (!st) st = assay_json_write(path, json, 1);
  json_decref(json);
  json = NULL;
  if (!st) st = assay_json_read(path, &json);
  if (assay_status_code(st) == ASSAY_CORRUPT) {  // what jansson calls a string without memory
    assay_status_free(st);
    st = assay_status_no_memory();
  }
  if (!st) assert_string_equal(json_string_value(json_array_get(json, 0)), "caf\xef\xbf\xbd");
  json_decref(json);
  assay_samples_deinit(&back);
  assay_set_deinit(&found);
  assay_set_deinit(&set);
  assay_model_release(again);
  return st;
}

static assay_status_t sequence(const char* path) {
  assay_model_t* m = NULL;
  assay_samples_t samples = {0};
  assay_status_t st = assay_onnx_load(path, 0, NULL, &m);
  if (!st) st = assay_samples_generate(m, 1, &samples);
  if (!st) st = run_evaluator(m, ASSAY_MODE_TRUTH, &samples);
  if (!st) st = run_evaluator(m, ASSAY_MODE_NATIVE, &samples);
  if (!st) st = run_check(m, &samples);
  if (!st) st = export_mixed(m);
  if (!st) st = through_files(m, &samples);
  assay_samples_deinit(&samples);
  assay_model_release(m);
  return st;
}

static const alloc_case_t each = {.run = sequence, .one_by_one = 2000, .samples = 200};

static void loop(void** state) {
  (void)state;
  alloc_fail_each(&each, "loop");
}
static void external_data(void** state) {
  (void)state;
  alloc_fail_each(&each, "external");
}
static void quantized(void** state) {
  (void)state;
  alloc_fail_each(&each, "quantized");
}
static void if_and_sequences(void** state) {
  (void)state;
  alloc_fail_each(&each, "if_sequence");
}
static void cnn(void** state) {
  (void)state;
  alloc_fail_each(&each, "cnn");
}

// Files that were begun and not finished are taken away.
static int remove_folder(void** state) {
  (void)state;
  int strange = 0;
  DIR* d = opendir(folder);
  if (!d) return -1;
  for (struct dirent* e; (e = readdir(d));) {
    static const char* const ours[] = {"model.onnx", "model.onnx.data", "inputs.npz", "some.json"};
    bool known = e->d_name[0] == '.' && (!e->d_name[1] || e->d_name[1] == '.');
    for (int i = 0; i < 4; i++) known |= strcmp(e->d_name, ours[i]) == 0;
    if (!known) print_error("left behind: %s/%s\n", folder, e->d_name);
    strange += !known;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    unlink(path);
  }
  closedir(d);
  rmdir(folder);
  return strange ? -1 : 0;
}

int main(void) {
  if (!mkdtemp(folder)) return 1;
  json_set_alloc_funcs(assay_malloc, assay_free);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loop),      cmocka_unit_test(external_data),
      cmocka_unit_test(quantized), cmocka_unit_test(if_and_sequences),
      cmocka_unit_test(cnn),
  };
  return cmocka_run_group_tests(tests, NULL, remove_folder);
}
