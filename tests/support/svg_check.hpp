// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pugixml.hpp>

#include <cctype>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

/// Reads pictures as XML, and looks whether all that they draw lies within them.
namespace trireme::tests {

struct SvgFrame {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  bool holds(double x, double y) const {
    constexpr double rounding = 0.011;
    return x >= left - rounding && x <= left + width + rounding && y >= top - rounding &&
           y <= top + height + rounding;
  }
};

/// Whether all points of a path's M, L, H, V, h and v lie within; false for any other letter.
inline bool holds_path(const SvgFrame& frame, std::string_view path) {
  std::istringstream words{std::string(path)};
  double x = 0;
  double y = 0;
  for (char letter = 0; words >> letter;) {
    double first = 0;
    words >> first;
    double second = 0;
    switch (letter) {
      case 'M':
      case 'L':
        words >> second;
        x = first;
        y = second;
        break;
      case 'H':
        x = first;
        break;
      case 'V':
        y = first;
        break;
      case 'h':
        x += first;
        break;
      case 'v':
        y += first;
        break;
      default:
        return false;
    }
    if (!words || !frame.holds(x, y)) return false;
    words >> std::ws;
  }
  return true;
}

inline bool holds_element(const SvgFrame& frame, const pugi::xml_node& element) {
  const std::string_view name = element.name();
  const auto number = [&](const char* attribute) {
    return element.attribute(attribute).as_double(frame.left);
  };
  if (name == "rect") {
    const double y = element.attribute("y").as_double(0);
    return number("width") >= 0 && number("height") >= 0 && frame.holds(number("x"), y) &&
           frame.holds(number("x") + number("width"), y + number("height"));
  }
  if (name == "circle") {
    const double radius = number("r");
    return frame.holds(number("cx") - radius, number("cy") - radius) &&
           frame.holds(number("cx") + radius, number("cy") + radius);
  }
  if (name == "path") return holds_path(frame, element.attribute("d").value());
  if (name == "text") return frame.holds(number("x"), number("y"));
  return name == "title" || name == "style";
}

/// Empty for a picture that is right; else what is not.
inline std::string svg_fault(const std::string& document) {
  pugi::xml_document xml;
  const auto parsed = xml.load_string(document.c_str());
  if (!parsed) return parsed.description();
  const auto root = xml.child("svg");
  SvgFrame frame;
  std::istringstream numbers(root.attribute("viewBox").value());
  if (!(numbers >> frame.left >> frame.top >> frame.width >> frame.height)) return "no view box";
  if (std::string_view(root.child("title").text().get()).empty()) return "no title";
  for (const auto& element : root.children()) {
    if (holds_element(frame, element)) continue;
    std::ostringstream text;
    element.print(text);
    return text.str();
  }
  return {};
}

/// Words of all texts.
inline std::vector<std::string> svg_texts(const std::string& document) {
  pugi::xml_document xml;
  xml.load_string(document.c_str());
  std::vector<std::string> texts;
  for (const auto& element : xml.child("svg").children("text")) {
    texts.emplace_back(element.text().get());
  }
  return texts;
}

}  // namespace trireme::tests
