// The backends of a program for tests: a GPU that has the conversions with few inputs, and answers as the models do.

#include "tests/emulation/fake_device.h"
#include "tools/backends.h"

namespace halfulp {
namespace {

DeviceInfo open_narrow(int index) {
  DeviceInfo info = kFakeBackend.open(index);
  for (std::size_t id = 0; id < kPtxCvts.size(); ++id)
    info.native[id] = count_inputs(domain_of(conversion(int(id))), CvtInputs::every) <= 65536;
  return info;
}

}  // namespace

std::span<const Backend* const> backends() {
  static const Backend kNarrow = [] {
    Backend backend = kFakeBackend;
    backend.name = "cuda";
    backend.open = open_narrow;
    return backend;
  }();
  static const Backend* const kBackends[] = {&kNarrow};
  return kBackends;
}

}  // namespace halfulp
