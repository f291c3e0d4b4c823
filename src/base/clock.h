// Time that only goes forward, from any moment on: for durations and deadlines.
#ifndef ASSAY_BASE_CLOCK_H_
#define ASSAY_BASE_CLOCK_H_

#include <stdint.h>

int64_t assay_clock_ns(void);      // nanoseconds
double assay_clock_seconds(void);  // seconds; a nanosecond is lost after some months

#endif  // ASSAY_BASE_CLOCK_H_
