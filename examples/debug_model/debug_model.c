// Finds which layers of a model need more than bf16 so that its outputs keep an SNR of 40 dB, and
// whether a sample's result depends on the batch that it is in.
//
//   debug_model MODEL INPUTS [MIXED]     MIXED: where the model in mixed precision is written
#include <assay/assay.h>
#include <stdio.h>

static assay_status_t find_layers(assay_debug_t* debug, const assay_samples_t* inputs,
                                  const char* mixed) {
  assay_precision_search_t* search = NULL;
  assay_status_t st = assay_debug_precision(debug, NULL, inputs, NULL, &search);
  if (st) return st;
  if (assay_precision_search_enough(search))
    printf("no layer needs more\n");
  else if (!assay_precision_search_found(search))
    printf("no layers were found that are enough\n");
  else
    printf("%zu nodes in %s are enough:\n", assay_precision_search_node_count(search),
           assay_format_name(assay_precision_search_format(search)));
  for (size_t i = 0; i < assay_precision_search_node_count(search); i++)
    printf("  %s\n", assay_precision_search_node(search, i));
  if (mixed && assay_precision_search_found(search))
    st = assay_precision_search_write_model(search, mixed);
  assay_precision_search_destroy(search);
  return st;
}

static assay_status_t find_batch(assay_debug_t* debug, const assay_samples_t* inputs) {
  assay_batch_search_t* search = NULL;
  assay_status_t st = assay_debug_batch(debug, NULL, inputs, &search);
  if (assay_status_code(st) == ASSAY_UNSUPPORTED) {
    printf("batches: %s\n", assay_status_message(st));
    return assay_status_free(st), NULL;
  }
  if (st) return st;
  printf("batches: %s after %zu runs\n",
         assay_batch_verdict_name(assay_batch_search_verdict(search)),
         assay_batch_search_runs(search));
  for (size_t i = 0; !st && i < assay_batch_search_node_count(search); i++) {
    assay_batch_node_t node = ASSAY_BATCH_NODE_INIT;
    st = assay_batch_search_node(search, i, &node);
    if (!st) printf("  %s (%s): %s\n", node.name, node.op, node.why);
  }
  assay_batch_search_destroy(search);
  return st;
}

static assay_status_t debug_model(assay_model_t* model, const char* file, const char* mixed) {
  const char* const requirements[] = {"snr_db >= 40"};
  assay_debug_options_t options = ASSAY_DEBUG_OPTIONS_INIT;
  assay_debug_t* debug = NULL;
  assay_samples_t* inputs = NULL;
  options.precision = ASSAY_FORMAT_BF16;
  options.requirements = requirements;
  options.n_requirements = 1;
  assay_status_t st = assay_debug_create(model, &options, &debug);
  if (!st) st = assay_samples_load(model, 1, &file, NULL, &inputs);
  if (!st) st = find_layers(debug, inputs, mixed);
  if (!st) st = find_batch(debug, inputs);
  assay_samples_destroy(inputs);
  assay_debug_release(debug);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  if (argc < 3 || argc > 4) return fprintf(stderr, "usage: debug_model MODEL INPUTS [MIXED]\n"), 2;
  assay_status_t st = assay_model_load(argv[1], &model);
  if (!st) st = debug_model(model, argv[2], argc > 3 ? argv[3] : NULL);
  if (st) fprintf(stderr, "debug_model: %s\n", assay_status_message(st));
  assay_model_release(model);
  if (!st) return 0;
  assay_status_free(st);
  return 1;
}
