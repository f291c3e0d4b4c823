// Rates of devices that are not here, for estimated times (roofline: S. Williams, A. Waterman,
// D. Patterson, CACM 2009).
#ifndef ASSAY_PLAN_ROOFLINE_H_
#define ASSAY_PLAN_ROOFLINE_H_

#include <stddef.h>

#include "formats/format.h"

typedef struct assay_device_roofline {
  const char *name, *what;
  double fp32, tf32, fp16, bf16, fp8;  // TFLOP/s
  double gigabytes, microseconds;      // a second; of a launch
} assay_device_roofline_t;

// What sums of products of a format run at, in TFLOP/s.
double assay_device_roofline_rate(const assay_device_roofline_t* device, assay_format_t format);
// Row i of the table; NULL after the last one. Row 0 is the default.
const assay_device_roofline_t* assay_device_roofline(size_t i);
const assay_device_roofline_t* assay_device_roofline_find(const char* name);

#endif  // ASSAY_PLAN_ROOFLINE_H_
