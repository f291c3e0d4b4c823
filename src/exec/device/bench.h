// Kernels that run alone, on operands of their own: what it takes to time them, and to compare what
// they make.
#ifndef ASSAY_EXEC_DEVICE_BENCH_H_
#define ASSAY_EXEC_DEVICE_BENCH_H_

#include "exec/device/device_share.h"

typedef struct assay_bench {
  const assay_device_driver_t* driver;
  assay_queue_t* q;
  assay_event_t *begin, *end;
  assay_device_ptr_t in[ASSAY_KERNEL_OPERANDS], out[ASSAY_KERNEL_OPERANDS], scratch;
} assay_bench_t;

// Operands as a kernel reads and writes them, and scratch of so many bytes. All are zeros: valid as
// indices, and as fast as other numbers but for subnormal ones. Deinit it also where it fails.
assay_status_t assay_bench_init(const assay_device_shared_t* s, const assay_sized_layer_t* l,
                                const assay_kernel_t* k, size_t scratch,
                                assay_bench_t* b) ASSAY_MUST_USE;
void assay_bench_deinit(assay_bench_t* b);

// As in assay_choice_setting_t; user is an assay_device_shared_t.
assay_status_t assay_bench_time(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                                int runs, double* out_microseconds) ASSAY_MUST_USE;
assay_status_t assay_bench_same_bits(void* user, const assay_sized_layer_t* l,
                                     assay_kernel_t* const* k, int n,
                                     bool* out_same) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_DEVICE_BENCH_H_
