// Drivers of devices.
#include "exec/drivers.h"

static void append_failure(assay_status_t st, assay_str_t* out) {
  if (st) assay_str_append(out, assay_status_message(st));
  assay_status_free(st);
}

void assay_driver_describe(const assay_device_driver_t* driver, int number, assay_str_t* out) {
  assay_device_t* device = NULL;
  assay_status_t st = driver->open(number, &device);
  if (!st) driver->describe(device, out);
  if (!st) driver->close(device);
  append_failure(st, out);
}

void assay_driver_describe_all(const assay_device_driver_t* driver, assay_str_t* out) {
  int n = 0;
  assay_status_t st = driver->count(&n);
  if (st) {
    append_failure(st, out);
    return;
  }
  for (int i = 0; i < n; i++) {
    assay_str_printf(out, "%s%d: ", i ? "; " : "", i);
    assay_driver_describe(driver, i, out);
  }
  if (driver->describe_libraries) {
    assay_str_append(out, "; ");
    driver->describe_libraries(out);
  }
}
