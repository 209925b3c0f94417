// SPDX-License-Identifier: Apache-2.0
// Findings of runs with several starts, and on nodes that are known.
#include "trireme/report/findings.hpp"

#include "unit/report/hand_made_run.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using tests::holds;

namespace {

/// 200 steps of a first start of three stages in which everything waits, then those of a second.
report::RunView view_of_two_starts(int steps, double tensor) {
  const tests::HandMadeRuns runs;
  runs.configure("a",
                 "[model]\nnum_hidden_layers = 32\n[parallel]\ntensor = 2\npipeline = 1\n"
                 "data = 2\n[train]\nmicro_batch = 8\nglobal_batch = 256\n"
                 "sequence_length = 1024\n");
  runs.start("a", 1, ",\"restart\":0");
  for (int step = 1; step <= 200; ++step) {
    if (step == 7) {
      runs.write("a", "metrics.jsonl",
                 R"({"kind":"event","event":"skipped","step":7,"restart":0})"
                 "\n");
      continue;
    }
    runs.step("a", step, 3,
              ",\"restart\":0,\"step_ms\":1000,\"tokens_per_second\":900,\"mfu\":0.4,"
              "\"bubble_ms\":600,\"data_ms\":100,\"stage_bubble_ms\":[10,600,600]");
  }
  for (const int step : {100, 200}) {
    runs.write("a", "metrics.jsonl",
               base::format("{{\"kind\":\"save\",\"step\":{},\"restart\":0,"
                            "\"stall_ms\":90000}}\n",
                            step));
  }
  runs.start("a", 201, ",\"restart\":1");
  for (int step = 201; step <= 200 + steps; ++step) {
    runs.step("a", step, 3,
              base::format(",\"restart\":1,\"step_ms\":100,\"tokens_per_second\":500,"
                           "\"mfu\":0.4,\"tensor_comm_ms\":{}",
                           tensor));
  }
  return runs.view("a");
}

/// Two replicas of two tensor-parallel ranks, on these nodes.
void place(report::RunView& view, const std::vector<std::string>& nodes) {
  view.placement.emplace();
  view.placement->mesh = layout::Mesh::of(1, 2, 2);
  view.placement->ranks.resize(nodes.size());
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    view.placement->ranks[rank].node = nodes[rank];
}

}  // namespace

TEST_CASE("what earlier starts waited for is no finding of the newest one") {
  CHECK(report::findings_of(view_of_two_starts(100, 5)).empty());
  // It has begun, and nothing is known of it yet.
  for (const int steps : {0, 10}) {
    const auto view = view_of_two_starts(steps, 50);
    CHECK(report::findings_of(view).empty());
    CHECK_FALSE(report::tells_of_time(view));
  }
}

TEST_CASE("a finding of one of several starts names it with its steps") {
  const auto view = view_of_two_starts(100, 50);
  const auto findings = report::findings_of(view);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "tensor");
  CHECK(findings[0].text.starts_with("in start 2 (steps 201 to 300), 50 % of a step (50 of 100"));
  CHECK(report::tells_of_time(view));
  CHECK(report::figures_of(view).tokens_per_second == 500);
}

TEST_CASE("processor time that other programs took is a finding where they took it for long") {
  const tests::HandMadeRuns runs;
  const auto measured = [&runs](const std::string& run, int restart, double others, double idle,
                                const std::string& more = "") {
    runs.write(run, "metrics.jsonl",
               base::format("{{\"kind\":\"processors\",\"restart\":{},\"step\":3,\"node\":\"n1\","
                            "\"first_rank\":2,\"ranks\":2,\"cores\":4,\"seconds\":30,"
                            "\"others\":{},\"idle\":{},\"own\":0.25{}}}\n",
                            restart, others, idle, more));
  };
  const auto found = [&runs](const std::string& run) {
    std::string text;
    for (const auto& finding : report::findings_of(runs.view(run))) {
      text += finding.rule + ": " + finding.text + "\n";
    }
    return text;
  };
  for (const auto* run : {"busy", "idle", "short", "earlier", "steal"}) {
    runs.start(run, 1, ",\"restart\":0");
    runs.step(run, 1, 3, ",\"restart\":0");
  }
  measured("busy", 0, 0.1, 0.1);
  for (const double others : {0.5, 0.62, 0.9}) measured("busy", 0, others, 0.1);
  CHECK(
      found("busy") ==
      "processors: 62 % of the processor time of 4 cores of 2 ranks (first: rank 2) on n1 went to "
      "other programs, 25 % to the ranks (75 % of the measured time was like that): end them, or "
      "give the ranks cores that no other program uses (sbatch --exclusive, --cpus-per-task)\n");
  for (int count = 0; count < 4; ++count) measured("idle", 0, 0.6, 0.4);
  CHECK(found("idle").empty());
  measured("short", 0, 0.6, 0.1);
  for (int count = 0; count < 2; ++count) measured("short", 0, 0.05, 0.1);
  CHECK(found("short").empty());
  measured("earlier", 0, 0.6, 0.1);
  runs.start("earlier", 2, ",\"restart\":1");
  CHECK(found("earlier").empty());
  measured("steal", 0, 0.05, 0.1, ",\"stolen\":0.4");
  CHECK(holds(found("steal"), "40 % of the processor time of 4 cores"));
  CHECK(holds(found("steal"), "went to other virtual machines (steal)"));
  CHECK_FALSE(holds(found("steal"), "other programs"));
}

TEST_CASE("ranks of one node are not told to come together on one") {
  auto view = view_of_two_starts(100, 50);
  const auto text = [&view] { return report::findings_of(view).at(0).text; };
  CHECK(holds(text(), "keep them within a node, or lower parallel.tensor"));
  place(view, {"n0", "n1", "n0", "n1"});
  CHECK(holds(text(), "keep them within a node, or lower parallel.tensor"));
  for (const auto& nodes :
       std::vector<std::vector<std::string>>{{"n0", "n0", "n0", "n0"}, {"n0", "n0", "n1", "n1"}}) {
    place(view, nodes);
    CHECK_FALSE(holds(text(), "keep them"));
    CHECK(holds(text(), "(they are on one node), or lower parallel.tensor"));
  }
}

TEST_CASE("nodes without GPUs are not told that these get too hot") {
  const tests::HandMadeRuns runs;
  for (int step = 1; step <= 200; ++step) {
    runs.step("a", step, 3,
              base::format(",\"step_ms\":100,\"tokens_per_second\":{}", step <= 150 ? 900 : 500));
  }
  auto view = runs.view("a");
  const auto text = [&view] { return report::findings_of(view).at(0).text; };
  CHECK(holds(text(), "or processors or GPUs that get too hot"));
  place(view, {"n0", "n0", "n0", "n0"});
  CHECK(holds(text(), "or processors that get too hot"));
  view.placement->ranks[0].gpu = "0000:01:00.0";
  CHECK(holds(text(), "or GPUs that get too hot"));
}
