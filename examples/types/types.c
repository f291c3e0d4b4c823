// Prints the element types that Assay knows.
#include <assay/assay.h>
#include <stdio.h>

int main(void) {
  for (int type = 1; type < ASSAY_TYPE_COUNT; type++)
    printf("%2d %s\n", type, assay_type_name((assay_type_t)type));
  return 0;
}
