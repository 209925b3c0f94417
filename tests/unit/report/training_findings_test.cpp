// SPDX-License-Identifier: Apache-2.0
// The rules of docs/reports.md on losses, and on steps that were lost.
#include "unit/report/judged_run.hpp"

using namespace trireme;
using tests::evaluation;
using tests::finding;
using tests::holds;
using tests::is_silent;
using tests::JudgedRun;

TEST_CASE("steps that were not finite are found") {
  JudgedRun made;
  made.after = [](int step) {
    return step == 50 || step == 60
               ? base::format("{{\"kind\":\"event\",\"event\":\"skipped\",\"step\":{}}}\n", step)
               : std::string();
  };
  const auto found = finding(made);
  CHECK(found.rule == "skipped");
  CHECK(holds(found.text, "2 steps were skipped"));
}

TEST_CASE("a loss that rises again is found") {
  JudgedRun made;
  made.loss = [](int step) { return step <= 100 ? 3.0 : 3.2; };
  CHECK(is_silent(made));
  made.loss = [](int step) { return step <= 100 ? 3.0 : 3.5; };
  const auto found = finding(made);
  CHECK(found.rule == "rising loss");
  CHECK(holds(found.text, "from 3.000 to 3.500"));
}

TEST_CASE("a held-out loss that was lower is found, with its step") {
  JudgedRun made;
  const auto rising = [](double rise) {
    return [rise](int step) {
      return step % 20 == 0 ? evaluation(step, step <= 100 ? 4 - step * 0.01 : 3 + rise, 0.1)
                            : std::string();
    };
  };
  made.after = rising(0.05);
  CHECK(is_silent(made));
  made.after = rising(0.2);
  const auto found = finding(made);
  CHECK(found.rule == "overfitting");
  CHECK(holds(found.text, "lowest at step 100 (3.0000) and is 3.2000 now"));
}

TEST_CASE("steps that were made again are found from their share on") {
  JudgedRun made;
  const auto die_at = [](int died) {
    return [died](int step) {
      if (step != 100) return std::string();
      std::string lost;
      for (int again = 101; again <= died; ++again) {
        lost +=
            base::format("{{\"kind\":\"train\",\"step\":{},\"loss\":3,\"step_ms\":100}}\n", again);
      }
      return lost + "{\"kind\":\"event\",\"event\":\"start\",\"step\":101}\n";
    };
  };
  made.after = die_at(115);
  CHECK(is_silent(made));
  made.after = die_at(150);
  const auto found = finding(made);
  CHECK(found.rule == "repeated");
  CHECK(holds(found.text, "50 steps were lost with earlier starts and made again, 20 %"));
}
