#include "trireme/runtime/time_limit.hpp"

#include "trireme/base/log.hpp"
#include "trireme/launch/geometry.hpp"
#include "trireme/runtime/identity.hpp"
#include "trireme/runtime/slurm_command.hpp"

#include <charconv>
#include <ctime>
#include <string>

namespace trireme::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(5);

/// "4:58", "UNLIMITED": the time that the job has left, in Slurm's words; empty when it is silent.
std::string ask_squeue(const std::string& job) {
  const std::string words[] = {"squeue", "--noheader", "--format=%L", "--jobs=" + job};
  const auto answer = run_slurm_command(words, patience);
  if (!answer || answer->exit_code != 0) return {};
  return answer->output.substr(0, answer->output.find('\n'));
}

}  // namespace

std::optional<Clock::time_point> find_job_end(const base::Environment& environment) {
  const auto job = environment.get("SLURM_JOB_ID");
  if (!job || job->find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const auto identity = identify(environment);
  if (identity.ok() && identity->announced_rank.value_or(0) != 0) return std::nullopt;
  const auto now = Clock::now();
  if (const auto text = environment.get("SLURM_JOB_END_TIME")) {
    std::int64_t end = 0;
    const auto parsed = std::from_chars(text->data(), text->data() + text->size(), end);
    const auto left = end - std::int64_t{std::time(nullptr)};
    // Slurm's "never" is about a year away.
    if (parsed.ec != std::errc{} || left > 400LL * 86400) return std::nullopt;
    return now + std::chrono::seconds(left);
  }
  const auto left = launch::parse_slurm_time(ask_squeue(*job));
  if (!left) return std::nullopt;
  base::log::debug("runtime", "job {} has {} s left", *job, *left);
  return now + std::chrono::seconds(*left);
}

}  // namespace trireme::runtime
