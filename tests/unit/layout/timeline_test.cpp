// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/simulate.hpp"

#include <catch2/catch.hpp>

#include <sstream>

using namespace trireme::layout;
using Catch::Matchers::Contains;

namespace {

struct Pictured {
  Schedule schedule;
  Simulation simulation;
};

Pictured pictured(ScheduleKind kind, int stages, int micro_batches, int virtual_stages = 1) {
  auto schedule = make_schedule(kind, stages, micro_batches, virtual_stages);
  REQUIRE(schedule.ok());
  auto simulation = simulate(*schedule, {});
  REQUIRE(simulation.ok());
  return {*schedule, *simulation};
}

std::size_t letters(const std::string& utf8) {
  std::size_t count = 0;
  for (const char byte : utf8) count += (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  return count;
}

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("the text timeline draws each stage's actions and bubble to scale") {
  const auto [schedule, simulation] =
      pictured(ScheduleKind::one_forward_one_backward, 2, 2);  // makespan 9
  CHECK(timeline_text(schedule, simulation, 80) ==
        "1f1b: 2 stages, 2 micro-batches; makespan 9, bubble 33.3 %\n"
        "stage 0 │0     │1     ··············│0▒▒▒▒▒▒▒▒▒▒▒▒·······│1▒▒▒▒▒▒▒▒▒▒▒▒▏ live 2\n"
        "stage 1 ·······│0     │0▒▒▒▒▒▒▒▒▒▒▒▒│1     │1▒▒▒▒▒▒▒▒▒▒▒▒··············▏ live 1\n"
        "│3   forward   │3▒▒ backward   ··· idle\n");
}

TEST_CASE("the text timeline keeps to its columns, and its lines are equally long") {
  for (const int columns : {40, 60, 100, 200, 1}) {
    for (const auto& picture :
         {pictured(ScheduleKind::gpipe, 4, 8), pictured(ScheduleKind::interleaved, 3, 12, 3),
          pictured(ScheduleKind::one_forward_one_backward, 12, 30)}) {
      std::istringstream lines(timeline_text(picture.schedule, picture.simulation, columns));
      std::string line;
      std::size_t width = 0;
      while (std::getline(lines, line)) {
        if (line.rfind("stage ", 0) != 0) continue;
        if (width == 0) width = letters(line);
        CHECK(letters(line) == width);
      }
      CHECK(width <= std::max<std::size_t>(static_cast<std::size_t>(columns), 24));
    }
  }
}

TEST_CASE("narrow cells keep numbers, and backwards their shade") {
  const auto [schedule, simulation] = pictured(ScheduleKind::one_forward_one_backward, 2, 2);
  // Makespan 9 in nine columns.
  CHECK_THAT(timeline_text(schedule, simulation, 25), Contains("stage 0 01··0▒·1▒▏"));
  const auto [longer, run] = pictured(ScheduleKind::one_forward_one_backward, 2, 12);
  // 13 rounds of 3 units, two columns each: a forward of two digits has no room for its edge.
  CHECK_THAT(timeline_text(longer, run, 105), Contains("│9▒▒11··│10▒") || Contains("│9▒▒11│10▒"));
}

TEST_CASE("the text timeline tells chunks apart") {
  const auto [schedule, simulation] = pictured(ScheduleKind::interleaved, 2, 2, 2);
  const std::string text = timeline_text(schedule, simulation, 100);
  CHECK_THAT(text, Contains("┃0") && Contains("virtual stages: │ 0 ┃ 1"));
}

TEST_CASE("the SVG timeline has a cell for every action, a legend, and nothing from outside") {
  const auto [schedule, simulation] = pictured(ScheduleKind::interleaved, 3, 6, 2);
  const std::string svg = timeline_svg(schedule, simulation);
  CHECK(svg == timeline_svg(schedule, simulation));
  CHECK(occurrences(svg, "<g><title>") == 3 * 6 * 2 * 2);
  CHECK_THAT(svg, Contains("backward of micro-batch 5, virtual stage 1"));
  CHECK_THAT(svg, Contains(">forward, virtual stage 1</text>") && Contains(">idle</text>"));
  CHECK_THAT(svg, Contains("bubble 14.3 %"));
  CHECK(occurrences(svg, "<script") + occurrences(svg, "href") + occurrences(svg, "@import") == 0);
  for (const char* tag : {"svg", "g", "text", "title", "style", "defs", "pattern"}) {
    const std::string open = std::string("<") + tag;
    CHECK(occurrences(svg, open + " ") + occurrences(svg, open + ">") ==
          occurrences(svg, std::string("</") + tag + ">"));
  }
}

TEST_CASE("timelines of schedules without duration are still pictures") {
  auto schedule = make_schedule(ScheduleKind::gpipe, 2, 2, 1);
  REQUIRE(schedule.ok());
  auto simulation = simulate(*schedule, {0, 0, 0, 0});
  REQUIRE(simulation.ok());
  CHECK_THAT(timeline_text(*schedule, *simulation, 80), Contains("bubble 0.0 %"));
  CHECK_THAT(timeline_svg(*schedule, *simulation), !Contains("nan") && !Contains("inf"));
}
