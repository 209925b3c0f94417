// SPDX-License-Identifier: Apache-2.0
#include "train/lines/step_lines.hpp"

#include "trireme/base/columns.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/text.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme;
using base::Glyphs;
using base::Trend;

namespace {

train::StepRecord record_of(std::int64_t step, double loss) {
  train::StepRecord record;
  record.step = step;
  record.loss = loss;
  record.step_ms = 500;
  record.grad_norm = 0;
  record.learning_rate = 0;
  record.exposed_comm_ms = 0;
  record.bubble_ms = 0;
  return record;
}

train::StepFigures figures_of(const train::StepRecord& record, Trend trend = Trend::falls) {
  return {record, 4000, 20514, 0.412, 723, trend};
}

/// The text without colours.
std::string plain(std::string text) {
  for (auto at = text.find('\033'); at != std::string::npos; at = text.find('\033')) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  return text;
}

/// Lines of rank 0's file after steps 1 to `steps`.
std::vector<std::string> file_after(std::int64_t steps, const train::StepLines::Settings& settings,
                                    base::log::Level threshold = base::log::Level::warning) {
  const tests::TemporaryFolder folder;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): configure() changes the original.
  const auto before = base::log::settings();
  auto log = before;
  log.file = (folder.path() / "log.txt").string();
  log.threshold = threshold;
  base::log::configure(log);
  {
    train::StepLines lines(settings);
    for (std::int64_t step = 1; step <= steps; ++step) lines.took(record_of(step, 2), 100, 0.5);
  }
  base::log::configure(before);
  const auto text = base::value_or_throw(base::read_text_file(log.file));
  std::vector<std::string> lines;
  for (const auto line : base::split(base::trimmed(text), '\n')) lines.emplace_back(line);
  return lines;
}

}  // namespace

TEST_CASE("a step's line on a terminal fits it, and the loss is what it keeps to the last") {
  const auto record = record_of(812, 3.2711);
  const auto figures = figures_of(record);
  const auto whole = train::terminal_step_line(figures, {.columns = 90});
  CHECK(whole == "step    812/4000  loss 3.2711 ↘  20514 tok/s  mfu 41.2 %  left 12 min 3 s");
  for (std::size_t columns = 10; columns < 90; ++columns) {
    const auto line = train::terminal_step_line(figures, {.columns = columns, .colour = true});
    CAPTURE(columns, line);
    CHECK(plain(line).find("3.2711") != std::string::npos);
    CHECK((base::width_of(plain(line)) <= columns || plain(line) == "loss 3.2711 ↘"));
  }
  CHECK(train::terminal_step_line(figures, {.columns = 60}) ==
        "step    812/4000  loss 3.2711 ↘  left 12 min 3 s");
}

TEST_CASE("colours of a step's line say whether the loss falls, rises or is lost") {
  const auto record = record_of(812, 3.2711);
  const auto line = [&](const train::StepRecord& step, Trend trend, bool colour) {
    return train::terminal_step_line(figures_of(step, trend), {.columns = 90, .colour = colour});
  };
  CHECK(line(record, Trend::falls, true).find("\033[32mloss 3.2711 ↘\033[0m") != std::string::npos);
  CHECK(line(record, Trend::rises, true).find("\033[33mloss 3.2711 ↗\033[0m") != std::string::npos);
  const auto lost = record_of(812, std::nan(""));
  CHECK(line(lost, Trend::unknown, true).find("\033[31mloss nan\033[0m") != std::string::npos);
  CHECK(line(record, Trend::falls, false).find('\033') == std::string::npos);
  const auto ascii = train::terminal_step_line(figures_of(record, Trend::rises),
                                               {.columns = 90, .glyphs = Glyphs::ascii});
  CHECK(ascii.find("3.2711 ^  ") != std::string::npos);
}

TEST_CASE("the status line shows the share done and the curve, in any width") {
  const auto record = record_of(1000, 3.5);
  std::vector<double> losses;
  for (int at = 0; at < 200; ++at) losses.push_back(5 - 0.01 * at);
  const auto figures = figures_of(record);
  const auto line = train::progress_line(figures, losses, {.columns = 99});
  CHECK(line.find(" 25 %  █") != std::string::npos);
  CHECK(line.find("▁  loss 3.5000  20514 tok/s  left 12 min 3 s") != std::string::npos);
  for (std::size_t columns = 12; columns < 200; ++columns) {
    CAPTURE(columns);
    const auto drawn = train::progress_line(figures, losses, {.columns = columns, .colour = true});
    CHECK(base::width_of(plain(drawn)) <= columns);
  }
}

TEST_CASE("off a terminal steps have a line each interval, the first and the last in any case") {
  using namespace std::chrono_literals;
  const train::StepLines::Settings seldom{.steps = 1000, .log_every = 1, .interval = 10h};
  const auto few = file_after(1000, seldom);
  REQUIRE(few.size() == 2);
  CHECK(few.front().ends_with(
      "step      1/1000  loss 2.0000  100 tok/s  mfu 50.0 %  left 8 min 20 s"));
  CHECK(few.back().find("step   1000/1000") != std::string::npos);
  const auto all = file_after(50, {.steps = 1000, .log_every = 5, .interval = 0ms});
  CHECK(all.size() == 10);
  // -v: long lines, and all of them.
  const auto long_lines = file_after(50, seldom, base::log::Level::debug);
  REQUIRE(long_lines.size() == 50);
  CHECK(
      long_lines.front().find("norm 0.000  rate 0.00e+00  100 tok/s  mfu 50.0 %  exposed 0.0 ms") !=
      std::string::npos);
}
