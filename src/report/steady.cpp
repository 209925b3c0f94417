// SPDX-License-Identifier: Apache-2.0
#include "steady.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace trireme::report {
namespace {

/// The first step of a start makes buffers and meets cold caches, and the next ones warm up.
constexpr std::size_t warm_up_steps = 5;

}  // namespace

double median(std::vector<double> numbers) {
  std::erase_if(numbers, [](double number) { return !std::isfinite(number); });
  if (numbers.empty()) return telemetry::absent;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

std::vector<std::size_t> steady_indices(const telemetry::RunRecord& record) {
  const auto& steps = record.steps;
  for (auto end = steps.size(); end > 0;) {
    auto begin = end - 1;
    while (begin > 0 && steps[begin - 1].restart == steps[begin].restart) --begin;
    if (end - begin > warm_up_steps) {
      std::vector<std::size_t> steady(end - begin - warm_up_steps);
      std::iota(steady.begin(), steady.end(), begin + warm_up_steps);
      return steady;
    }
    end = begin;
  }
  std::vector<std::size_t> all(steps.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

telemetry::RunRecord newest_start(const telemetry::RunRecord& record) {
  const auto copy = [newest = record.restart](const auto& lines, auto& to) {
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(to),
                 [newest](const auto& line) { return line.restart == newest; });
  };
  telemetry::RunRecord start;
  copy(record.steps, start.steps);
  copy(record.evaluations, start.evaluations);
  copy(record.saves, start.saves);
  copy(record.events, start.events);
  copy(record.processors, start.processors);
  return start;
}

double mean_steady(const telemetry::RunRecord& record, double telemetry::StepLine::*number) {
  double sum = 0;
  double count = 0;
  for (const double each : steady_numbers(record, number)) {
    if (!std::isfinite(each)) continue;
    sum += each;
    ++count;
  }
  return count > 0 ? sum / count : telemetry::absent;
}

std::vector<double> steady_numbers(const telemetry::RunRecord& record,
                                   double telemetry::StepLine::*number) {
  std::vector<double> numbers;
  for (const auto index : steady_indices(record)) numbers.push_back(record.steps[index].*number);
  return numbers;
}

}  // namespace trireme::report
