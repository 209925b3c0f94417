// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/failures.hpp"

#include "trireme/base/philox.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

using namespace trireme::predict;

namespace {

/// Job that trains, saves, fails and starts again, at random: the part of its time that is training
/// and not done again.
class RandomJob {
 public:
  RandomJob(const SaveTimes& save, const FailureTimes& failures)
      : save_(save), failures_(failures) {}

  double effective(double interval) {
    constexpr int failures = 20000;
    failure_ = 0;
    double training = 0;
    double now = 0;
    for (int count = 0; count < failures; ++count) {
      const double fails = now + next_failure();
      training += kept_until(fails - now, interval);
      now = fails + restart();
    }
    return training / now;
  }

 private:
  double next_failure() {
    // Exponential; the same failures for each interval.
    const auto bits = trireme::base::philox(1, 2, failure_++).front();
    const double uniform = trireme::base::uniform_from_bits(bits);
    return -failures_.between * std::log1p(-uniform);
  }

  /// A restart that fails is tried again.
  double restart() {
    double spent = 0;
    for (;;) {
      const double fails = next_failure();
      if (fails >= failures_.restart) return spent + failures_.restart;
      spent += fails;
    }
  }

  /// Training whose save counts when the job fails after so many seconds.
  double kept_until(double fails, double interval) const {
    const double period = interval + save_.stall;
    // Save k begins to count at k x period + write.
    const double saves = std::floor((fails - save_.write) / period);
    return std::max(0.0, saves) * interval;
  }

  SaveTimes save_;
  FailureTimes failures_;
  std::uint64_t failure_ = 0;
};

struct Job {
  SaveTimes save;
  FailureTimes failures;
};

}  // namespace

TEST_CASE("the interval between saves is as good as the best that was tried") {
  // 2,048 nodes at 264 node-days between failures; saves beside training and not; small jobs.
  constexpr std::array jobs{
      Job{{0.5, 40}, {6480, 120}},  Job{{20, 0}, {6480, 120}},   Job{{120, 0}, {11138, 600}},
      Job{{2, 300}, {11138, 600}},  Job{{60, 0}, {3600, 300}},   Job{{5, 30}, {86400, 900}},
      Job{{300, 0}, {86400, 1200}}, Job{{1, 600}, {20000, 300}},
  };
  for (const auto& [save, failures] : jobs) {
    CAPTURE(save.stall, save.write, failures.between, failures.restart);
    RandomJob job(save, failures);
    const double interval = best_interval(save, failures);
    CHECK(interval >= save.write);
    double best = 0;
    for (double factor = 0.2; factor < 6; factor *= 1.15) {
      if (factor * interval >= save.write) best = std::max(best, job.effective(factor * interval));
    }
    const double own = job.effective(interval);
    CHECK(own > best - 0.003);
    CHECK(effective_share(interval, save, failures) == Approx(own).margin(0.003));
  }
}

TEST_CASE("a job that never fails saves as rarely as it may") {
  CHECK(best_interval({10, 0}, {1e15, 60}) > 1e6);
  CHECK(effective_share(1e6, {10, 0}, {1e15, 60}) == Approx(1).margin(1e-4));
  // A save that takes longer than the job lives is not worth one.
  CHECK(best_interval({100, 0}, {40, 60}) == 40);
}
