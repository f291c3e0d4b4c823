// Rates of devices that are not here (devices.inc).
#include "plan/roofline.h"

#include <string.h>

#define ASSAY_DEVICE(name, what, fp32, tf32, fp16, bf16, fp8, gigabytes, microseconds) \
  {name, what, fp32, tf32, fp16, bf16, fp8, gigabytes, microseconds},
static const assay_device_roofline_t devices[] = {
#include "plan/devices.inc"
};
#undef ASSAY_DEVICE

const assay_device_roofline_t* assay_device_roofline(size_t i) {
  return i < sizeof devices / sizeof *devices ? &devices[i] : NULL;
}

const assay_device_roofline_t* assay_device_roofline_find(const char* name) {
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    if (strcmp(devices[i].name, name) == 0) return &devices[i];
  return NULL;
}

double assay_device_roofline_rate(const assay_device_roofline_t* d, assay_format_t f) {
  switch (f) {
    case ASSAY_FORMAT_TF32:
      return d->tf32;
    case ASSAY_FORMAT_FP16:
      return d->fp16;
    case ASSAY_FORMAT_BF16:
      return d->bf16;
    case ASSAY_FORMAT_FP64:
      return d->fp32 / 2;
    default:
      return assay_format_info(f)->bits == 8 ? d->fp8 : d->fp32;
  }
}
