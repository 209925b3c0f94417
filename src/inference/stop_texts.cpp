// SPDX-License-Identifier: Apache-2.0
#include "stop_texts.hpp"

#include <algorithm>

namespace trireme::inference {

bool StopTexts::found(std::string_view answer, std::size_t first_new) const {
  return std::any_of(texts_.begin(), texts_.end(), [&](const std::string& text) {
    const auto from = first_new > text.size() ? first_new - text.size() : 0;
    return answer.find(text, from) != std::string_view::npos;
  });
}

std::size_t StopTexts::cut(std::string_view answer) const {
  auto end = answer.size();
  for (const auto& text : texts_) end = std::min(end, answer.find(text));
  return end;
}

std::size_t StopTexts::settled(std::string_view answer) const {
  const auto end = cut(answer);
  if (end < answer.size()) return end;
  auto settled = end;
  for (const auto& text : texts_) {
    const auto most = std::min(text.size() - 1, answer.size());
    for (auto count = most; count > 0; --count) {
      if (answer.ends_with(std::string_view(text).substr(0, count))) {
        settled = std::min(settled, answer.size() - count);
        break;
      }
    }
  }
  return settled;
}

}  // namespace trireme::inference
