// SPDX-License-Identifier: Apache-2.0
#include "steady.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trireme::report {
namespace {

/// The first step of a start makes buffers and meets cold caches, and the next ones warm up.
constexpr std::int64_t warm_up_steps = 5;

}  // namespace

double median(std::vector<double> numbers) {
  std::erase_if(numbers, [](double number) { return !std::isfinite(number); });
  if (numbers.empty()) return telemetry::absent;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

std::vector<std::size_t> steady_indices(const telemetry::RunRecord& record) {
  std::vector<std::size_t> steady;
  std::int64_t restart = -1;
  std::int64_t count = 0;
  for (std::size_t index = 0; index < record.steps.size(); ++index) {
    const auto& step = record.steps[index];
    count = step.restart == restart ? count + 1 : 1;
    restart = step.restart;
    if (count > warm_up_steps) steady.push_back(index);
  }
  if (steady.empty()) {
    steady.resize(record.steps.size());
    std::iota(steady.begin(), steady.end(), std::size_t{0});
  }
  return steady;
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
