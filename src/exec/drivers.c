// Drivers of devices.
#include "exec/drivers.h"

typedef void describe_t(assay_device_t* d, assay_str_t* out);

static assay_status_t say(const assay_device_driver_t* driver, int number, describe_t* describe,
                          assay_str_t* out) {
  assay_device_t* device = NULL;
  ASSAY_TRY(driver->open(number, &device));
  describe(device, out);
  driver->close(device);
  return assay_str_status(out);
}

static void append_failure(assay_status_t st, assay_str_t* out) {
  if (st) assay_str_append(out, assay_status_message(st));
  assay_status_free(st);
}

assay_status_t assay_driver_want(const assay_device_driver_t* driver, int number) {
  assay_device_t* device = NULL;
  ASSAY_TRY(driver->open(number, &device));
  driver->close(device);
  return NULL;
}

void assay_driver_describe(const assay_device_driver_t* driver, int number, assay_str_t* out) {
  append_failure(say(driver, number, driver->describe, out), out);
}

assay_status_t assay_driver_describe_need(const assay_device_driver_t* driver, int number,
                                          assay_str_t* out) {
  return say(driver, number, driver->describe_need ? driver->describe_need : driver->describe, out);
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
