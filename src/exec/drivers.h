// Drivers of devices: what this machine is asked for.
#ifndef ASSAY_EXEC_DRIVERS_H_
#define ASSAY_EXEC_DRIVERS_H_

#include "exec/device.h"

// Whether there is a device of that number; nothing is kept open. Errors: DEVICE: says what is
// missing, and where it was looked for.
assay_status_t assay_driver_want(const assay_device_driver_t* driver, int number) ASSAY_MUST_USE;

// What a driver says of a device: all that times depend on, or what is missing, where there is
// none; and what compiled kernels need. One line.
void assay_driver_describe(const assay_device_driver_t* driver, int number, assay_str_t* out);
assay_status_t assay_driver_describe_need(const assay_device_driver_t* driver, int number,
                                          assay_str_t* out) ASSAY_MUST_USE;

// The same of a driver's libraries and of all of its devices: one line.
void assay_driver_describe_all(const assay_device_driver_t* driver, assay_str_t* out);

#endif  // ASSAY_EXEC_DRIVERS_H_
