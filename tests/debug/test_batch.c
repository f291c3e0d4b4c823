// Results that depend on the batch: injected in a backend, the layer is named; in a model, the
// node.
#include "debug/batch_debug.h"
#include "passes/graph_case.h"

// ---- a backend that spoils one layer ------------------------------------------------------------

// The emulated one, but for one layer's output, which is spoiled in place before anyone reads it.
typedef enum spoil {
  HEALTHY = 0,
  LAST_ROW,     // the last row of a batch is the one before it
  FIRST_ROW,    // every row gets a bit of the first
  MEAN,         // a part of the batch's mean is added
  ZERO_TAIL,    // what is behind a multiple of 2 rows is not written
  SWAPPED,      // the first two rows change places
  LARGEST,      // scaled by the largest element of the batch
  BY_SIZE,      // other results from 3 rows on
  PLACE,        // a row's number is added
  ONLY_ALONE,   // another result for a batch of 1
  ONE_ELEMENT,  // the first element of the second row
  LAST_BITS,    // in batches the next number
} spoil_t;

static spoil_t spoiling;
static const char* spoiled_layer;
static const assay_tap_t* users_tap;

static void spoil(double* y, int64_t n, int64_t row) {
  double sum = 0, largest = 0;
  for (int64_t i = 0; i < n * row; i++) {
    sum += y[i] / (double)(n * row);
    if (fabs(y[i]) > largest) largest = fabs(y[i]);
  }
  for (int64_t k = 0; k < n; k++) {
    for (int64_t i = 0; i < row; i++) {
      double* e = &y[k * row + i];
      switch (spoiling) {
        case LAST_ROW:
          if (n > 1 && k == n - 1) *e = e[-row];
          break;
        case FIRST_ROW:
          if (k) *e += y[i] / 64;
          break;
        case MEAN:
          *e += sum / 4;
          break;
        case ZERO_TAIL:
          if (n > 1 && n % 2 && k == n - 1) *e = 0;
          break;
        case LARGEST:
          *e += largest / 128;
          break;
        case BY_SIZE:
          if (n >= 3) *e *= 1.01;
          break;
        case PLACE:
          *e += (double)k;
          break;
        case ONLY_ALONE:
          if (n == 1) *e *= 0.99;
          break;
        case ONE_ELEMENT:
          if (k == 1 && i == 0) *e += 1;
          break;
        case LAST_BITS:
          if (n > 1) *e = (double)nextafterf((float)*e, INFINITY);
          break;
        case SWAPPED:
          if (k == 0 && n > 1) {
            const double x = e[0];
            e[0] = e[row];
            e[row] = x;
          }
          break;
        default:
          break;
      }
    }
  }
}

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  (void)user;
  if (spoiling && strcmp(node->label, spoiled_layer) == 0)
    spoil(assay_f64(out[0]), out[0]->dims[0], out[0]->size / out[0]->dims[0]);
  return users_tap->layer(users_tap->user, layer, node, iteration, n_in, in, n_out, out);
}

static assay_status_t open_spoiled(const assay_layers_t* layers, void* shared,
                                   const assay_tap_t* tap, void** out) {
  static const assay_tap_t own = {.layer = on_layer};
  users_tap = tap;
  return assay_backend_emu.open(layers, shared, &own, out);
}

// ---- models -------------------------------------------------------------------------------------

#define NET                                                                          \
  {"x float[1,3,6,6]"}, {"w float[4,3,3,3]", "s float[4] positive", "b float[4]",    \
                         "m float[4]",       "v float[4] positive", "f float[4,5]"}, \
      {"Conv conv x w -> c | pads=1,1,1,1",                                          \
       "BatchNormalization norm c s b m v -> n",                                     \
       "Relu cut n -> r",                                                            \
       "GlobalAveragePool pool r -> p",                                              \
       "Flatten flat p -> l | axis=1",                                               \
       "MatMul fc l f -> y"},                                                        \
      "y"
#define CHAIN                                                                                 \
  {"x float[1,8]"}, {"w float[8,16]", "v float[16,4]", "k float[16]"},                        \
      {"MatMul one x w -> a", "Add bias a k -> b", "Tanh bend b -> t", "MatMul two t v -> u", \
       "Softmax last u -> y | axis=1"},                                                       \
      "y"

typedef struct row {
  graph_case_t graph;
  spoil_t spoil;
  const char* layer;
} row_t;

static const row_t rows[] = {
    {{"healthy net", 0, NET}, HEALTHY, NULL},
    {{"healthy chain", 0, CHAIN}, HEALTHY, NULL},
    {{"last row", 0, NET}, LAST_ROW, "conv"},
    {{"first row", 0, NET}, FIRST_ROW, "norm"},
    {{"mean", 0, NET}, MEAN, "conv"},
    {{"tail of rows", 0, NET}, ZERO_TAIL, "pool"},
    {{"two rows swapped", 0, NET}, SWAPPED, "fc"},
    {{"largest of the batch", 0, CHAIN}, LARGEST, "bend"},
    {{"by size", 0, CHAIN}, BY_SIZE, "one"},
    {{"by place", 0, CHAIN}, PLACE, "bias"},
    {{"only alone", 0, CHAIN}, ONLY_ALONE, "two"},
    {{"one element", 0, CHAIN}, ONE_ELEMENT, "last"},
    {{"last bits", 0, NET}, LAST_BITS, "conv"},
    {{"last bits", 0, CHAIN}, LAST_BITS, "two"},
};

static void run(const graph_case_t* g, const assay_backend_t* backend, const char* axis,
                assay_batch_blame_t* out) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(g, in);
  const assay_samples_t inputs = {.n = 1, .n_values = m->graph->n_inputs, .at = in};
  const assay_check_setting_t o = {.precision = {.format = ASSAY_FORMAT_FP32}, .backend = backend};
  const assay_batch_options_t how = {.axis = axis};
  op_case_ok(assay_batch_debug(m, &o, &how, &inputs, out));
  assay_model_release(m);
  graph_case_release(in);
}

static void the_spoiled_layer_is_named(void** state) {
  (void)state;
  assay_backend_t backend = assay_backend_emu;
  backend.open = open_spoiled;
  backend.open_on = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    assay_batch_blame_t b = {0};
    spoiling = r->spoil;
    spoiled_layer = r->layer;
    run(&r->graph, &backend, NULL, &b);
    const assay_batch_verdict_t expected = r->spoil == LAST_BITS ? ASSAY_BATCH_BITS
                                           : r->spoil            ? ASSAY_BATCH_ENGINE
                                                                 : ASSAY_BATCH_SOUND;
    if (b.verdict != expected)
      fail_msg("'%s': the verdict is %s, %s", r->graph.name, assay_batch_verdict_name(b.verdict),
               b.guilty ? b.guilty->why : "");
    if (r->spoil && strcmp(b.guilty->node, r->layer) != 0)
      fail_msg("'%s': '%s' is blamed for what '%s' did", r->graph.name, b.guilty->node, r->layer);
    assay_batch_blame_deinit(&b);
  }
}

// ---- models that mix samples --------------------------------------------------------------------

static const struct {
  graph_case_t graph;
  assay_batch_verdict_t verdict;
  const char* node;  // that is named; NULL: none
  const char* axis;
} models[] = {
    {{"softmax over samples", 0, {"x float[2,4]"}, {NULL}, {"Softmax s x -> y | axis=0"}, "y"},
     ASSAY_BATCH_MODEL,
     "s",
     NULL},
    {{"mean over samples",
      0,
      {"x float[2,4]"},
      {NULL},
      {"ReduceMean r x -> m | axes=0 keepdims=1", "Sub c x m -> y"},
      "y"},
     ASSAY_BATCH_MODEL,
     "r",
     NULL},
    {{"squeezed", 0, {"x float[1,4,1]"}, {NULL}, {"Squeeze q x -> s", "Add a x s -> y"}, "y"},
     ASSAY_BATCH_MODEL,
     "q",
     NULL},
    {{"not squeezed",
      0,
      {"x float[1,4,1]"},
      {"two int64[1] 2"},
      {"Squeeze q x two -> s", "Neg a s -> y"},
      "y"},
     ASSAY_BATCH_SOUND,
     NULL,
     NULL},
    // A shape that fits its own batch only.
    {{"written batch",
      0,
      {"x float[2,6]"},
      {"to int64[3] 2 6 1"},
      {"Reshape r x to -> a", "Neg n a -> y"},
      "y"},
     ASSAY_BATCH_SOUND,
     NULL,
     NULL},
    {{"written batch that mixes",
      0,
      {"x float[2,6]"},
      {"to int64[3] 2 6 1"},
      {"Reshape r x to -> a", "Softmax s a -> y | axis=0"},
      "y"},
     ASSAY_BATCH_MODEL,
     "s",
     NULL},
    // Rows along another axis.
    {{"second axis",
      0,
      {"x float[5,1,4]"},
      {"w float[4,3]"},
      {"MatMul m x w -> a", "Softmax s a -> y | axis=0"},
      "y"},
     ASSAY_BATCH_SOUND,
     NULL,
     "1"},
    {{"mean along the second axis",
      0,
      {"x float[5,2,4]"},
      {NULL},
      {"Neg n x -> a", "ReduceMean r a -> m | axes=1 keepdims=1", "Sub c a m -> y"},
      "y"},
     ASSAY_BATCH_MODEL,
     "r",
     "1"},
    {{"written batch on the second axis",
      0,
      {"x float[5,2,4]"},
      {"to int64[4] 5 2 4 1"},
      {"Reshape r x to -> a", "Softmax s a -> y | axis=1"},
      "y"},
     ASSAY_BATCH_MODEL,
     "s",
     "1"},
};

static void the_mixing_node_is_named(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    assay_batch_blame_t b = {0};
    run(&models[i].graph, &assay_backend_emu, models[i].axis, &b);
    if (b.verdict != models[i].verdict)
      fail_msg("'%s': the verdict is %s", models[i].graph.name,
               assay_batch_verdict_name(b.verdict));
    if (models[i].node && strcmp(b.guilty->node, models[i].node) != 0)
      fail_msg("'%s': '%s' is blamed", models[i].graph.name, b.guilty->node);
    assay_batch_blame_deinit(&b);
  }
}

// The CPU backend keeps what truth keeps.
static void the_cpu_is_sound(void** state) {
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    assay_batch_blame_t b = {0};
    run(&rows[i].graph, &assay_backend_cpu, NULL, &b);
    if (b.verdict)
      fail_msg("'%s': %s in '%s'", rows[i].graph.name, assay_batch_verdict_name(b.verdict),
               b.guilty->node);
    assay_batch_blame_deinit(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_spoiled_layer_is_named),
      cmocka_unit_test(the_mixing_node_is_named),
      cmocka_unit_test(the_cpu_is_sound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
