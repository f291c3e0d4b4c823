// Depthwise convolutions, channels last, 32 channels at a time: rows of the input are widened to
// float32 with their padding, and stay in the first cache while all places of the kernel go over
// them.
//
// Each element is one chain of fused multiply-adds that begins with the bias and goes over the
// places of the kernel in row-major order, zeros of the padding among them: it depends on neither
// the piece of a row nor the vector that it is made in.
#ifndef ASSAY_BACKENDS_CPU_DEPTHWISE_H_
#define ASSAY_BACKENDS_CPU_DEPTHWISE_H_

#include "formats/format.h"

enum { CPU_DEPTHWISE_CHANNELS = 32 };

// How n columns of a row, which lie `step` bytes apart, are widened; of 32 channels `channels`,
// zeros for the others.
typedef struct cpu_depthwise_fill {
  assay_type_t type;  // float32, float16 or bfloat16
  const void* from;
  int64_t step, n;
  int channels;
} cpu_depthwise_fill_t;

// One row of the output out of rows of the input, [columns][32] each.
typedef struct cpu_depthwise {
  int64_t kernel_rows, kernel, stride, dilation;
  const float* const* rows;     // one for each row of the kernel
  const float *weights, *bias;  // weights [kernel_rows][kernel][32]
  int64_t columns;
  float* out;
  int64_t out_column;  // elements from one to the next
  int channels;
} cpu_depthwise_t;

bool cpu_has_depthwise(void);  // whether the CPU has the instructions: AVX-512
void cpu_depthwise_fill(const cpu_depthwise_fill_t* f, float* to);
void cpu_depthwise_run(const cpu_depthwise_t* d);

#endif  // ASSAY_BACKENDS_CPU_DEPTHWISE_H_
