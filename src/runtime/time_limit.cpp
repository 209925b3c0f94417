// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/time_limit.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/launch/resource_request.hpp"
#include "trireme/launch/slurm_command.hpp"
#include "trireme/runtime/identity.hpp"

#include <ctime>

namespace trireme::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(5);

/// Time left of the job in Slurm's notation, "4:58", "UNLIMITED"; empty without an answer.
std::string ask_squeue(const std::string& job) {
  const std::string words[] = {"squeue", "--noheader", "--format=%L", "--jobs=" + job};
  const auto answer = launch::run_slurm_command(words, patience);
  if (!answer || answer->exit_code != 0) return {};
  return answer->output.substr(0, answer->output.find('\n'));
}

/// Time point of a limit; none for Slurm's "never", which is about a year away.
std::optional<Clock::time_point> time_of(std::int64_t end) {
  const auto left = end - std::int64_t{std::time(nullptr)};
  if (left > 400LL * 86400) return std::nullopt;
  return Clock::now() + std::chrono::seconds(left);
}

}  // namespace

TimeLimit::TimeLimit(const base::Environment& environment) {
  const auto job = job_number(environment);
  if (!job) return;
  const auto identity = identify(environment);
  if (identity.ok() && identity->announced_rank.value_or(0) != 0) return;
  job_ = *job;
  if (const auto end = job_end(environment)) {
    if (*end <= std::int64_t{std::time(nullptr)}) {
      base::log::warning(
          "runtime",
          "the time limit of job {} is past (SLURM_JOB_END_TIME = {}, left over from "
          "a job that has ended?): this start has none",
          job_, *end);
      return;
    }
    end_ = time_of(*end);
    return;
  }
  const auto left = launch::parse_slurm_time(ask_squeue(job_));
  if (!left) return;
  base::log::debug("runtime", "job {} has {} s left", job_, *left);
  end_ = Clock::now() + std::chrono::seconds(*left);
}

bool TimeLimit::is_near(double lead_seconds) {
  const auto nears = [&] {
    return end_ && std::chrono::duration<double>(*end_ - Clock::now()).count() <= lead_seconds;
  };
  if (!nears()) return false;
  ask_again();
  return nears();
}

void TimeLimit::ask_again() {
  const auto answer = ask_squeue(job_);
  if (answer == "UNLIMITED" || answer == "NOT_SET") {
    end_.reset();
    base::log::info("runtime", "the time limit of job {} was lifted", job_);
    return;
  }
  // Without an answer the earlier limit stays.
  const auto left = launch::parse_slurm_time(answer);
  if (!left) return;
  const auto end = Clock::now() + std::chrono::seconds(*left);
  if (end_ && end > *end_ + std::chrono::minutes(1)) {
    base::log::info("runtime", "the time limit of job {} was extended: {} left", job_,
                    base::duration_text(*left));
  }
  end_ = end;
}

}  // namespace trireme::runtime
