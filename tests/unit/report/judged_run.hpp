// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/findings.hpp"

#include "unit/report/hand_made_run.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trireme::tests {

/// A run of 200 steps of 100 ms over two stages, two replicas and two tensor-parallel ranks, in
/// which nothing is wrong.
struct JudgedRun {
  std::int64_t steps = 200;
  std::int64_t pipeline = 2;
  std::string schedule = "1f1b";
  std::int64_t layers = 32;
  std::int64_t micro_batch = 8;
  std::int64_t global_batch = 256;
  std::function<double(int)> loss = [](int step) { return 3 + 3.0 / step; };
  std::function<double(int)> step_ms = [](int) { return 100.0; };
  double tensor = 5;
  double exposed = 3;
  double bubble = 8;
  std::vector<double> stage_bubbles{8, 9};
  double data = 0.5;
  double mfu = 0.45;
  /// Further members of the start, and of each step.
  std::string start_more = {};
  std::string step_more = {};
  /// Further lines behind the step's.
  std::function<std::string(int)> after = [](int) { return std::string(); };
};

inline report::RunView view_of(const JudgedRun& made) {
  const tests::HandMadeRuns runs;
  runs.configure("a", base::format("[model]\nnum_hidden_layers = {}\n", made.layers));
  runs.configure("a",
                 base::format("[parallel]\ntensor = 2\npipeline = {}\ndata = 2\nschedule = {}\n"
                              "virtual_stages = 1\n[train]\nmicro_batch = {}\n"
                              "global_batch = {}\nsequence_length = 1024\n",
                              made.pipeline, made.schedule, made.micro_batch, made.global_batch));
  runs.start("a", 1, made.start_more);
  std::string lines;
  for (int step = 1; step <= made.steps; ++step) {
    const double step_ms = made.step_ms(step);
    lines += base::format(
        "{{\"kind\":\"train\",\"step\":{},\"restart\":0,\"loss\":{},\"step_ms\":{},"
        "\"tokens_per_second\":{},\"mfu\":{},\"tensor_comm_ms\":{},\"exposed_comm_ms\":{},"
        "\"bubble_ms\":{},\"stage_bubble_ms\":[{}],\"data_ms\":{}{}}}\n{}",
        step, made.loss(step), step_ms, 1e6 / step_ms, made.mfu, made.tensor, made.exposed,
        made.bubble, base::join(made.stage_bubbles, ","), made.data, made.step_more,
        made.after(step));
  }
  runs.write("a", "metrics.jsonl", lines);
  return runs.view("a");
}

/// The only finding.
inline report::Finding finding(const JudgedRun& made) {
  const auto findings = report::findings_of(view_of(made));
  for (const auto& each : findings) UNSCOPED_INFO(each.rule << ": " << each.text);
  REQUIRE(findings.size() == 1);
  return findings.front();
}

inline bool is_silent(const JudgedRun& made) {
  const auto findings = report::findings_of(view_of(made));
  for (const auto& each : findings) UNSCOPED_INFO(each.rule << ": " << each.text);
  return findings.empty();
}

inline std::string evaluation(int step, double loss, double seconds) {
  return base::format("{{\"kind\":\"eval\",\"step\":{},\"loss\":{},\"seconds\":{}}}\n", step, loss,
                      seconds);
}

}  // namespace trireme::tests
