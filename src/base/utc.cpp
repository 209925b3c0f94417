// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/utc.hpp"

#include "trireme/base/format.hpp"

#include <array>

namespace trireme::base {

std::string utc_text(const timespec& moment) {
  tm parts{};
  ::gmtime_r(&moment.tv_sec, &parts);
  std::array<char, 32> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return format("{}.{:03}Z", std::string_view(text.data(), length), moment.tv_nsec / 1'000'000);
}

std::string utc_text() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return utc_text(now);
}

}  // namespace trireme::base
