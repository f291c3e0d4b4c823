// Products whose operands the copy engine brings: sm_90, one matrix, whose rows and weights begin
// at multiples of 16 bytes; convolutions with two axes, whose channels are whole steps, those that
// are a product of matrices, and those of few channels, which become one (gather.h). Of 16 bits
// rows of constant weights that begin elsewhere are brought with zeros behind each; of float32
// weights are constants, in parts of tf32.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_BULK_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_BULK_H_

#include "backends/cuda/kernels/product_bulk_args.h"
#include "backends/cuda/maps.h"
#include "backends/cuda/product/constants.h"
#include "backends/cuda/product/product.h"

enum {
  CUDA_BULK_STEP_BYTES = 128,  // of a row or column
  // Shared memory beside steps: the place that they begin at (a multiple of 1024), and barriers.
  CUDA_BULK_OTHER_BYTES = 2 << 10,
  CUDA_BULK_MAX_STAGES = 12
};

// How the copy engine gets the operands.
typedef struct cuda_bulk {
  bool windows, turned;
  cuda_tiles_t rows, weights;    // width and height by the tile
  cuda_windows_t places;         // instead of rows
  int padded;                    // the input whose rows of weights get zeros behind them; -1: none
  const assay_operand_t* split;  // the constant whose parts the weights are; NULL: they are not
  cuda_parts_t parts;
} cuda_bulk_t;

// *ok false: the copy engine does not bring the operands of the layer's product, which may become
// one of matrices for that. Errors: as cuda_product_read
assay_status_t cuda_bulk_read(const assay_sized_layer_t* l, cuda_product_t* p, cuda_bulk_t* b,
                              bool* ok) ASSAY_MUST_USE;
// The same of layers of fp32, whose sides are multiplied in two parts.
assay_status_t cuda_bulk_read_parts(const assay_sized_layer_t* l, cuda_product_t* p, cuda_bulk_t* b,
                                    bool* ok) ASSAY_MUST_USE;
// The same of float32 as it lies, for multiply-adds.
assay_status_t cuda_bulk_read_plain(const assay_sized_layer_t* l, cuda_product_t* p, cuda_bulk_t* b,
                                    bool* ok) ASSAY_MUST_USE;

// How the copy engine gets the left side by steps of so many terms, a line: rows, places and
// windows of *b. False: it does not.
bool cuda_bulk_read_left(const cuda_product_t* p, int terms, cuda_bulk_t* b);
// Tells the engine where both sides lie. Errors: as cuda_map_tiles
assay_status_t cuda_bulk_map(assay_queue_t* q, const cuda_bulk_t* b, assay_device_ptr_t x,
                             assay_device_ptr_t w, tensor_map_t* to_x,
                             tensor_map_t* to_w) ASSAY_MUST_USE;

// Brings what is gathered or padded. Errors: NO_MEMORY, DEVICE
assay_status_t cuda_bulk_get(const assay_sized_layer_t* l, const cuda_bulk_t* b,
                             cuda_product_t* p) ASSAY_MUST_USE;

// A kernel of kernels/product/NAME.cu that has so many stages, of so many threads and so much
// shared memory; cluster: the blocks that share the weights of a tile's columns, 0: none do;
// options of its own, NULL: none.
typedef struct cuda_bulk_kernel {
  const char *file, *name, *options;
  int64_t blocks;
  int stages, threads, shared_bytes, cluster;
} cuda_bulk_kernel_t;
assay_status_t cuda_bulk_make(const assay_sized_layer_t* l, const cuda_product_t* p,
                              const cuda_bulk_t* b, const cuda_tile_t* s,
                              const cuda_bulk_kernel_t* k, assay_kernel_t** out) ASSAY_MUST_USE;

// `variants` of a tactic of such products, by its tiles; and the tile that a variant names, with
// what the layer multiplies, *s NULL: it is none of them, or the layer none for it.
assay_status_t cuda_bulk_variants(const assay_sized_layer_t* l, const cuda_tile_t* tiles, int n,
                                  cuda_tile_predict_t* predict, assay_variant_t* out,
                                  size_t* out_n) ASSAY_MUST_USE;
assay_status_t cuda_bulk_find(const assay_sized_layer_t* l, const assay_variant_t* v,
                              const cuda_tile_t* tiles, int n, cuda_product_t* p, cuda_bulk_t* b,
                              const cuda_tile_t** s) ASSAY_MUST_USE;

int cuda_bulk_terms(const cuda_product_t* p);  // of a step
int64_t cuda_bulk_steps(const cuda_product_t* p);
int cuda_bulk_step_bytes(const cuda_tile_t* s);  // of shared memory
double cuda_bulk_gather_us(const cuda_product_t* p);
// Microseconds of a step of a tile whose lines have so many bytes, by one multiprocessor, where so
// many blocks run and `sharing` of them bring the weights together.
double cuda_bulk_step_us(const cuda_own_t* own, const cuda_tile_t* s, int line_bytes,
                         int64_t blocks, int sharing);
// Whether tiles are counted down the rows first (DOWN_FIRST).
bool cuda_bulk_is_down_first(const cuda_product_t* p);

// Of a kernel that makes a tile by a block (kernels/product/product_block.h), of so many steps of
// these bytes: the stages that it has, and its threads and shared memory.
int cuda_bulk_block_stages(const cuda_own_t* own, const cuda_tile_t* s, bool alone, int64_t steps,
                           int step_bytes);
// The same with so many bytes of shared memory beside them: fewer stages where these would take
// what a multiprocessor has for the block, but no fewer than sums need.
int cuda_bulk_stages_beside(const cuda_own_t* own, const cuda_tile_t* s, bool alone, int stages,
                            int step_bytes, int others);
// Whether all blocks run at once, and so each may be alone in a multiprocessor.
bool cuda_bulk_is_alone(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s);
int cuda_bulk_block_threads(const cuda_tile_t* s);
int cuda_bulk_block_bytes(int stages, int step_bytes);

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_BULK_H_
