// SPDX-License-Identifier: Apache-2.0
// Each rule of docs/reports.md on time: a run made bad on purpose has its finding and no other, and
// good runs have none.
#include "trireme/base/file.hpp"

#include "unit/report/judged_run.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using tests::evaluation;
using tests::finding;
using tests::holds;
using tests::is_silent;
using tests::JudgedRun;
using tests::view_of;

TEST_CASE("a good run has no finding") {
  CHECK(is_silent({}));
  JudgedRun evaluated;
  evaluated.after = [](int step) {
    return step % 20 == 0 ? evaluation(step, 4 - step * 0.001, 0.2) : std::string();
  };
  CHECK(is_silent(evaluated));
}

TEST_CASE("a run without steps, and one of an older version, have no finding") {
  JudgedRun none;
  none.steps = 0;
  CHECK(is_silent(none));
  const tests::HandMadeRuns runs;
  for (int step = 1; step <= 200; ++step) runs.step("a", step, 3);
  CHECK(report::findings_of(runs.view("a")).empty());
}

TEST_CASE("of a few steps nothing is said of time") {
  JudgedRun made;
  made.exposed = 31;
  made.data = 31;
  made.stage_bubbles = {30, 8};
  made.steps = 24;
  CHECK(is_silent(made));
  made.steps = 25;
  CHECK(report::findings_of(view_of(made)).size() == 3);
}

TEST_CASE("exposed reductions are found from their share of a step on") {
  JudgedRun made;
  made.exposed = 14.9;
  CHECK(is_silent(made));
  made.exposed = 31;
  const auto found = finding(made);
  CHECK(found.rule == "gradients");
  CHECK(
      holds(found.text, "31 % of a step (31 of 100 ms) is exposed all-reduce of gradients over 2"));
}

TEST_CASE("exposed reductions are told with their bytes and the rate of the link") {
  JudgedRun made;
  made.exposed = 31;
  // 1.25 GiB, of which the time that was not hidden is all that is known.
  made.start_more = ",\"gradient_bytes\":1342177280";
  CHECK(
      holds(finding(made).text, "2 data-parallel ranks: 1.25 GiB a step at 43.30 GB/s or less: "));
  // Reductions were under way for longer than they were exposed.
  made.step_more = ",\"reduction_ms\":50";
  CHECK(holds(finding(made).text, "2 data-parallel ranks: 1.25 GiB a step at 26.84 GB/s: "));
  made.step_more = ",\"reduction_ms\":50000";
  CHECK(holds(finding(made).text, "1.25 GiB a step at 26.8 MB/s: "));
}

TEST_CASE("tensor-parallel communication is found from its share of a step on") {
  JudgedRun made;
  made.tensor = 24.9;
  CHECK(is_silent(made));
  made.tensor = 40;
  CHECK(finding(made).rule == "tensor");
  CHECK(holds(finding(made).text, "nothing hides it: keep them"));
  made.start_more = ",\"tensor_bytes\":20971520";
  CHECK(holds(finding(made).text, "nothing hides it: 20.00 MiB a step at 0.52 GB/s: keep them"));
}

TEST_CASE("a stage that the others wait for is named") {
  JudgedRun made;
  made.stage_bubbles = {8, 17.9};
  CHECK(is_silent(made));
  made.bubble = 30;
  made.stage_bubbles = {30, 8};
  made.layers = 4;
  // Two layers a stage: one more would be too much for the other.
  CHECK(is_silent(made));
  made.layers = 32;
  const auto found = finding(made);
  CHECK(found.rule == "stages");
  CHECK(
      holds(found.text, "stage 0 waits for others 30 % of a step, stage 1 only 8 %: stage 1 has"));
  CHECK(holds(found.text, "move a layer away from stage 1 (parallel.stage_layers)"));
}

TEST_CASE("a stage with too much work is told which layers to give away, and to whom") {
  JudgedRun made;
  made.bubble = 30;
  made.stage_bubbles = {30, 8};
  made.start_more = ",\"stage_layers\":[12,20]";
  // A layer is a sixteenth of a stage: two of them turn 22 points into about none.
  CHECK(holds(finding(made).text,
              "than the others, move 2 layers from stage 1 to stage 0 (parallel.stage_layers = "
              "14,18)"));
  // Interleaved: the fullest positions of the stage.
  made.start_more = ",\"stage_layers\":[8,7,8,9]";
  CHECK(holds(finding(made).text, "(parallel.stage_layers = 10,7,8,7)"));
  // The last layer of a position stays.
  made.start_more = ",\"stage_layers\":[31,1]";
  CHECK(holds(finding(made).text,
              "and no layer to give (parallel.stage_layers = 31,1): lower parallel.pipeline"));
  made.start_more = ",\"stage_layers\":[30,2]";
  CHECK(holds(finding(made).text,
              "move 1 layer from stage 1 to stage 0 (parallel.stage_layers = 31,1)"));
  for (const auto* nonsense : {"[1]", "[1,2,3]", "[-1,2]", "\"12,20\"", "[1e99,2]"}) {
    made.start_more = base::format(",\"stage_layers\":{}", nonsense);
    CHECK(holds(finding(made).text, "move a layer away from stage 1"));
  }
}

TEST_CASE("stages that all wait longer than their schedule have a slow link") {
  JudgedRun made;
  // 16 micro-batches over two stages are idle for 6 %.
  made.bubble = 15;
  made.stage_bubbles = {15, 15};
  CHECK(is_silent(made));
  made.bubble = 25;
  made.stage_bubbles = {25, 26};
  const auto found = finding(made);
  CHECK(found.rule == "bubble");
  CHECK(holds(found.text, "the schedule itself is idle only 6 %: the link"));
  // 19 ms beyond the schedule's 6.
  made.start_more = ",\"message_bytes\":1048576";
  CHECK(holds(finding(made).text, "idle only 6 %: 1.00 MiB a step at 54."));
}

TEST_CASE("a schedule of few micro-batches is found idle") {
  JudgedRun made;
  // Two micro-batches over two stages: a third.
  made.global_batch = 32;
  made.bubble = 33;
  made.stage_bubbles = {33, 33};
  const auto found = finding(made);
  CHECK(found.rule == "bubble");
  CHECK(holds(found.text, "33 % is the schedule's own bubble of 2 micro-batches over 2 stages"));
}

TEST_CASE("halves of backward that take unequally long are no slow link") {
  JudgedRun made;
  // Sixteen micro-batches over eight stages idle for 13 %, and for 22 % where the gradient of the
  // input comes with a recomputation.
  made.schedule = "zb-h1";
  made.pipeline = 8;
  made.bubble = 25;
  made.stage_bubbles = std::vector<double>(8, 25);
  CHECK(is_silent(made));
  made.bubble = 40;
  made.stage_bubbles = std::vector<double>(8, 40);
  CHECK(holds(finding(made).text, "the schedule itself is idle only 22 %: the link"));
}

TEST_CASE("an idle schedule is told of keys that it takes") {
  JudgedRun made;
  made.global_batch = 16;
  made.bubble = 42;
  made.stage_bubbles = {42, 42};
  made.schedule = "zb-h1";
  const auto text = finding(made).text;
  CHECK(holds(text, "40 % is the schedule's own bubble of 1 micro-batches over 2 stages"));
  CHECK(holds(text, "or parallel.schedule = zb-v make it smaller"));
  CHECK_FALSE(holds(text, "virtual_stages"));
}

TEST_CASE("starved data are found from their share of a step on") {
  JudgedRun made;
  made.data = 4.9;
  CHECK(is_silent(made));
  made.data = 12;
  CHECK(finding(made).rule == "data");
  made.start_more = ",\"tokens_per_step\":262144";
  CHECK(holds(finding(made).text,
              "is reading samples, 262144 tokens of them, 21.8 million a second: "));
}

TEST_CASE("a slow disk is found by the time for which training stands still") {
  JudgedRun made;
  const auto save = [](double stall) {
    return [stall](int step) {
      return step % 20 == 0 ? base::format(
                                  "{{\"kind\":\"save\",\"step\":{},\"restart\":0,"
                                  "\"stall_ms\":{},\"write_ms\":1}}\n",
                                  step, stall)
                            : std::string();
    };
  };
  made.after = save(80);
  CHECK(is_silent(made));
  made.after = save(400);
  const auto found = finding(made);
  CHECK(found.rule == "saves");
  CHECK(holds(found.text, "checkpoint.asynchronous"));
  made.after = [](int step) {
    return step % 20 == 0 ? base::format(
                                "{{\"kind\":\"save\",\"step\":{},\"restart\":0,\"bytes\":104857600,"
                                "\"stall_ms\":400,\"write_ms\":500}}\n",
                                step)
                          : std::string();
  };
  CHECK(holds(finding(made).text, "for checkpoints, 100.00 MiB each in 500 ms (0.21 GB/s): save"));
}

TEST_CASE("evaluations that take as long as training are found") {
  JudgedRun made;
  made.after = [](int step) { return step % 20 == 0 ? evaluation(step, 3, 1.0) : std::string(); };
  CHECK(finding(made).rule == "evaluations");
}

TEST_CASE("tiny micro-batches are found where they leave the machine idle") {
  const tests::HandMadeRuns runs;
  JudgedRun made;
  made.mfu = 0.1;
  CHECK(is_silent(made));
  auto view = view_of(made);
  for (auto& value : view.values) {
    if (value.key == "train.sequence_length") value.text = "32";
  }
  const auto findings = report::findings_of(view);
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().rule == "micro-batches");
  CHECK(
      holds(findings.front().text, "has only 256 tokens, 16 of them make a step, and MFU is 10 %"));
}

TEST_CASE("a run that becomes slower is found") {
  JudgedRun made;
  made.step_ms = [](int step) { return step <= 150 ? 100.0 : 120.0; };
  CHECK(is_silent(made));
  made.step_ms = [](int step) { return step <= 150 ? 100.0 : 150.0; };
  CHECK(finding(made).rule == "slow down");
}

TEST_CASE("pauses are found where one step in twenty has one") {
  JudgedRun made;
  made.step_ms = [](int step) { return step % 50 == 0 ? 1000.0 : 100.0; };
  CHECK(is_silent(made));
  made.step_ms = [](int step) { return step % 10 == 0 ? 350.0 : 100.0; };
  const auto found = finding(made);
  CHECK(found.rule == "uneven steps");
  CHECK(holds(found.text, "takes over 350.0 ms, the median is 100.0 ms"));
  made.step_ms = [](int step) { return step % 10 == 0 ? 4350.0 : 1000.0; };
  CHECK(holds(finding(made).text, "takes over 4.3 s, the median is 1.0 s"));
}

TEST_CASE("every rule has its row in docs/reports.md, and every row its rule") {
  const auto page = base::value_or_throw(
      base::read_text_file(std::filesystem::path(TRIREME_SOURCE_DIR) / "docs/reports.md"));
  const auto table = page.substr(page.find("| rule |"));
  for (const auto& rule : report::rule_names()) {
    INFO(rule);
    CHECK(holds(table, base::format("\n| {} |", rule)));
  }
  std::size_t rows = 0;
  for (auto at = table.find("\n| "); at != std::string::npos; at = table.find("\n| ", at + 1))
    ++rows;
  CHECK(rows == report::rule_names().size());
}
