// The table of drivers of devices.
#include "exec/drivers.h"

#define ASSAY_DRIVER(name, about) extern const assay_device_driver_t assay_device_driver_##name;
#include "exec/drivers.inc"
#undef ASSAY_DRIVER

static const assay_device_driver_t* const rows[] = {
#define ASSAY_DRIVER(name, about) &assay_device_driver_##name,
#include "exec/drivers.inc"
#undef ASSAY_DRIVER
};

const assay_device_driver_t* assay_driver_at(size_t i) {
  return i < sizeof rows / sizeof *rows ? rows[i] : NULL;
}

void assay_driver_describe(const assay_device_driver_t* driver, assay_str_t* out) {
  assay_device_t* device = NULL;
  assay_status_t st = driver->open(0, &device);
  if (!st) driver->describe(device, out);
  if (!st) driver->close(device);
  if (st) assay_str_append(out, assay_status_message(st));
  assay_status_free(st);
}
