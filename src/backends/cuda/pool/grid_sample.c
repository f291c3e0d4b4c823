// GridSample (kernels/pool/grid_sample.cu).
#include <string.h>

#include "backends/cuda/kernels/grid_sample_args.h"
#include "backends/cuda/tactic.h"
#include "base/alloc.h"

enum { THREADS = 128, LARGEST_TAPS = 16 };

typedef struct grid_sample {
  assay_kernel_t base;
  cuda_kernel_t function;
  cuda_grid_t grid;
  int x, places;  // inputs of the layer
  grid_sample_args_t args;
} grid_sample_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const grid_sample_t* k = (const grid_sample_t*)base;
  grid_sample_args_t a = k->args;
  (void)scratch;
  a.x = in[k->x];
  a.grid = in[k->places];
  a.y = out[0];
  return cuda_queue_launch(q, k->function, &k->grid, &a);
}

static void destroy(assay_kernel_t* base) { assay_free(base); }

// Taps an axis of a mode, by the names of all versions; 0: there is no such.
static int taps_of(const char* mode) {
  static const struct {
    const char* name;
    int taps;
  } modes[] = {{"nearest", 1}, {"bilinear", 2}, {"linear", 2}, {"bicubic", 4}, {"cubic", 4}};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(mode, modes[i].name) == 0) return modes[i].taps;
  return 0;
}

static const char* padding_of(const char* mode) {
  static const char* const names[][2] = {
      {"zeros", "PAD_ZEROS"}, {"border", "PAD_BORDER"}, {"reflection", "PAD_REFLECTION"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(mode, names[i][0]) == 0) return names[i][1];
  return NULL;
}

// Sizes that do not fit together are for the emulated engine, which says so.
static bool lay_out(const assay_operand_t* x, const assay_operand_t* grid, const assay_operand_t* y,
                    grid_sample_args_t* a) {
  const int axes = x->rank - 2;
  if (axes < 1 || axes > SAMPLE_AXES || grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
      grid->dims[x->rank - 1] != axes || !x->size || !y->size)
    return false;
  *a = (grid_sample_args_t){.batch = x->dims[0],
                            .channels = x->dims[1],
                            .groups = (x->dims[1] + SAMPLE_CHANNELS - 1) / SAMPLE_CHANNELS,
                            .in_size = assay_dims_product(x->dims, 2, x->rank),
                            .places = assay_dims_product(grid->dims, 1, grid->rank - 1)};
  for (int d = 0; d < axes; d++) a->sizes[d] = x->dims[2 + d];
  int64_t size;
  return assay_mul_i64(a->batch * a->channels, a->places, &size) && size == y->size;
}

static bool is_for_us(const assay_sized_layer_t* l) {
  const assay_node_t* n = l->layer->nodes[0];
  return (!*n->domain || strcmp(n->domain, "com.microsoft") == 0) &&
         strcmp(n->op_type, "GridSample") == 0 && l->layer->n_nodes == 1 && n->n_inputs == 2 &&
         l->n_out == 1 && l->out[0].value;
}

// The operands, and what the kernel is compiled for.
static bool read(const assay_sized_layer_t* l, grid_sample_t* k, assay_str_t* options) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t *x = assay_sized_input(l, n->inputs[0]),
                        *grid = assay_sized_input(l, n->inputs[1]), *y = &l->out[0];
  const int taps = taps_of(assay_attr_str(n, "mode", "linear"));
  const char* padding = padding_of(assay_attr_str(n, "padding_mode", "zeros"));
  if (!x || !grid || !taps || !padding || !cuda_type_name(x->type) || !cuda_type_name(grid->type) ||
      !cuda_type_name(y->type) || !lay_out(x, grid, y, &k->args) ||
      (x->rank == 5 && taps * taps * taps > LARGEST_TAPS))
    return false;
  k->x = (int)(x - l->in);
  k->places = (int)(grid - l->in);
  k->base.in[k->x] = (assay_storage_t){x->type, ASSAY_LAYOUT_PLAIN};
  k->base.in[k->places] = (assay_storage_t){grid->type, ASSAY_LAYOUT_PLAIN};
  k->base.out[0] = (assay_storage_t){y->type, ASSAY_LAYOUT_PLAIN};
  assay_str_printf(options, "-DAXES=%d -DTAPS=%d -DALIGN=%d -D%s -DG=%s -DT=%s -DTO=%s",
                   x->rank - 2, taps, assay_attr_i64(n, "align_corners", 0) != 0, padding,
                   cuda_type_name(grid->type), cuda_type_name(x->type), cuda_type_name(y->type));
  return true;
}

static assay_status_t load(const assay_sized_layer_t* l, assay_str_t* options, grid_sample_t* k) {
  const cuda_own_t* own = cuda_own_of(l);
  const grid_sample_args_t* a = &k->args;
  const cuda_source_t source = {
      .file = "grid_sample.cu", .kernel = "grid_sample", .options = assay_str_get(options)};
  k->grid = (cuda_grid_t){.blocks = cuda_blocks_for(own, a->batch * a->groups * a->places, THREADS),
                          .threads = THREADS,
                          .dependent = true};
  ASSAY_TRY(assay_str_status(options));
  return cuda_function_get(own->functions, &source, &k->function);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  grid_sample_t* k = NULL;
  assay_str_t options = {0};
  if (!is_for_us(l)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  const bool ok = read(l, k, &options);
  assay_status_t st = ok ? load(l, &options, k) : NULL;
  assay_str_deinit(&options);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_grid_sample = {
    .name = "grid_sample",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32},
};
