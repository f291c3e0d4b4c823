// ImageDecoder: the formats that it reads without a library, and files that are broken.
#include "ops/image/image_codec.h"
#include "ops/op_case.h"

// A 2 x 2 bitmap of 24 bits: red green / blue white, bottom row first.
#define BMP24                                                                                     \
  "66 77 70 0 0 0 0 0 0 0 54 0 0 0 40 0 0 0 2 0 0 0 2 0 0 0 1 0 24 0 0 0 0 0 16 0 0 0 0 0 0 0 0 " \
  "0 0 0 "                                                                                        \
  "0 0 0 0 0 0 0 0 255 0 0 255 255 255 0 0 0 0 255 0 255 0 0 0"
#define HUGE_BMP                                                                                  \
  "66 77 70 0 0 0 0 0 0 0 54 0 0 0 40 0 0 0 0 0 0 64 0 0 0 64 1 0 24 0 0 0 0 0 16 0 0 0 0 0 0 0 " \
  "0 0 0 0 "                                                                                      \
  "0 0 0 0 0 0 0 0 0"

static void test_decoder(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"ImageDecoder",
       20,
       NULL,
       {"uint8[70] " BMP24},
       {"uint8[2,2,3] 255 0 0 0 255 0 0 0 255 255 255 255"},
       NULL},
      {"ImageDecoder",
       20,
       "pixel_format=BGR",
       {"uint8[70] " BMP24},
       {"uint8[2,2,3] 0 0 255 0 255 0 255 0 0 255 255 255"},
       NULL},
      {"ImageDecoder",
       20,
       "pixel_format=Grayscale",
       {"uint8[70] " BMP24},
       {"uint8[2,2,1] 76 150 29 255"},
       NULL},
      // "P1 2 1 10", "P2 # c\n1 2 15 0 15", "P5 1 1 65535 " and 0x8000
      {"ImageDecoder",
       20,
       NULL,
       {"uint8[9] 80 49 32 50 32 49 10 49 48"},
       {"uint8[1,2,3] 0 0 0 255 255 255"},
       NULL},
      {"ImageDecoder",
       20,
       "pixel_format=Grayscale",
       {"uint8[17] 80 50 35 99 10 49 32 50 32 49 53 10 48 32 49 53 10"},
       {"uint8[2,1,1] 0 255"},
       NULL},
      {"ImageDecoder",
       20,
       "pixel_format=Grayscale",
       {"uint8[15] 80 53 32 49 32 49 32 54 53 53 51 53 10 128 0"},
       {"uint8[1,1,1] 128"},
       NULL},
      // What cannot be decoded is empty.
      {"ImageDecoder", 20, NULL, {"uint8[0]"}, {"uint8[0,0,3]"}, NULL},
      {"ImageDecoder", 20, "pixel_format=Grayscale", {"uint8[3] 1 2 3"}, {"uint8[0,0,1]"}, NULL},
      {"ImageDecoder", 20, NULL, {"uint8[2] 66 77"}, {"uint8[0,0,3]"}, NULL},
      {"ImageDecoder", 20, NULL, {"uint8[55] " HUGE_BMP}, {"uint8[0,0,3]"}, NULL},
      {"ImageDecoder", 20, NULL, {"uint8[4] 255 216 255 224"}, {"uint8[0,0,3]"}, NULL},
      {"ImageDecoder", 20, NULL, {"uint8[8] 137 80 78 71 13 10 26 10"}, {"uint8[0,0,3]"}, NULL},
      {"ImageDecoder", 20, NULL, {"uint8[8] 73 73 42 0 8 0 0 0"}, {"uint8[0,0,3]"}, NULL},
      {"ImageDecoder", 20, NULL, {"uint8[4] 255 79 255 81"}, {"uint8[0,0,3]"}, NULL},
      {"ImageDecoder",
       20,
       NULL,
       {"uint8[12] 82 73 70 70 0 0 0 0 87 69 66 80"},
       {"uint8[0,0,3]"},
       NULL},
      {"ImageDecoder", 20, NULL, {"uint8[6] 80 54 32 57 57 57"}, {"uint8[0,0,3]"}, NULL},
      {"ImageDecoder", 20, "pixel_format=CMYK", {"uint8[0]"}, {NULL}, "pixel_format is 'CMYK'"},
      {"ImageDecoder", 20, NULL, {"uint8[1,1] 0"}, {NULL}, "rank 1"},
  };
  OP_CASE_RUN(rows);
}

// Every beginning of a file, and the file with any byte changed, is decoded or given up.
static void test_damaged(void** state) {
  (void)state;
  // 8 bits with run lengths: a run, a literal, a move, the end.
  static const uint8_t runs[] = {66, 77, 0, 0, 0, 0, 0, 0, 0, 0, 62, 0, 0, 0, 40, 0, 0, 0, 4, 0,
                                 0,  0,  3, 0, 0, 0, 1, 0, 8, 0, 1,  0, 0, 0, 0,  0, 0, 0, 0, 0,
                                 0,  0,  0, 0, 0, 0, 2, 0, 0, 0, 0,  0, 0, 0, 9,  9, 9, 0, 7, 7,
                                 7,  0,  3, 1, 0, 0, 0, 3, 1, 0, 1,  0, 0, 2, 1,  0, 0, 1};
  static const uint8_t pnm[] = "P6 2 2 255\nabcdefghijkl";
  const struct {
    const uint8_t* data;
    size_t size;
    assay_image_decode_fn decode;
  } files[] = {{runs, sizeof runs, assay_image_decode_bmp},
               {pnm, sizeof pnm - 1, assay_image_decode_pnm}};
  for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
    uint8_t copy[128];
    for (size_t n = 3; n <= files[f].size; n++) {
      for (size_t at = 0; at < n; at++) {
        for (unsigned flip = 0; flip < 256; flip += 51) {
          assay_image_t image = {0};
          memcpy(copy, files[f].data, n);
          copy[at] ^= (uint8_t)flip;
          uint8_t* exact = malloc(n);  // so that reading past the end is seen
          assert_non_null(exact);
          memcpy(exact, copy, n);
          assert_null(files[f].decode(exact, n, &image));
          free(exact);
          if (n == files[f].size && !flip) assert_non_null(image.rgb);
          assay_image_drop(&image);
        }
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_decoder),
                                     cmocka_unit_test(test_damaged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
