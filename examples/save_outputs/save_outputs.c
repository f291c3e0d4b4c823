// Runs a model on random inputs, several times, and writes the outputs of all runs to one file,
// which `assay run --inputs`, `--golden` and other tools read; then reads the file again.
//
//   save_outputs MODEL FILE [RUNS]     FILE: its ending says the format, such as .npz or
//   .safetensors
#include <assay/assay.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_VALUES = 16, MAX_RUNS = 1000 };

// One run: `seed` makes its inputs.
static assay_status_t add_run(assay_model_t* model, assay_session_t* session, uint64_t seed,
                              assay_outputs_t* outputs) {
  assay_tensor_t *in[MAX_VALUES], *made[MAX_VALUES] = {0};
  const size_t n_in = assay_model_input_count(model), n_out = assay_model_output_count(model);
  assay_samples_t* samples = NULL;
  assay_status_t st = assay_samples_random(model, seed, 0, NULL, &samples);
  size_t n = 0;  // inputs with an initializer have no tensor
  for (size_t i = 0; !st && n < n_in && i < assay_samples_value_count(samples); i++)
    if (assay_samples_tensor(samples, 0, i)) in[n++] = assay_samples_tensor(samples, 0, i);
  if (!st) st = assay_session_run(session, n_in, in, n_out, made);
  if (!st) st = assay_outputs_begin_run(outputs);
  for (size_t i = 0; !st && i < n_out; i++)  // an optional output may be left empty
    if (made[i]) st = assay_outputs_add(outputs, assay_model_output_name(model, i), made[i]);
  for (size_t i = 0; i < n_out; i++) assay_tensor_release(made[i]);
  assay_samples_destroy(samples);
  return st;
}

static void print_tensor(const char* name, const assay_tensor_t* t) {
  printf("%s: %s[", name, assay_type_name(assay_tensor_type(t)));
  for (int k = 0; k < assay_tensor_rank(t); k++)
    printf("%s%" PRId64, k > 0 ? ", " : "", assay_tensor_dims(t)[k]);
  printf("]\n");
}

static assay_status_t save(assay_outputs_t* outputs, const char* path) {
  assay_outputs_options_t options = ASSAY_OUTPUTS_OPTIONS_INIT;
  assay_status_t st = assay_outputs_join(outputs);
  if (st) return st;
  printf("all runs, one after the other:\n");
  for (size_t i = 0; i < assay_outputs_joined_count(outputs); i++)
    print_tensor(assay_outputs_joined_name(outputs, i), assay_outputs_joined_tensor(outputs, i));
  // Formats other than safetensors have no place for it.
  st = assay_outputs_set_metadata(outputs, "{\"made_by\": \"save_outputs\"}");
  if (!st) st = assay_outputs_save(outputs, path, &options);
  if (!st) printf("%s", assay_outputs_notes(outputs));
  return st;
}

// How many samples the file holds, read as outputs of the model.
static assay_status_t read_again(assay_model_t* model, const char* path) {
  assay_samples_options_t options = ASSAY_SAMPLES_OPTIONS_INIT;
  assay_samples_t* samples = NULL;
  options.outputs = true;
  assay_status_t st = assay_samples_load(model, 1, &path, &options, &samples);
  if (st) return st;
  printf("read again: %zu samples of %zu outputs\n", assay_samples_count(samples),
         assay_samples_value_count(samples));
  assay_samples_destroy(samples);
  return NULL;
}

static assay_status_t run_all(assay_model_t* model, const char* path, int runs) {
  assay_session_t* session = NULL;
  assay_outputs_t* outputs = NULL;
  assay_status_t st = assay_outputs_check_path(path);  // before anything is run
  if (!st) st = assay_session_create(model, NULL, &session);
  if (!st) st = assay_outputs_create(&outputs);
  for (int i = 0; !st && i < runs; i++) st = add_run(model, session, (uint64_t)i, outputs);
  if (!st) st = save(outputs, path);
  if (!st) st = read_again(model, path);
  assay_outputs_destroy(outputs);
  assay_session_destroy(session);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  const int runs = argc > 3 ? atoi(argv[3]) : 1;
  if (argc < 3 || argc > 4 || runs < 1 || runs > MAX_RUNS)
    return fprintf(stderr, "usage: save_outputs MODEL FILE [RUNS]\n"), 2;
  assay_status_t st = assay_model_load(argv[1], &model);
  if (!st &&
      (assay_model_input_count(model) > MAX_VALUES || assay_model_output_count(model) > MAX_VALUES))
    st = assay_status_create(ASSAY_UNSUPPORTED, "over 16 inputs or outputs");
  if (!st) st = run_all(model, argv[2], runs);
  if (st) fprintf(stderr, "save_outputs: %s\n", assay_status_message(st));
  const int failed = st != NULL;
  assay_status_free(st);
  assay_model_release(model);
  return failed;
}
