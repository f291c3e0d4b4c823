// The libraries behind the operators.
#include "ops/libraries.h"

#include <cblas.h>
#include <openjpeg.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <png.h>
#include <string.h>
#include <webp/decode.h>

void assay_ops_describe_libraries(assay_str_t* out) {
  char pcre2[64] = "";
  const int webp = WebPGetDecoderVersion();
  if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) <= (int)sizeof pcre2)
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
  // Its text begins with the library's name.
  assay_str_printf(out, "%s, PCRE2 %s, libpng %s, OpenJPEG %s, libwebp %d.%d.%d",
                   openblas_get_config(), pcre2, png_get_libpng_ver(NULL), opj_version(),
                   webp >> 16, webp >> 8 & 255, webp & 255);
}

const char* assay_ops_blas_kernels(void) { return openblas_get_corename(); }
