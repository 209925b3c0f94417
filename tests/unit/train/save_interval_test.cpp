// SPDX-License-Identifier: Apache-2.0
// Saves by the clock, at an interval that is given or chosen.
#include "trireme/base/error.hpp"

#include "train/requests.hpp"
#include "train/saving/auto_interval.hpp"

#include <catch2/catch.hpp>

#include <chrono>

using namespace trireme;
using train::AutoInterval;
using train::SaveCost;
using train::SaveRecord;
using train::SaveSchedule;

namespace {

schema::CheckpointOptions keys_of(bool asynchronous) {
  schema::CheckpointOptions keys;
  keys.asynchronous = asynchronous;
  keys.every_minutes = 30;
  return keys;
}

/// As many minutes as a save stops training for, and a hundredth of those that it is written for.
base::Result<train::SaveInterval> minutes_of_stall(const model::ModelConfig&,
                                                   const SaveCost& save) {
  return train::SaveInterval{.minutes = (save.stall + save.write / 100) / 60, .save = save};
}

AutoInterval interval_of(bool asynchronous) {
  return base::value_or_throw(
      AutoInterval::chosen(keys_of(asynchronous), minutes_of_stall, model::ModelConfig{}, 2));
}

SaveRecord saved(double stall, double write, SaveRecord::Tier tier = SaveRecord::Tier::shared) {
  return {.step = 1,
          .bytes = 1,
          .stall_seconds = stall,
          .write_seconds = write,
          .asynchronous = true,
          .tier = tier};
}

}  // namespace

TEST_CASE("the first save comes after a tenth of the interval, and a change counts from the last") {
  using namespace std::chrono_literals;
  const SaveSchedule::Clock::time_point start{};
  SaveSchedule schedule(10, start);
  CHECK_FALSE(schedule.is_due(start + 59s));
  CHECK(schedule.is_due(start + 60s));
  schedule.saved(start + 60s);
  CHECK_FALSE(schedule.is_due(start + 659s));
  CHECK(schedule.is_due(start + 660s));
  schedule.change(2);
  CHECK_FALSE(schedule.is_due(start + 179s));
  CHECK(schedule.is_due(start + 180s));
  CHECK_FALSE(SaveSchedule(0, start).is_due(start + 1000h));
}

TEST_CASE(
    "an interval follows the mean of the saves that were measured, and ignores small changes") {
  auto interval = interval_of(true);
  // 12 bytes a parameter over 100 MB/s for each of two ranks.
  CHECK(interval.now().save.measured == 0);
  CHECK(interval.now().save.stall == Approx(train::guessed_save_seconds(model::ModelConfig{}, 2)));
  CHECK(interval.took(saved(60, 60)));
  CHECK(interval.now().minutes == Approx(1));
  CHECK(interval.now().save.measured == 1);
  // The mean of 60 and 66 is less than a tenth away, that with 180 is not.
  CHECK_FALSE(interval.took(saved(66, 66)));
  CHECK(interval.now().minutes == Approx(1));
  CHECK(interval.took(saved(180, 180)));
  CHECK(interval.now().minutes == Approx(1.7));
  CHECK(interval.now().save.measured == 3);
}

TEST_CASE("a save beside training stops it for a part of the time that it takes") {
  auto interval = interval_of(true);
  CHECK(interval.took(saved(60, 6060)));
  CHECK(interval.now().save.stall == Approx(60));
  CHECK(interval.now().save.write == Approx(6000));
  // The last one of a start, for which training waits.
  auto last = saved(1000, 1000);
  last.asynchronous = false;
  CHECK_FALSE(interval.took(last));
  auto waiting = interval_of(false);
  CHECK_FALSE(waiting.took(saved(60, 6060)));
  last.stall_seconds = 120;
  CHECK(waiting.took(last));
  CHECK(waiting.now().save.stall == Approx(120));
  CHECK(waiting.now().save.write == 0);
}

TEST_CASE("a save by way of the nodes counts when it has reached the run directory") {
  auto interval = interval_of(true);
  CHECK_FALSE(interval.took(saved(30, 130, SaveRecord::Tier::nodes)));
  CHECK(interval.took(saved(0, 300)));
  CHECK(interval.now().save.stall == Approx(30));
  CHECK(interval.now().save.write == Approx(400));
}

TEST_CASE("an interval needs somebody who chooses it") {
  const auto none = AutoInterval::chosen(keys_of(true), {}, model::ModelConfig{}, 1);
  REQUIRE_FALSE(none.ok());
  CHECK_THAT(none.failure().text,
             Catch::StartsWith("checkpoint.every_minutes = auto needs a machine"));
}
