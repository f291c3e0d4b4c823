// Drivers of devices: what this machine is asked for.
#ifndef ASSAY_EXEC_DRIVERS_H_
#define ASSAY_EXEC_DRIVERS_H_

#include "exec/device.h"

// What a driver says of a device (device.h), or what is missing, where there is none. One line.
void assay_driver_describe(const assay_device_driver_t* driver, int number, assay_str_t* out);

// The same of a driver's libraries and of all of its devices: one line.
void assay_driver_describe_all(const assay_device_driver_t* driver, assay_str_t* out);

#endif  // ASSAY_EXEC_DRIVERS_H_
