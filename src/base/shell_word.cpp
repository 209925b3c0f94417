// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/shell_word.hpp"

namespace trireme::base {
namespace {

constexpr std::string_view plain_letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:,@%+=";

}  // namespace

std::string shell_word(std::string_view text) {
  const bool is_plain = !text.empty() && text.front() != '-' &&
                        text.find_first_not_of(plain_letters) == std::string_view::npos;
  if (is_plain) return std::string(text);
  std::string word = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      word += R"('\'')";
    } else {
      word += letter;
    }
  }
  return word + "'";
}

}  // namespace trireme::base
