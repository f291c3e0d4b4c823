// Convolutions of few channels as products of matrices.
#include "backends/cuda/product/gather.h"

#include "backends/cuda/product/constants.h"
#include "backends/cuda/product/product.h"

enum { THREADS = 256, PIECE_BYTES = 16, MAX_IMAGE_BYTES = 40 << 10 };
static const int64_t max_elements = (int64_t)1 << 27;  // 256 MB of 16 bits

static int bytes_of(const cuda_product_t* p) {
  const bool is_byte = p->in == ASSAY_TYPE_INT8 || p->in == ASSAY_TYPE_UINT8;
  return is_byte ? 1 : (int)assay_kernel_float_bytes(p->in);
}
// Terms of a step that the copy engine brings of windows as they lie.
static int step_of(const cuda_product_t* p) { return p->in == ASSAY_TYPE_FLOAT ? 32 : 64; }
static int piece_of(const cuda_product_t* p) { return PIECE_BYTES / bytes_of(p); }
static int64_t pitch_of(const cuda_product_t* p) {
  const int piece = piece_of(p);
  return (p->args.k + piece - 1) / piece * piece;
}

static gather_axis_t axis_of(const product_axis_t* x) {
  return (gather_axis_t){x->in, x->out, x->kernel, x->stride, x->pad};
}

// Whether windows have no place in common, so that the matrix is no larger than the image.
static bool are_apart(const product_args_t* a) {
  bool apart = true;
  for (int d = 0; d < PRODUCT_AXES; d++) apart &= a->axes[d].kernel <= a->axes[d].stride;
  return apart;
}

bool cuda_gather_fits(const cuda_product_t* p) {
  const product_args_t* a = &p->args;
  bool fits = p->left == CUDA_LEFT_CONV && p->w < 0 && a->matrices == 1 &&
              a->channels == a->x_place && a->k != a->channels &&
              (a->channels % piece_of(p) != 0 || (a->channels % step_of(p) != 0 && are_apart(a))) &&
              a->m <= max_elements / pitch_of(p) && a->k <= MAX_IMAGE_BYTES / bytes_of(p);
  for (int d = 0; fits && d < PRODUCT_AXES; d++) {
    const product_axis_t* x = &a->axes[d];
    fits = x->dilation == 1 &&
           (d >= PRODUCT_AXES - 2 || (x->in == 1 && x->out == 1 && x->kernel == 1 && !x->pad));
  }
  return fits && (int64_t)a->axes[PRODUCT_AXES - 1].in * a->channels <= INT32_MAX / 4;
}

void cuda_gather_join(cuda_product_t* p) {
  product_args_t* a = &p->args;
  const int64_t pitch = pitch_of(p);
  p->gather.args = (gather_windows_args_t){.rows = a->m,
                                           .x_sample = a->x_sample,
                                           .channels = a->channels,
                                           .terms = (int32_t)a->k,
                                           .pitch = (int32_t)pitch,
                                           .down = axis_of(&a->axes[PRODUCT_AXES - 2]),
                                           .across = axis_of(&a->axes[PRODUCT_AXES - 1])};
  gather_windows_args_t* g = &p->gather.args;
  g->pieces = (int32_t)(pitch / piece_of(p));
  g->lines = divisor_of((uint32_t)g->down.out);
  g->terms_of_row = divisor_of((uint32_t)(g->across.kernel * g->channels));
  p->left = CUDA_LEFT_MATRIX;
  a->k = a->x_row = a->w_column = pitch;
  a->x_k = 1;
}

// Elements of a line of the image that so many windows read.
static int64_t line_of(const gather_windows_args_t* g, int32_t windows) {
  return ((windows - 1) * (int64_t)g->across.stride + g->across.kernel) * g->channels;
}

// So many windows of a line a block that what they read finds room in its shared memory, and, where
// there are few lines, that all multiprocessors have some blocks.
static void share_out(const cuda_own_t* own, const cuda_product_t* p, cuda_gather_t* gather) {
  enum { FEW = 8, BLOCKS = 4, IMAGE_BYTES = 16 << 10 };
  gather_windows_args_t* g = &gather->args;
  const int64_t lines = g->rows / g->across.out, line_bytes = (int64_t)g->down.kernel * bytes_of(p);
  const int64_t wanted = BLOCKS * (int64_t)own->properties.multiprocessors;
  int32_t n = g->across.out;
  while (n > 1 && (line_of(g, n) * line_bytes > IMAGE_BYTES ||
                   (n > FEW && lines * ((g->across.out + n - 1) / n) < wanted)))
    n = (n + 1) / 2;
  g->windows = divisor_of((uint32_t)n);
  g->parts = divisor_of((uint32_t)((g->across.out + n - 1) / n));
  g->line = divisor_of((uint32_t)line_of(g, n));
  gather->blocks = lines * g->parts.size;
  gather->shared_bytes = (int)(line_of(g, n) * line_bytes);
}

assay_status_t cuda_gather_load(const cuda_own_t* own, cuda_product_t* p) {
  static const char* const options[] = {[1] = "-DBITS=8", [2] = "-DBITS=16", [4] = "-DBITS=32"};
  share_out(own, p, &p->gather);
  const cuda_source_t source = {.file = "gather_windows.cu",
                                .kernel = "gather_windows",
                                .options = options[bytes_of(p)],
                                .shared_bytes = p->gather.shared_bytes};
  return cuda_function_get(own->functions, &source, &p->gather.kernel);
}

assay_status_t cuda_gather_get(const assay_sized_layer_t* l, cuda_product_t* p) {
  const gather_windows_args_t* g = &p->gather.args;
  const assay_operand_t* w = assay_sized_input(l, l->layer->nodes[0]->inputs[1]);
  const cuda_taps_t taps = {.m = p->args.n,
                            .mg = p->args.n,
                            .cg = w->dims[1],
                            .taps = g->terms / w->dims[1],
                            .pitch = g->pitch};
  ASSAY_TRY(cuda_taps_get(l, w, &taps, &p->args.w));
  return cuda_gather_load(cuda_own_of(l), p);
}

assay_status_t cuda_gather_enqueue(const cuda_gather_t* g, assay_queue_t* q,
                                   assay_device_ptr_t from, assay_device_ptr_t to) {
  gather_windows_args_t args = g->args;
  const cuda_grid_t grid = {
      .blocks = g->blocks, .threads = THREADS, .dependent = true, .shared_bytes = g->shared_bytes};
  args.x = from;
  args.y = to;
  return cuda_queue_launch(q, g->kernel, &grid, &args);
}
