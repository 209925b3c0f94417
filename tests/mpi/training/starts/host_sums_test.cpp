// SPDX-License-Identifier: Apache-2.0
// How often hosts wait for each other in a step of a run.
#include "trireme/telemetry/spans.hpp"

#include "mpi/training/small_run.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>

using namespace trireme;
using namespace trireme::testing;
using telemetry::SpanKind;

TEST_CASE("hosts add up a step of a run in one collective of all ranks") {
  const RunFolder folder;
  const auto config = small_config(folder, folder.path() / "adds up");
  telemetry::SpanRecorder recorder;
  std::map<std::string, int> sums;  // by group
  std::size_t seen = 0;
  int steps = 0;
  train::StartOptions options;
  // Groups end with the run: their names are read while it lasts.
  options.on_step = [&](const train::StepRecord&) {
    ++steps;
    const auto& spans = recorder.spans();
    for (auto at = seen; at < spans.size(); ++at) {
      if (spans[at].kind != SpanKind::norm) continue;
      for (auto inner = seen; inner < at; ++inner) {
        if (spans[inner].kind != SpanKind::operation) continue;
        if (spans[inner].begin < spans[at].begin) continue;
        ++sums[std::string(spans[inner].operation.group)];
      }
    }
    seen = spans.size();
  };
  CHECK(run_to_end(config, std::make_unique<CpuKernels>(), options).code == base::ExitCode::done);
  CHECK(steps == 6);
  CHECK(sums == std::map<std::string, int>{{"world", steps}});
}
