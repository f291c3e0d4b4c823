// Resampling along axes: what Resize and Upsample make of their attributes, and how it is done.
#ifndef ASSAY_OPS_CONV_RESIZE_H_
#define ASSAY_OPS_CONV_RESIZE_H_

#include "ops/op.h"

typedef enum resize_mode { RESIZE_NEAREST = 0, RESIZE_LINEAR, RESIZE_CUBIC } resize_mode_t;

// How a place in the output becomes one in the input. Formulas: see resize_place.
typedef enum resize_coordinates {
  RESIZE_HALF_PIXEL = 0,
  RESIZE_HALF_PIXEL_SYMMETRIC,
  RESIZE_PYTORCH_HALF_PIXEL,
  RESIZE_ALIGN_CORNERS,
  RESIZE_ASYMMETRIC,
  RESIZE_TF_HALF_PIXEL_FOR_NN,
  RESIZE_TF_CROP,
} resize_coordinates_t;

typedef enum resize_nearest {
  RESIZE_ROUND_PREFER_FLOOR = 0,
  RESIZE_ROUND_PREFER_CEIL,
  RESIZE_FLOOR,
  RESIZE_CEIL,
  RESIZE_SIMPLE,  // Resize-10, Upsample: floor when enlarging, ceil when shrinking
} resize_nearest_t;

typedef struct resize_options {
  resize_mode_t mode;
  resize_coordinates_t coordinates;
  resize_nearest_t nearest;
  double cubic_a;
  bool exclude_outside, antialias;
  double extrapolation;
  bool magnitude;  // weights by their absolute values, for bounds
} resize_options_t;

// One axis to resample.
typedef struct resize_axis {
  int64_t in, out;
  double scale;       // as given, or out / in
  double width;       // scale * in: the output's size before it became an integer
  double start, end;  // region of interest, for RESIZE_TF_CROP
  double off;         // for bounds: places are moved by what so large a unit roundoff may do; 0
} resize_axis_t;

// Output place j takes `taps` elements of the input: index[j * taps ...] with weight[...].
typedef struct resize_table {
  int64_t taps;
  int64_t* index;
  double* weight;  // NULL: nearest, one tap of weight 1
  bool* outside;   // outputs that get the extrapolation value; NULL: none do
} resize_table_t;

// What a node of Resize or Upsample does to an input of these sizes. in: its inputs' elements,
// canonical, of which roi, scales and sizes are read.
assay_status_t assay_resize_read(const assay_node_t* node, int rank, const int64_t* dims,
                                 const assay_tensor_t* const* in, size_t n_in, resize_options_t* o,
                                 resize_axis_t* axes) ASSAY_MUST_USE;
// Whether an axis stays as it is; such ones have no table.
bool assay_resize_is_identity(const resize_options_t* o, const resize_axis_t* a);
// The taps of an axis, weights rounded to c's arithmetic; to be freed with deinit even after an
// error.
assay_status_t assay_resize_table_init(const assay_eval_t* c, const resize_options_t* o,
                                       const resize_axis_t* a, resize_table_t* out) ASSAY_MUST_USE;
void assay_resize_table_deinit(resize_table_t* t);

// y = x resampled along all axes; y has the sizes axis[i].out.
assay_status_t assay_resize_run(const assay_eval_t* c, const resize_options_t* o,
                                const resize_axis_t* axes, const assay_tensor_t* x,
                                assay_tensor_t* y) ASSAY_MUST_USE;
// Taps of all axes together, and how far an engine that computes places and weights in its own
// arithmetic, of unit roundoff u, may go wrong in the weights of one output element: the sum of
// |weight| differences. For bounds.
double assay_resize_taps(const resize_options_t* o, int rank, const resize_axis_t* axes);
double assay_resize_misplaced(const resize_options_t* o, int rank, const resize_axis_t* axes,
                              double u);
// Whether an engine that computes places with unit roundoff u may take another element somewhere
// along an axis, or the extrapolation value instead of one.
assay_status_t assay_resize_may_jump(const resize_options_t* o, const resize_axis_t* a, double u,
                                     bool* out) ASSAY_MUST_USE;
// Multiplications and additions of that.
double assay_resize_flops(const resize_options_t* o, int rank, const resize_axis_t* axes);

#endif  // ASSAY_OPS_CONV_RESIZE_H_
