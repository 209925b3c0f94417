// SPDX-License-Identifier: Apache-2.0
// trireme watch
#include "trireme/report/watch.hpp"

#include "trireme/base/error.hpp"
#include "trireme/track/rank_scrape.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/runs/output_forms.hpp"
#include "apps/runs/screen.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>

namespace trireme::apps {
namespace {

using report::Tone;

struct WatchOptions {
  std::filesystem::path run;
  bool once = false;
  double interval = 1;
};

const char* colour_of(Tone tone) {
  switch (tone) {
    case Tone::faint:
      return "\033[2m";
    case Tone::strong:
      return "\033[1m";
    case Tone::good:
      return "\033[32m";
    case Tone::warning:
      return "\033[33m";
    case Tone::bad:
      return "\033[31m";
    case Tone::plain:
      break;
  }
  return "";
}

std::string painted(const std::vector<report::FrameLine>& frame) {
  std::string text;
  for (const auto& line : frame) {
    for (const auto& span : line) {
      text += span.tone == Tone::plain ? span.text : colour_of(span.tone) + span.text + "\033[0m";
    }
    text += "\n";
  }
  return text;
}

/// Asks the nodes of a run for their ranks' times, without keeping the screen waiting.
class RankTimesInBackground {
 public:
  explicit RankTimesInBackground(std::filesystem::path run) : run_(std::move(run)) { ask(); }

  /// Answers of the nodes since the last call.
  std::optional<std::vector<telemetry::RankTime>> take() {
    if (answer_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
    auto times = answer_.get();
    ask();
    return times;
  }

 private:
  void ask() {
    answer_ = std::async(std::launch::async, [run = run_] { return track::scrape_ranks(run); });
  }

  std::filesystem::path run_;
  std::future<std::vector<telemetry::RankTime>> answer_;
};

/// Draws until the run ends, or the person has seen enough.
void follow(report::WatchedRun& run, const WatchOptions& options, bool colour,
            base::Glyphs glyphs) {
  const auto pause = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(options.interval));
  RankTimesInBackground times(options.run);
  Screen screen;
  while (run.state() == report::State::running) {
    const auto size = screen.size();
    constexpr std::size_t least_rows = 2;
    const auto rows = std::max(least_rows, size.rows) - 1;
    const auto frame = run.frame({size.columns, rows}, glyphs, now_ms());
    screen.draw((colour ? painted(frame) : text_of(frame)) + "q quits; the run goes on\n");
    const auto event = screen.wait(pause);
    if (event == Screen::Event::end) return;
    if (event != Screen::Event::none) continue;
    base::success_or_throw(run.advance());
    if (auto newest = times.take()) run.show(std::move(*newest));
  }
}

base::ExitCode watch(const WatchOptions& options, Context& context) {
  auto run = base::value_or_throw(report::WatchedRun::open(options.run));
  const bool on_terminal =
      ::isatty(STDOUT_FILENO) == 1 && context.environment.get("TERM") != "dumb";
  const bool colour = wants_colour(context.environment, STDOUT_FILENO);
  const auto glyphs = glyphs_of(context.environment);
  if (on_terminal && !options.once) {
    follow(run, options, colour, glyphs);
  } else if (run.state() == report::State::running) {
    run.show(track::scrape_ranks(options.run));
  }
  // The screen's last picture stays: how the run stands, or has ended.
  const auto frame = run.frame({terminal_width(), 0}, glyphs, now_ms());
  context.out.write(colour && on_terminal ? painted(frame) : text_of(frame));
  return base::ExitCode::done;
}

Action prepare_watch(CLI::App& app) {
  auto options = std::make_shared<WatchOptions>();
  app.add_option("RUN", options->run, "Run directory")->required()->type_name("PATH");
  app.add_flag("--once", options->once, "Prints how the run stands, and ends");
  constexpr double shortest = 0.1;
  constexpr double longest = 3600;
  app.add_option("--interval", options->interval, "Seconds between two readings")
      ->type_name("SECONDS")
      ->check(in_range(shortest, longest))
      ->capture_default_str();
  return [options](Context& context) { return watch(*options, context); };
}

}  // namespace

Command watch_command() {
  return {.name = "watch",
          .summary = "Shows how a run goes on: curves, speed, where its time goes, next save",
          .group = "Explanations",
          .details =
              "On a terminal it draws until the run ends or q is pressed, which leaves the run as "
              "it is; the last picture stays. Elsewhere, and with --once, it prints one. Times and "
              "shares are means of the last 20 steps; parts of a step are those of rank 0. The "
              "slowest rank of a node is the one that computes longest in a step: asked of the "
              "nodes where they answer to Prometheus (track.prometheus_port), else as the run "
              "records it every half minute.",
          .prepare = prepare_watch};
}

}  // namespace trireme::apps
