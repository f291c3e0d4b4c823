// Image files (PNG, JPEG, PPM) as tensors. Nothing is done to them that was not asked for.
#ifndef ASSAY_DATA_IMAGES_H_
#define ASSAY_DATA_IMAGES_H_

#include "base/str.h"
#include "ir/ir.h"

enum { ASSAY_IMAGE_CHANNELS = 3 };

// What is asked for; zeros: nothing.
typedef struct assay_image_request {
  const char* layout;               // "nchw" or "nhwc"; NULL: as the shape of the input says
  int64_t height, width;            // that it is resized to
  int64_t shorter;                  // in their place: what its shorter side is resized to
  int64_t crop_height, crop_width;  // then so much of its middle is taken
  double scale;                     // pixels, 0 to 255, times this; 0: 1
  // Then minus the mean, divided by std: one number for all channels, or one for each.
  double mean[ASSAY_IMAGE_CHANNELS], std[ASSAY_IMAGE_CHANNELS];
  int n_mean, n_std;
} assay_image_request_t;

// Whether bytes begin as such a file does.
bool assay_image_is(const uint8_t* data, size_t size);

// An image for an input of a model; NULL: float32 [1, 3, H, W].
//   request   may be NULL
//   notes  a line of what was done; may be NULL
// Errors: CORRUPT it cannot be decoded; INVALID_ARGUMENT it does not fit the input as it is, or a
// request that makes no sense there.
assay_status_t assay_image_tensor(const uint8_t* data, size_t size, const char* name,
                                  const assay_value_t* input, const assay_image_request_t* request,
                                  assay_str_t* notes, assay_tensor_t** out) ASSAY_MUST_USE;
// The same of a file, which is read now, to see that it can be, and again each time that the tensor
// is widened: one of many. The input and the texts of the request are borrowed as long as the
// tensor lives.
assay_status_t assay_image_tensor_late(const char* path, const assay_value_t* input,
                                       const assay_image_request_t* request, assay_str_t* notes,
                                       assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_DATA_IMAGES_H_
