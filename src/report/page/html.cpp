// SPDX-License-Identifier: Apache-2.0
#include "html.hpp"

#include "trireme/base/svg.hpp"

namespace trireme::report {

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    result += base::xml_escaped(line);
    text.remove_prefix(line.size());
    if (text.starts_with('\n')) {
      result += '\n';
      text.remove_prefix(1);
    }
  }
  return result;
}

}  // namespace trireme::report
