// SPDX-License-Identifier: Apache-2.0
#include "apps/runs/output_forms.hpp"

#include "trireme/base/json_text.hpp"

#include "apps/cli/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace trireme::apps {

std::size_t terminal_width() {
  constexpr std::size_t narrowest = 40;
  constexpr std::size_t usual = 100;
  constexpr std::size_t widest = 200;
  const auto size = terminal_size(STDOUT_FILENO);
  return size ? std::clamp(size->columns, narrowest, widest) : usual;
}

std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string json_line(const base::Json& json) {
  return base::json_text(json) + "\n";
}

}  // namespace trireme::apps
