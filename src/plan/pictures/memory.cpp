// SPDX-License-Identifier: Apache-2.0
// Memory of each stage's largest rank, by purpose.
#include "trireme/base/chart.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/svg.hpp"

#include "drawings.hpp"

#include <algorithm>

namespace trireme::plan {
namespace {

using base::format;

constexpr double bar_left = 96;
constexpr double bars_width = 720;
constexpr double bars_top = 84;
constexpr double bar_height = 20;
constexpr double bar_distance = 28;
constexpr double gibibyte = 1024.0 * 1024 * 1024;
constexpr double mebibyte = 1024.0 * 1024;
/// Part of the picture's width that the largest bar takes, or the room if that is wider.
constexpr double widest = 0.9;

constexpr base::TextStyle memory_title{"title", 15, base::TextAnchor::start, true};
constexpr base::TextStyle memory_words{"plain", 12};
constexpr base::TextStyle memory_stage{"stage", 12, base::TextAnchor::end, true};
constexpr base::TextStyle memory_tick{"tick", 11, base::TextAnchor::middle};

struct ByteAxis {
  double pixels_per_byte;
  double unit;
  std::string_view unit_name;

  double x(double bytes) const { return bar_left + bytes * pixels_per_byte; }
};

ByteAxis byte_axis(double most) {
  return {widest * bars_width / most, most < gibibyte ? mebibyte : gibibyte,
          most < gibibyte ? "MiB" : "GiB"};
}

void draw_stage(base::SvgPicture& picture, const ByteAxis& axis, const engine::MemoryUse& bytes,
                double y) {
  double x = bar_left;
  for (std::size_t purpose = 0; purpose < bytes.size(); ++purpose) {
    const double width = static_cast<double>(bytes[purpose]) * axis.pixels_per_byte;
    if (bytes[purpose] > 0) {
      picture.rectangle(x, y, width, bar_height, base::part_fills[purpose]);
    }
    x += width;
  }
  picture.text(x + 8, y + 14, memory_words, base::bytes_text(engine::total_bytes(bytes)));
}

void draw_byte_axis(base::SvgPicture& picture, const ByteAxis& axis, double most, double y) {
  picture.add(
      format("<path d=\"M{:.2f} {:.2f}h{:.2f}\" class=\"axis\"/>\n", bar_left, y, bars_width));
  for (const double tick : base::ticks_of(0, most / axis.unit / widest, 8)) {
    const double x = axis.x(tick * axis.unit);
    picture.add(format("<path d=\"M{:.2f} {:.2f}v5\" class=\"axis\"/>\n", x, y));
    picture.text(x, y + 18, memory_tick, base::short_text(tick));
  }
  picture.text(bar_left + bars_width / 2, y + 36, memory_tick, axis.unit_name);
}

void draw_room(base::SvgPicture& picture, const ByteAxis& axis, std::size_t room, double bottom) {
  const double x = axis.x(static_cast<double>(room));
  picture.add(
      format("<path d=\"M{:.2f} {:.2f}V{:.2f}\" class=\"room\"/>\n", x, bars_top - 8, bottom));
  picture.text(x, bars_top - 12, memory_tick, format("room {}", base::bytes_text(room)));
}

}  // namespace

std::string memory_drawing(const Pictures& pictures) {
  std::size_t largest = std::max<std::size_t>(1, pictures.room);
  for (const auto& bytes : pictures.memory) {
    largest = std::max(largest, engine::total_bytes(bytes));
  }
  const auto axis = byte_axis(static_cast<double>(largest));
  const auto title = format("Memory of {} on {}, by stage", pictures.layout, pictures.machine);
  base::SvgPicture picture;
  picture.text(24, 28, memory_title, title);
  picture.text(24, 48, memory_words, "arrays of each stage's largest rank, to the byte");
  double y = bars_top;
  for (std::size_t stage = 0; stage < pictures.memory.size(); ++stage) {
    picture.text(bar_left - 8, y + 14, memory_stage, format("stage {}", stage));
    draw_stage(picture, axis, pictures.memory[stage], y);
    y += bar_distance;
  }
  if (pictures.room > 0) draw_room(picture, axis, pictures.room, y);
  draw_byte_axis(picture, axis, static_cast<double>(largest), y);
  std::vector<base::LegendEntry> entries;
  for (std::size_t purpose = 0; purpose < engine::device_purposes.size(); ++purpose) {
    entries.push_back({base::part_fills[purpose], device::name(engine::device_purposes[purpose])});
  }
  picture.legend(bar_left, y + 52, memory_words, entries);
  return picture.document(title, bar_left + bars_width + 40, y + 80,
                          "<style>.axis{stroke:#666;fill:none}.room{stroke:#b3261e;fill:none;"
                          "stroke-dasharray:6 4}</style>\n");
}

}  // namespace trireme::plan
