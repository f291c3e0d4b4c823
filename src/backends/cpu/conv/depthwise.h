// Depthwise convolutions, channels last, 32 channels at a time: rows of the input are widened to
// float32 with their padding, and stay in the first cache while all places of the kernel go over
// them.
//
// Each element is one chain of fused multiply-adds that begins with the bias and goes over the
// places of the kernel in row-major order, zeros of the padding among them: it depends on neither
// the piece of a row nor the vector that it is made in.
#ifndef ASSAY_BACKENDS_CPU_CONV_DEPTHWISE_H_
#define ASSAY_BACKENDS_CPU_CONV_DEPTHWISE_H_

#include "backends/cpu/pointwise/chain.h"
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

// The same where rows are read as they lie, and what comes after the sums is done to those of some
// columns at a time: one row of the output, up to 32 channels.
typedef struct cpu_depthwise_near cpu_depthwise_near_t;
typedef void cpu_depthwise_finish_t(const float* sums, int vectors, const cpu_depthwise_near_t* d,
                                    char* out);
typedef struct cpu_depthwise_row {
  const char* from;  // place 0 of it
  int64_t step;      // bytes; 0: `from` are zeros, the row is none of the input's
} cpu_depthwise_row_t;
struct cpu_depthwise_near {
  int64_t kernel_rows, kernel, stride, before;  // places of padding
  const cpu_depthwise_row_t* rows;              // one for each row of the kernel
  int64_t places;                               // of a row of the input
  const float *weights, *bias;  // in the order in which channels are loaded (cpu_depthwise_order)
  int64_t columns;
  uint32_t mask;  // of the channels
  void* out;
  int64_t out_step;  // bytes from one column to the next
  cpu_depthwise_finish_t* finish;
  float param[2];  // for it
  // What will be read next, and what will be written; asked for meanwhile.
  const char *fetch, *fetch_out;
  int64_t fetch_bytes, fetch_out_bytes;
};

// The place of channel c among `channels` of up to 32 that lie together.
static inline int cpu_depthwise_order(assay_type_t type, int channels, int c) {
  return type != ASSAY_TYPE_BFLOAT16 || channels <= 16 ? c : c / 2 + c % 2 * 16;
}
// Whether there is a kernel of this kind; dilation along the row is 1.
bool cpu_depthwise_is_near(assay_type_t type, int64_t kernel, int64_t stride, int64_t columns);
void cpu_depthwise_near_run(assay_type_t type, const cpu_depthwise_near_t* d);
// NULL: there is none for this link.
cpu_depthwise_finish_t* cpu_depthwise_finish(assay_type_t type, cpu_link_kind_t kind);

bool cpu_has_depthwise(void);  // whether the CPU has the instructions: AVX-512
void cpu_depthwise_fill(const cpu_depthwise_fill_t* f, float* to);
void cpu_depthwise_run(const cpu_depthwise_t* d);

#endif  // ASSAY_BACKENDS_CPU_CONV_DEPTHWISE_H_
