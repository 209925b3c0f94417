// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/layout/picture.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace trireme;
using namespace trireme::layout;

namespace {

constexpr int text_columns = 132;

std::filesystem::path docs() {
  return std::filesystem::path(TRIREME_SOURCE_DIR) / "docs";
}

std::filesystem::path page() {
  return docs() / "parallelism.md";
}

struct Example {
  ScheduleKind kind;
  int virtual_stages;
};

constexpr Example examples[] = {
    {ScheduleKind::gpipe, 1},          {ScheduleKind::one_forward_one_backward, 1},
    {ScheduleKind::interleaved, 2},    {ScheduleKind::zero_bubble_h1, 1},
    {ScheduleKind::zero_bubble_h2, 1}, {ScheduleKind::zero_bubble_v, 2}};

struct Drawing {
  std::string text;
  std::string svg;
};

/// Four stages, eight micro-batches; a chunk's action takes its share of a stage's.
Drawing drawn(const Example& example) {
  const auto schedule =
      base::value_or_throw(make_schedule(example.kind, 4, 8, example.virtual_stages));
  const double share = 1.0 / example.virtual_stages;
  const auto simulation = base::value_or_throw(simulate(schedule, {share, share, share, 0}));
  return {timeline_text(schedule, simulation, text_columns), timeline_svg(schedule, simulation)};
}

std::filesystem::path svg_path(const Example& example) {
  return docs() / "images" / base::format("timeline-{}.svg", name(example.kind));
}

/// The page with the named block's content replaced.
std::string with_block(const std::string& text, const std::string& block,
                       const std::string& content) {
  const std::string begin = base::format("<!-- generated: {} -->\n```text\n", block);
  const auto at = text.find(begin);
  REQUIRE(at != std::string::npos);
  const auto from = at + begin.size();
  const auto to = text.find("```\n<!-- end -->", from);
  REQUIRE(to != std::string::npos);
  return text.substr(0, from) + content + text.substr(to);
}

std::string regenerated_page() {
  std::string text = base::value_or_throw(base::read_text_file(page()));
  text = with_block(text, "mesh", mesh_text(Mesh::of(2, 2, 2)));
  for (const Example& example : examples) {
    text = with_block(text, std::string(name(example.kind)), drawn(example).text);
  }
  return text;
}

constexpr const char* remedy = "run unit_layout \"[regenerate]\" and look at what changed";

}  // namespace

TEST_CASE("the pictures in docs/parallelism.md are what the code draws") {
  INFO(remedy);
  CHECK(base::value_or_throw(base::read_text_file(page())) == regenerated_page());
  for (const Example& example : examples) {
    CHECK(base::value_or_throw(base::read_text_file(svg_path(example))) == drawn(example).svg);
  }
}

TEST_CASE("write the pictures of docs/parallelism.md", "[.][regenerate]") {
  base::write_file_durably(page(), regenerated_page());
  for (const Example& example : examples) {
    base::write_file_durably(svg_path(example), drawn(example).svg);
  }
}
