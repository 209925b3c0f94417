// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/findings.hpp"

#include "trireme/base/format.hpp"

#include "report/findings/rules.hpp"
#include "report/steady.hpp"

#include <array>

namespace trireme::report {
namespace {

using base::format;
/// Steps from which on times are told.
constexpr std::size_t least_timed_steps = 20;

enum class Judged { newest_start, whole_run };
struct Rule {
  const char* name = nullptr;
  findings::Verdict (*judge)(const findings::Facts&) = nullptr;
  Judged what = Judged::newest_start;
};
constexpr std::array<Rule, 15> rules{{
    {"processors", findings::processors},
    {"gradients", findings::gradients},
    {"tensor", findings::tensor},
    {"stages", findings::stages},
    {"bubble", findings::bubble},
    {"data", findings::data},
    {"saves", findings::saves},
    {"evaluations", findings::evaluations},
    {"micro-batches", findings::micro_batches},
    {"skipped", findings::skipped},
    {"rising loss", findings::rising_loss, Judged::whole_run},
    {"overfitting", findings::overfitting, Judged::whole_run},
    {"repeated", findings::repeated, Judged::whole_run},
    {"slow down", findings::slow_down},
    {"uneven steps", findings::uneven_steps},
}};

/// "in start 3 (steps 121 to 320), "; empty of a run's only start.
std::string start_text(const findings::Facts& facts) {
  const auto& steps = facts.start.steps;
  if (facts.run.record.start_count < 2 || steps.empty()) return {};
  return format("in start {} (steps {} to {}), ", facts.run.record.start_count, steps.front().step,
                steps.back().step);
}

}  // namespace

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const auto& rule : rules) names.emplace_back(rule.name);
  return names;
}

std::vector<Finding> findings_of(const RunView& run) {
  findings::Facts facts{run, newest_start(run.record), figures_of(run), step_facts(run)};
  if (steady_indices(facts.start).size() >= least_timed_steps) {
    facts.times = mean_part_times(facts.start);
    facts.step_ms = sum_of(facts.times);
  }
  std::vector<Finding> found;
  for (const auto& rule : rules) {
    auto text = rule.judge(facts);
    if (!text) continue;
    if (rule.what == Judged::newest_start) *text = start_text(facts) + *text;
    found.push_back({rule.name, std::move(*text)});
  }
  return found;
}

bool tells_of_time(const RunView& run) {
  return steady_indices(newest_start(run.record)).size() >= least_timed_steps;
}

}  // namespace trireme::report
