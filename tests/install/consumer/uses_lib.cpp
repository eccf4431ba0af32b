// Links the static library and what it links.

#include "lib/exact_sum.h"
#include "lib/json.h"
#include "lib/safetensors.h"

int main() {
  halfulp::ExactSum sum;
  for (const double x : {1e100, 1.0, -1e100}) sum.add(x);
  return sum.value() == 1.0 ? 0 : 1;
}
