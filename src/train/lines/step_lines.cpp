// SPDX-License-Identifier: Apache-2.0
#include "train/lines/step_lines.hpp"

#include "trireme/base/columns.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/log_file.hpp"
#include "trireme/base/log_terminal.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace trireme::train {
namespace {

namespace log = base::log;

constexpr std::size_t drawn_losses = 240;
constexpr std::size_t trend_losses = 40;
constexpr std::size_t timed_steps = 20;
constexpr std::chrono::milliseconds between_drawings{100};

void push(std::deque<double>& numbers, double number, std::size_t most) {
  numbers.push_back(number);
  if (numbers.size() > most) numbers.pop_front();
}

/// Look for the terminal as wide as it is now; `before` columns are taken.
Look look_of_terminal(std::size_t before) {
  const auto columns = log::terminal_columns();
  return {columns - std::min(columns, before), log::settings().colour, log::terminal_glyphs()};
}

}  // namespace

StepLines::~StepLines() {
  log::set_status_line("");
}

double StepLines::seconds_left(std::int64_t step) const {
  const double sum = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
  const double mean = sum / static_cast<double>(std::max<std::size_t>(seconds_.size(), 1));
  return mean * static_cast<double>(settings_.steps - step);
}

void StepLines::took(const StepRecord& record, double tokens_per_second, double mfu) {
  push(losses_, record.loss, drawn_losses);
  push(seconds_, record.seconds(), timed_steps);
  const std::vector<double> losses(losses_.begin(), losses_.end());
  const auto trend = base::trend_of(std::span(losses).last(std::min(losses.size(), trend_losses)));
  const StepFigures figures{record, settings_.steps,           tokens_per_second,
                            mfu,    seconds_left(record.step), trend};
  const bool is_log_step = record.step % settings_.log_every == 0 || record.step == settings_.steps;
  if (is_log_step) say(figures);
  draw_progress(figures);
}

void StepLines::say(const StepFigures& figures) {
  if (log::settings().threshold <= log::Level::debug) {
    log::info("train", "{}", long_step_line(figures));
    return;
  }
  const bool has_terminal = log::terminal_columns() > 0;
  const bool wants_info = log::settings().threshold <= log::Level::info;
  if (has_terminal && wants_info) {
    log::write_to_terminal(terminal_step_line(figures, look_of_terminal(log::time_columns)));
  }
  const auto now = Clock::now();
  const bool is_last = figures.record.step == settings_.steps;
  if (has_said_ && !is_last && now - said_ < settings_.interval) return;
  has_said_ = true;
  said_ = now;
  const auto line = plain_step_line(figures);
  if (has_terminal) {
    log::write_to_file(log::Level::info, "train", line);
  } else {
    log::info("train", "{}", line);
  }
}

void StepLines::draw_progress(const StepFigures& figures) {
  const auto now = Clock::now();
  const bool is_last = figures.record.step == settings_.steps;
  if (log::terminal_columns() == 0 || log::settings().threshold > log::Level::info) return;
  if (is_last) {
    log::set_status_line("");
    return;
  }
  if (now - drawn_ < between_drawings) return;
  drawn_ = now;
  const std::vector<double> losses(losses_.begin(), losses_.end());
  // The last column stays free: some terminals go on in the next line behind it.
  log::set_status_line(progress_line(figures, losses, look_of_terminal(1)));
}

void StepLines::between(Between what, std::int64_t step, const std::string& text) const {
  const auto line = base::format("step {:>6}/{}  {}", step, settings_.steps, text);
  const auto look = look_of_terminal(log::time_columns);
  const bool wants_info = log::settings().threshold <= log::Level::info;
  if (!wants_info || base::width_of(line) > look.columns) {
    log::info("train", "{}", line);
    return;
  }
  const auto* const colour = what == Between::evaluation ? "\033[1m" : "\033[2m";
  log::write_to_terminal(look.colour ? base::format("{}{}\033[0m", colour, line) : line);
  log::write_to_file(log::Level::info, "train", line);
}

}  // namespace trireme::train
