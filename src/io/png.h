// Pictures as PNG files. Source: W3C, Portable Network Graphics, third edition.
#ifndef ASSAY_IO_PNG_H_
#define ASSAY_IO_PNG_H_

#include <stdint.h>

#include "base/status.h"

// Writes a picture of width * height pixels of three bytes (red, green, blue), row by row from the
// top. INVALID_ARGUMENT: no pixels, or more than PNG can say.
assay_status_t assay_png_write(const char* path, int64_t width, int64_t height,
                               const uint8_t* rgb) ASSAY_MUST_USE;

#endif  // ASSAY_IO_PNG_H_
