// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/report/page.hpp"

#include "unit/report/hand_made_run.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

/// Pages of runs made by hand, and what stands in them.
namespace trireme::tests {

inline std::string page_of(const HandMadeRuns& runs, const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> paths;
  for (const auto& name : names) paths.push_back(runs.path(name));
  return report::page(base::value_or_throw(report::read_runs(paths)), {"trireme 0", "now"});
}

/// Text between two others.
inline std::string between(const std::string& text, const std::string& begin,
                           const std::string& end) {
  const auto first = text.find(begin);
  REQUIRE(first != std::string::npos);
  const auto from = first + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

inline base::Json data_of(const std::string& page) {
  return base::Json::parse(
      between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// A run of so many steps whose loss falls and whose step 100 has a peak.
inline void train(const HandMadeRuns& runs, const std::string& name, int steps) {
  runs.configure(name,
                 "[train]\nsteps = 100 # --set\nseed = 1 # default\n[parallel]\ntensor = 1\n"
                 "pipeline = 2\ndata = 1\nschedule = 1f1b\nvirtual_stages = 1\n");
  runs.start(name);
  std::string lines;
  for (int step = 1; step <= steps; ++step) {
    lines += base::format(
        "{{\"kind\":\"train\",\"step\":{},\"loss\":{},\"grad_norm\":1.5,\"learning_rate\":0.001,"
        "\"tokens\":{},\"step_ms\":10,\"tokens_per_second\":5000,\"mfu\":0.25,"
        "\"exposed_comm_ms\":2,\"bubble_ms\":1,\"time\":\"2026-11-21T09:37:30.000Z\"}}\n",
        step, step == 100 ? 77.0 : 3 + 1.0 / step, step * 64);
  }
  runs.write(name, "metrics.jsonl", lines);
}

}  // namespace trireme::tests
