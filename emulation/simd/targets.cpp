#include <hwy/targets.h>

#include <stdexcept>
#include <string>

#include "emulation/simd/simd.h"

namespace halfulp::simd {

std::vector<std::string_view> targets() {
  std::vector<std::string_view> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

ForcedTarget::ForcedTarget(std::string_view name) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (hwy::TargetName(target) != name) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    return;
  }
  throw std::invalid_argument("this processor and build have no " + std::string(name));
}

ForcedTarget::~ForcedTarget() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace halfulp::simd
