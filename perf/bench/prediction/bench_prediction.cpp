// SPDX-License-Identifier: Apache-2.0
// Predicts published steps, and says how far off: bench_prediction CSV... [--misses N] [--write
// PAGE] writes the tables into a page.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/predict/step.hpp"

#include "fit.hpp"
#include "order.hpp"
#include "scaling.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <string>

namespace trireme::perf {
namespace {

struct Miss {
  double error = 0;
  const PublicRow* row = nullptr;
};

std::string percent(double part) {
  return base::format("{:.1f}", 100 * part);
}

std::string factors_text(const predict::Factors& factors) {
  std::string text;
  for (std::size_t index = 0; index < factors.size(); ++index) {
    if (std::abs(factors[index] - 1) < 0.005) continue;
    text += base::format("{}{} {:.2f}", text.empty() ? "" : ", ", predict::factor_names[index],
                         factors[index]);
  }
  return text.empty() ? "none" : text;
}

std::string errors_text(const std::vector<double>& errors) {
  return base::format("{} | {} | {}", percent(quantile(errors, 0.5)),
                      percent(quantile(errors, 0.9)), percent(quantile(errors, 1)));
}

/// Table of the stacks, the order of the cells, and the worst misses.
class Report {
 public:
  explicit Report(const std::vector<PublicRow>& rows) : rows_(rows) {
    std::map<std::string, std::vector<const PublicRow*>> stacks;
    for (const auto& row : rows_) stacks[row.stack].push_back(&row);
    for (const auto& [name, of_stack] : stacks) add_stack(name, of_stack);
    std::sort(misses_.begin(), misses_.end(), [](const Miss& one, const Miss& other) {
      return std::abs(one.error) > std::abs(other.error);
    });
  }

  std::string table() const {
    auto text =
        "| GPU, precision, program | rows | fitted on | factors | median % | p90 % | worst % |\n"
        "|---|---|---|---|---|---|---|\n" +
        lines_;
    for (const auto& [file, of_file] : by_file_) {
      if (of_file.errors.empty()) continue;
      text += base::format("| all of `{}` | {} | {} | | {} |\n", file,
                           of_file.fitted + of_file.errors.size(), of_file.fitted,
                           errors_text(of_file.errors));
    }
    if (errors_.empty()) return text;
    return text + base::format("| all | {} | {} | | {} |\n", rows_.size(),
                               rows_.size() - errors_.size(), errors_text(errors_));
  }

  std::string order() const {
    const auto order = order_of(compared_);
    if (order.cells == 0) return {};
    return base::format(
        "\nOrder, without the rows that factors are fitted on: in {} of {} cells the fastest "
        "layout is among the first three; the first choice "
        "loses {} % in the median, {} % at p90.\n",
        order.hits, order.cells, percent(quantile(order.lost, 0.5)),
        percent(quantile(order.lost, 0.9)));
  }

  std::string scaling() const {
    const auto scaling = scaling_of(scaled_);
    std::string text;
    for (const auto& [name, errors] : {std::pair{"the same batch", scaling.strong},
                                       std::pair{"the same batch on each GPU", scaling.weak}}) {
      if (errors.empty()) continue;
      text += base::format(
          "\nWith {}, {} ratios are off by {} % in the median, {} % at p90, {} % "
          "at worst.\n",
          name, errors.size(), percent(quantile(errors, 0.5)), percent(quantile(errors, 0.9)),
          percent(quantile(errors, 1)));
    }
    if (text.empty()) return {};
    return "\nScaling, without the rows that factors are fitted on: ratios between steps of one "
           "model, layout and release of a program on more GPUs and on the fewest.\n" +
           text;
  }

  std::string misses(std::size_t count) const {
    std::string text;
    for (const auto& miss : std::span(misses_).first(std::min(count, misses_.size()))) {
      const auto standing = base::value_or_throw(
          predict::predict_step(miss.row->step.machine, miss.row->step.workload));
      text += base::format("{:+.1f} % {} {:.3f} s, {}: {}\n   without factors: {}",
                           100 * miss.error, miss.row->id, miss.row->step.seconds, miss.row->stack,
                           miss.row->layout, predict::text(standing));
    }
    return text;
  }

 private:
  void add_stack(const std::string& name, const std::vector<const PublicRow*>& rows) {
    const auto chosen = rows_to_fit(rows);
    predict::MeasuredSteps to_fit;
    for (const auto index : chosen) to_fit.push_back(&rows[index]->step);
    const auto factors = predict::fit(to_fit);
    std::vector<double> errors;
    for (std::size_t index = 0; index < rows.size(); ++index) {
      const auto& row = *rows[index];
      auto& of_file = by_file_[row.file];
      if (std::find(chosen.begin(), chosen.end(), index) != chosen.end()) {
        ++of_file.fitted;
        continue;
      }
      const double predicted = predict::predicted_seconds(row.step, factors);
      compared_.push_back({row.cell, predicted, row.step.seconds});
      scaled_.push_back({row.family, row.step.workload.degrees.world_size(), row.batch, predicted,
                         row.step.seconds});
      const double error = predicted / row.step.seconds - 1;
      errors.push_back(std::abs(error));
      of_file.errors.push_back(errors.back());
      misses_.push_back({error, &row});
    }
    if (errors.empty()) return;
    errors_.insert(errors_.end(), errors.begin(), errors.end());
    lines_ += base::format("| {} | {} | {} | {} | {} |\n", name, rows.size(), to_fit.size(),
                           factors_text(factors), errors_text(errors));
  }

  const std::vector<PublicRow>& rows_;
  struct OfFile {
    std::size_t fitted = 0;
    std::vector<double> errors;
  };

  std::map<std::string, OfFile> by_file_;
  std::string lines_;
  std::vector<double> errors_;
  std::vector<Compared> compared_;
  std::vector<ScaledStep> scaled_;
  std::vector<Miss> misses_;
};

/// Time that a prediction takes, where many ranks are predicted; the fastest of some.
std::string times_text(const std::vector<PublicRow>& rows) {
  constexpr int many_ranks = 1000;
  constexpr int repeats = 5;
  std::vector<double> milliseconds;
  for (const auto& row : rows) {
    if (row.step.workload.degrees.world_size() < many_ranks) continue;
    auto& fastest = milliseconds.emplace_back(std::numeric_limits<double>::infinity());
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      predict::predicted_seconds(row.step, predict::no_change);
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - begin;
      fastest = std::min(fastest, took.count());
    }
  }
  if (milliseconds.empty()) return {};
  return base::format(
      "{} layouts of {} ranks or more: {:.2f} ms each in the median, {:.2f} ms at most\n",
      milliseconds.size(), many_ranks, quantile(milliseconds, 0.5), quantile(milliseconds, 1));
}

/// Puts the text between the marks of a page.
void write_into(const std::filesystem::path& page, const std::string& text) {
  constexpr std::string_view begin_mark = "<!-- published steps -->\n";
  constexpr std::string_view end_mark = "<!-- end -->";
  auto whole = base::value_or_throw(base::read_text_file(page, base::ExitCode::usage));
  const auto begin = whole.find(begin_mark);
  const auto end = whole.find(end_mark, begin);
  if (begin == std::string::npos || end == std::string::npos) {
    throw base::Error(base::ExitCode::usage,
                      base::format("{} has no place for the table; add '{}' and '{}'",
                                   page.string(), base::trimmed(begin_mark), end_mark));
  }
  whole.replace(begin + begin_mark.size(), end - begin - begin_mark.size(), text);
  base::write_file_durably(page, whole);
}

struct Arguments {
  std::vector<std::filesystem::path> files;
  std::filesystem::path page;
  std::size_t misses = 0;
};

Arguments arguments_of(std::vector<std::string> words) {
  Arguments arguments;
  CLI::App app("Predicts published steps, and says how far off", "bench_prediction");
  app.set_help_flag();
  app.add_option("CSV", arguments.files, "Published steps")->required();
  app.add_option("--misses", arguments.misses, "Show so many of the worst predictions");
  app.add_option("--write", arguments.page, "Page to write the tables into");
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return arguments;
}

void run(const Arguments& arguments) {
  const auto machines = std::filesystem::path(TRIREME_SOURCE_DIR) / "configs/machines";
  std::vector<PublicRow> rows;
  for (const auto& file : arguments.files) {
    auto of_file = read_public_rows(file, machines);
    std::move(of_file.begin(), of_file.end(), std::back_inserter(rows));
  }
  const Report report(rows);
  const auto text = base::format("\n{}{}{}", report.table(), report.order(), report.scaling());
  std::fputs((text + report.misses(arguments.misses) + times_text(rows)).c_str(), stdout);
  if (!arguments.page.empty()) write_into(arguments.page, text + "\n");
}

}  // namespace
}  // namespace trireme::perf

int main(int count, char** values) {
  try {
    trireme::perf::run(trireme::perf::arguments_of({values + 1, values + count}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
