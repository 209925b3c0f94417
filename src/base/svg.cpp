// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/svg.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace trireme::base {
namespace {

/// Advance widths of ' ' to '~' in DejaVu Sans Bold 2.37, in thousandths of its size.
constexpr std::array<int, 95> letter_widths = {
    348,  456, 521, 838, 696, 1002, 872, 306,  457, 457, 523, 838, 380, 415,  380, 365,
    696,  696, 696, 696, 696, 696,  696, 696,  696, 696, 400, 400, 838, 838,  838, 580,
    1000, 774, 762, 734, 830, 683,  683, 821,  837, 372, 372, 775, 637, 995,  837, 850,
    733,  850, 770, 720, 682, 812,  774, 1103, 771, 724, 725, 457, 365, 457,  838, 500,
    500,  675, 716, 593, 716, 678,  435, 716,  712, 343, 343, 665, 343, 1042, 712, 687,
    716,  716, 493, 595, 478, 712,  652, 924,  645, 652, 582, 712, 365, 712,  838};
/// Width of any other letter: none that fonts have is wider, but for ligatures.
constexpr int other_width = 1250;
/// Pixels between a text and the picture's edge.
constexpr double margin = 12;

bool begins_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

/// A coordinate to a hundredth of a pixel.
std::string pixels(double length) {
  return number_text(std::round(length * 100) / 100);
}

std::string_view name_of(TextAnchor anchor) {
  switch (anchor) {
    case TextAnchor::start:
      return "start";
    case TextAnchor::middle:
      return "middle";
    case TextAnchor::end:
      return "end";
  }
  return {};
}

std::string rule_of(const TextStyle& style) {
  auto rule = format(".{} {{ font-size: {}px;", style.name, number_text(style.size));
  if (style.is_bold) rule += " font-weight: bold;";
  if (style.anchor != TextAnchor::start) {
    rule += format(" text-anchor: {};", name_of(style.anchor));
  }
  return rule + format(" fill: {}; }}\n", style.fill);
}

}  // namespace

double text_width(std::string_view words, double size) {
  int thousandths = 0;
  for (const char byte : words) {
    if (byte >= ' ' && byte <= '~') {
      thousandths += letter_widths[static_cast<std::size_t>(byte - ' ')];
    } else if (begins_letter(byte)) {
      thousandths += other_width;
    }
  }
  return thousandths * size / 1000;
}

std::string xml_escaped(std::string_view words) {
  std::string text;
  for (const char letter : printable(words)) {
    switch (letter) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '"':
        text += "&quot;";
        break;
      case '\'':
        text += "&#39;";
        break;
      default:
        text += letter;
    }
  }
  return text;
}

void SvgPicture::text(double x, double y, const TextStyle& style, std::string_view words) {
  const double width = text_width(printable(words), style.size);
  const double before = style.anchor == TextAnchor::start    ? 0
                        : style.anchor == TextAnchor::middle ? width / 2
                                                             : width;
  least_x_ = std::min(least_x_, x - before - margin);
  most_x_ = std::max(most_x_, x - before + width + margin);
  const bool is_new = std::none_of(styles_.begin(), styles_.end(), [&style](const auto& known) {
    return known.name == style.name;
  });
  if (is_new) styles_.push_back(style);
  body_ += format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", pixels(x), pixels(y),
                  style.name, xml_escaped(words));
}

void SvgPicture::rectangle(double x, double y, double width, double height, std::string_view fill) {
  body_ += format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", pixels(x),
                  pixels(y), pixels(width), pixels(height), fill);
}

void SvgPicture::legend(double x, double y, const TextStyle& style,
                        std::span<const LegendEntry> entries) {
  for (const auto& entry : entries) {
    rectangle(x, y, 14, 12, entry.fill);
    text(x + 19, y + 11, style, entry.words);
    x += 19 + text_width(entry.words, style.size) + 18;
  }
}

std::string SvgPicture::document(std::string_view title, double width, double height,
                                 std::string_view head) const {
  const double left = std::floor(least_x_);
  const double whole = std::max(width, std::ceil(most_x_)) - left;
  std::string rules;
  for (const auto& style : styles_) rules += rule_of(style);
  return format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{1}\" height=\"{2}\" viewBox=\"{0} 0 {1} "
      "{2}\" role=\"img\">\n<title>{3}</title>\n<style>\ntext {{ font-family: \"DejaVu Sans\", "
      "Verdana, sans-serif; }}\n{4}</style>\n{5}<rect x=\"{0}\" width=\"{1}\" height=\"{2}\" "
      "fill=\"#fff\"/>\n{6}</svg>\n",
      pixels(left), pixels(whole), pixels(height), xml_escaped(title), rules, head, body_);
}

}  // namespace trireme::base
