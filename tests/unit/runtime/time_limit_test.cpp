// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/time_limit.hpp"

#include "support/pretended_slurm.hpp"

#include <catch2/catch.hpp>

#include <ctime>

using namespace trireme;
using tests::PretendedSlurm;

namespace {

base::Environment job_until(std::int64_t seconds) {
  return base::Environment({{"SLURM_JOB_ID", "12"},
                            {"SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + seconds)}});
}

}  // namespace

TEST_CASE("outside of a job no limit is ever near") {
  CHECK_FALSE(runtime::TimeLimit().is_near(1e9));
  CHECK_FALSE(runtime::TimeLimit(base::Environment{}).is_near(1e9));
}

TEST_CASE("a limit far away is not asked about") {
  const PretendedSlurm slurm;
  slurm.says("1:00");
  runtime::TimeLimit limit(job_until(3600));
  CHECK_FALSE(limit.is_near(60));
  CHECK(slurm.times_asked() == 0);
}

TEST_CASE("a limit that seems near is asked about again: it may have been extended or lifted") {
  const PretendedSlurm slurm;
  runtime::TimeLimit limit(job_until(30));
  slurm.says("2:00:00");
  CHECK_FALSE(limit.is_near(60));
  CHECK(slurm.times_asked() == 1);
  // The new limit counts from now on.
  CHECK_FALSE(limit.is_near(60));
  CHECK(slurm.times_asked() == 1);
  slurm.says("0:40");
  CHECK(limit.is_near(7201));
  slurm.says("UNLIMITED");
  CHECK_FALSE(limit.is_near(60));
  CHECK_FALSE(limit.is_near(1e9));
}

TEST_CASE("a Slurm that says nothing of use has extended nothing") {
  const PretendedSlurm slurm;
  runtime::TimeLimit limit(job_until(30));
  slurm.says("INVALID");
  CHECK(limit.is_near(60));
}
