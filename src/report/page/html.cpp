// SPDX-License-Identifier: Apache-2.0
#include "html.hpp"

#include "trireme/base/text.hpp"

namespace trireme::report {

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    for (const char letter : base::printable(line)) {
      switch (letter) {
        case '&':
          result += "&amp;";
          break;
        case '<':
          result += "&lt;";
          break;
        case '>':
          result += "&gt;";
          break;
        case '"':
          result += "&quot;";
          break;
        case '\'':
          result += "&#39;";
          break;
        default:
          result += letter;
      }
    }
    text.remove_prefix(line.size());
    if (text.starts_with('\n')) {
      result += '\n';
      text.remove_prefix(1);
    }
  }
  return result;
}

}  // namespace trireme::report
