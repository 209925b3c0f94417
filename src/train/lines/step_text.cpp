// SPDX-License-Identifier: Apache-2.0
#include "train/lines/step_text.hpp"

#include "trireme/base/columns.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trireme::train {
namespace {

using base::format;
using base::Trend;

constexpr const char* green = "\033[32m";
constexpr const char* yellow = "\033[33m";
constexpr const char* red = "\033[31m";
constexpr const char* faint = "\033[2m";
constexpr const char* none = "";

/// Part of a line; of those that do not fit, the one with the highest rank goes first.
struct Field {
  std::string text;
  const char* colour = none;
  int rank = 0;
};

std::string joined(const std::vector<Field>& fields, bool colour) {
  std::string line;
  for (const auto& field : fields) {
    if (!line.empty()) line += "  ";
    const bool paints = colour && *field.colour != '\0';
    line += paints ? format("{}{}\033[0m", field.colour, field.text) : field.text;
  }
  return line;
}

std::size_t width_of(const std::vector<Field>& fields) {
  return base::width_of(joined(fields, false));
}

/// Leaves fields out until the line fits.
void fit(std::vector<Field>& fields, std::size_t columns) {
  while (fields.size() > 1 && width_of(fields) > columns) {
    fields.erase(
        std::max_element(fields.begin(), fields.end(),
                         [](const auto& one, const auto& other) { return one.rank < other.rank; }));
  }
}

const char* colour_of(const StepFigures& figures) {
  if (!std::isfinite(figures.record.loss)) return red;
  if (figures.loss == Trend::falls) return green;
  return figures.loss == Trend::rises ? yellow : none;
}

std::string step_text(const StepFigures& figures) {
  return format("step {:>6}/{}", figures.record.step, figures.steps);
}
std::string loss_text(const StepFigures& figures) {
  return "loss " + base::fixed_text(figures.record.loss, 4);
}
std::string speed_text(const StepFigures& figures) {
  return rate_text(figures.tokens_per_second) + " tok/s";
}
std::string mfu_text(const StepFigures& figures) {
  return format("mfu {:.1f} %", figures.mfu * 100);
}
std::string left_text(const StepFigures& figures) {
  return "left " + base::duration_text(figures.seconds_left);
}

}  // namespace

std::string rate_text(double tokens_per_second) {
  if (tokens_per_second >= 1e9) return format("{:.2f}G", tokens_per_second / 1e9);
  if (tokens_per_second >= 1e6) return format("{:.2f}M", tokens_per_second / 1e6);
  return format("{:.0f}", tokens_per_second);
}

std::string plain_step_line(const StepFigures& figures) {
  return joined({{step_text(figures)},
                 {loss_text(figures)},
                 {speed_text(figures)},
                 {mfu_text(figures)},
                 {left_text(figures)}},
                false);
}

std::string long_step_line(const StepFigures& figures) {
  const auto& record = figures.record;
  return joined({{step_text(figures)},
                 {loss_text(figures)},
                 {format("norm {:.3f}", record.grad_norm)},
                 {format("rate {:.2e}", record.learning_rate)},
                 {speed_text(figures)},
                 {mfu_text(figures)},
                 {format("exposed {:.1f} ms", record.exposed_comm_ms)},
                 {format("bubble {:.1f} ms", record.bubble_ms)},
                 {left_text(figures)}},
                false);
}

std::string terminal_step_line(const StepFigures& figures, const Look& look) {
  std::vector<Field> fields{
      {step_text(figures), none, 1},
      {loss_text(figures) + base::arrow_of(figures.loss, look.glyphs), colour_of(figures), 0},
      {speed_text(figures), none, 3},
      {mfu_text(figures), none, 4},
      {left_text(figures), faint, 2}};
  fit(fields, look.columns);
  return joined(fields, look.colour);
}

std::string progress_line(const StepFigures& figures, std::span<const double> losses,
                          const Look& look) {
  const auto& record = figures.record;
  const double share = static_cast<double>(record.step) /
                       static_cast<double>(std::max<std::int64_t>(figures.steps, 1));
  std::vector<Field> fields{{"", faint, 4},
                            {format("{:.0f} %", std::floor(share * 100)), none, 0},
                            {"", colour_of(figures), 3},
                            {loss_text(figures), none, 1},
                            {speed_text(figures), none, 5},
                            {left_text(figures), none, 2}};
  // The bar and the curve share what the numbers leave, up to a width that says enough.
  constexpr std::size_t most_columns = 30;
  constexpr std::size_t least_columns = 8;
  // The first field is empty as yet, and has no blanks behind it.
  const auto numbers = width_of(fields) + 2;
  const auto rest = look.columns - std::min(look.columns, numbers);
  const auto each = std::clamp(rest / 2, least_columns, most_columns);
  fields[0].text = base::bar(share, each, look.glyphs);
  fields[2].text = base::sparkline(losses, each, look.glyphs);
  fit(fields, look.columns);
  return joined(fields, look.colour);
}

}  // namespace trireme::train
