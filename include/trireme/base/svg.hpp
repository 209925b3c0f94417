// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Pictures (SVG 1.1) whose texts never end outside of them.
namespace trireme::base {

/// Which point of a text its x names.
enum class TextAnchor { start, middle, end };

/// How a picture's texts of one kind look.
struct TextStyle {
  std::string_view name;  ///< class of their elements
  double size;            ///< pixels
  TextAnchor anchor = TextAnchor::start;
  bool is_bold = false;
  std::string_view fill = "#222";
};

/// Pixels that a text of UTF-8 takes at most in DejaVu Sans Bold of this size; regular letters,
/// Verdana's, Arial's and Helvetica's take less.
double text_width(std::string_view words, double size);

/// For contents of elements and for attributes in quotation marks, of HTML too; control and broken
/// bytes as \xNN.
std::string xml_escaped(std::string_view words);

/// Square of a legend, and its words.
struct LegendEntry {
  std::string_view fill;
  std::string words;
};

/// Elements in the order in which they are painted.
class SvgPicture {
 public:
  void add(std::string_view element) { body_ += element; }
  void text(double x, double y, const TextStyle& style, std::string_view words);
  void rectangle(double x, double y, double width, double height, std::string_view fill);
  /// Entries side by side from `x` on, whose squares hang down from `y`.
  void legend(double x, double y, const TextStyle& style, std::span<const LegendEntry> entries);

  /// The document of this size in pixels, wider to the left or right where a text would end
  /// outside. `head`: definitions, and styles of other elements than texts.
  std::string document(std::string_view title, double width, double height,
                       std::string_view head = {}) const;

 private:
  std::string body_;
  std::vector<TextStyle> styles_;
  double least_x_ = 0;
  double most_x_ = 0;
};

}  // namespace trireme::base
