// Products of matrices, and convolutions as such products: what the tactics of them have in common.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_PRODUCT_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_PRODUCT_H_

#include "backends/cuda/kernels/copy_args.h"
#include "backends/cuda/kernels/product_args.h"
#include "backends/cuda/pointwise/program.h"
#include "backends/cuda/product/constants.h"
#include "backends/cuda/product/gather.h"
#include "backends/cuda/tactic.h"

typedef enum cuda_left { CUDA_LEFT_MATRIX = 0, CUDA_LEFT_CONV, CUDA_LEFT_TRANSPOSED } cuda_left_t;

// What a layer multiplies. Addresses are filled in where it runs, but for those of constants that
// it has packed: a bias as it is read, weights with the kernel (cuda_product_bring).
typedef struct cuda_product {
  product_args_t args;
  cuda_left_t left;
  int x, w;  // inputs of the layer; w -1: the weights are constants, packed (args.w)
  assay_type_t in, out;
  assay_type_t through;  // what a result is rounded to before it is stored as `out`, for a caller;
                         // UNDEFINED: nothing else
  copy_box_t packing;    // of weights of the run (packing.h); size 0: they are taken as they lie
  const assay_operand_t* taps_of;  // constant weights of a convolution; NULL: there are none
  cuda_taps_t taps;                // and how they lie in args.w, unless a kernel has them otherwise
  cuda_gather_t gather;            // of the left side (gather.h)
  bool ends;  // the program begins with the first node's own end: the factors and addend of a Gemm,
              // a convolution's bias that is no constant
  int done;   // nodes of the layer whose work the sums and the bias are: 2 where an Add of a row
              // behind a MatMul is the bias
  const assay_operand_t* bias;  // the constant behind args.bias; NULL: none
  assay_type_t half_type;       // the output is made of halves of the product's columns (halves.h),
                                // which are rounded to this type before; UNDEFINED: it is not
  int halves;                   // then: the input that stands for what the product makes
  bool scaled;                  // the left side is multiplied by what args.scale says (scale.c),
  int scale;                    // which is this input
  bool normalized;              // what is made is normalized by args.norm into a second output
                                // (product_norm.c), with
  int norm_scale, norm_bias;    // these inputs; -1: there is none
  int x_sharing;                // so many blocks of a cluster bring parts of the left side for all
                                // of them; 0: each block brings its own
  bool tf32;                    // float32 is rounded to tf32 where it is multiplied
  int parts;  // of float32: the constant weights lie in so many parts of tf32 (constants.h)
  assay_layout_t layout;
} cuda_product_t;

// *ok false: the layer is no product, or not one of this form. Biases are brought to the device.
// Errors: NO_MEMORY, DEVICE; sizes that do not fit together.
assay_status_t cuda_product_read(const assay_sized_layer_t* l, cuda_product_t* p,
                                 bool* ok) ASSAY_MUST_USE;

// Weights of groups with few columns: [terms, columns of all groups] instead of
// [columns of all groups, terms], for direct_conv.cu.
assay_status_t cuda_product_read_direct(const assay_sized_layer_t* l, cuda_product_t* p,
                                        bool* ok) ASSAY_MUST_USE;

// Brings constant weights of a convolution to the device, unless args.w has them already: a layer
// is read for each tactic that may take it, in other orders than that of the one which does.
assay_status_t cuda_product_bring(const assay_sized_layer_t* l, cuda_product_t* p) ASSAY_MUST_USE;

// What the layer does after the product; *out stays NULL where there is nothing, and *ok becomes
// false where no program does it. Destroyed with cuda_program_destroy.
assay_status_t cuda_product_program(const assay_sized_layer_t* l, const cuda_product_t* p,
                                    cuda_program_t** out, bool* ok) ASSAY_MUST_USE;

// A kernel of a product that was read: that of a source (with its options; what comes after the
// product is added), on this grid. *out stays NULL where no program does what comes after it.
assay_status_t cuda_product_kernel(const assay_sized_layer_t* l, const cuda_product_t* p,
                                   const cuda_source_t* source, const cuda_grid_t* grid,
                                   assay_kernel_t** out) ASSAY_MUST_USE;

// A tile of a product, and how it is shared out: the part of a thread, or its warps.
typedef struct cuda_tile {
  int rows, columns, down, across;
} cuda_tile_t;
// Microseconds by a tile.
typedef double cuda_tile_predict_t(const cuda_own_t* own, const cuda_product_t* p,
                                   const cuda_tile_t* t);

int64_t cuda_tile_blocks(const product_args_t* a, const cuda_tile_t* t);
// Shared memory of a tile's sums (kernels/product/product_sums.h).
int cuda_tile_sums_bytes(const cuda_tile_t* t);
// Tiles as variants, named "ROWSxCOLUMNS"; the way back, NULL: it is none of them.
void cuda_tile_variants(const assay_sized_layer_t* l, const cuda_product_t* p,
                        const cuda_tile_t* tiles, int n, const char* numerics,
                        cuda_tile_predict_t* predict, assay_variant_t* out, size_t* out_n);
const cuda_tile_t* cuda_tile_find(const cuda_product_t* p, const cuda_tile_t* tiles, int n,
                                  const assay_variant_t* v);

// The same where a kernel takes more than product_args_t: `enqueue` fills in what it takes.
typedef struct cuda_product_launch {
  assay_status_t (*enqueue)(const cuda_product_t* p, const cuda_tile_t* tile, assay_queue_t* q,
                            cuda_kernel_t kernel, const cuda_grid_t* grid,
                            const product_args_t* args);
  const cuda_tile_t* tile;  // not copied
} cuda_product_launch_t;
assay_status_t cuda_product_kernel_by(const assay_sized_layer_t* l, const cuda_product_t* p,
                                      const cuda_source_t* source, const cuda_grid_t* grid,
                                      const cuda_product_launch_t* way,
                                      assay_kernel_t** out) ASSAY_MUST_USE;

// How kernels bring operands (kernels/product/product_tiles.h), by `piece` elements of 16 bytes:
// X_FAST, whether pieces along k of the left side lie at multiples of 16 bytes; W_FAST.
enum { CUDA_BY_ELEMENTS = 6 };  // so many times as long takes a step that is not
bool cuda_x_is_fast(const product_args_t* a, cuda_left_t left, int64_t piece);
int cuda_w_way(const product_args_t* a, int64_t piece);
// Elements that lie at multiples of so many, of all rows, of both sides: 8, 2 or 1.
int cuda_product_piece(const product_args_t* a);
// Whether each window of a convolution is one place, and the next one the next place: rows of a
// matrix, x_place apart.
bool cuda_is_one_to_one(const product_args_t* a);
// Whether an axis is none: one place, and one tap without pads.
bool cuda_axis_is_one(const product_axis_t* x);

// Takes such a convolution as a product of matrices.
void cuda_product_join_places(cuda_product_t* p);

// Whether no layer before this one writes the weights.
bool cuda_weights_are_constant(const assay_sized_layer_t* l, const cuda_product_t* p);

// How tensor cores sum (product_mma.c): the same in all kernels of ours that ask for them.
#define CUDA_TENSOR_ROUNDING                                                           \
  {                                                                                    \
    .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .truncates = true, \
    .fma = true, .by_definition = true, .function_ulps = 4                             \
  }

// Options that all kernels of products have.
void cuda_product_options(const cuda_product_t* p, assay_str_t* out);

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_PRODUCT_H_
