// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"

#include <string>
#include <string_view>
#include <type_traits>

/// HTML in which no text of others can become markup: only markup() makes Html, and what it puts
/// into the pattern is escaped unless it is Html itself.
namespace trireme::report {

/// For contents of elements and for attributes in quotation marks. Control characters and what is
/// no UTF-8 are shown as \xNN.
std::string escaped(std::string_view text);

class Html {
 public:
  Html() = default;
  const std::string& text() const { return text_; }
  Html& operator+=(const Html& other) {
    text_ += other.text_;
    return *this;
  }
  bool empty() const { return text_.empty(); }

  /// Text that is markup already: a constant of this program, or an SVG drawn by it.
  static Html trusted(std::string text) {
    Html html;
    html.text_ = std::move(text);
    return html;
  }

 private:
  std::string text_;
};

inline const std::string& as_markup(const Html& html) {
  return html.text();
}
inline std::string as_markup(std::string_view text) {
  return escaped(text);
}
template <typename T,
          std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, char>, int> = 0>
T as_markup(T number) {
  return number;
}

template <typename T>
using Markup = decltype(as_markup(std::declval<const T&>()));

/// The pattern with its arguments as markup.
template <typename... Args>
Html markup(base::format_string<Markup<Args>...> pattern, const Args&... arguments) {
  return Html::trusted(base::format(pattern, as_markup(arguments)...));
}

}  // namespace trireme::report
