// The table of drivers of devices: what this machine is asked for.
#ifndef ASSAY_EXEC_DRIVERS_H_
#define ASSAY_EXEC_DRIVERS_H_

#include "exec/device.h"

// Row i; NULL: after the last.
const assay_device_driver_t* assay_driver_at(size_t i);

// What a driver says of device 0, or what is missing: one line.
void assay_driver_describe(const assay_device_driver_t* driver, assay_str_t* out);

#endif  // ASSAY_EXEC_DRIVERS_H_
