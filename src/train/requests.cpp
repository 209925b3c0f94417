// SPDX-License-Identifier: Apache-2.0
#include "train/requests.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/peer_error.hpp"
#include "trireme/config/step_range.hpp"
#include "trireme/record/task_record.hpp"
#include "trireme/train/stop_signal.hpp"

#include <algorithm>

namespace trireme::train {
namespace {

/// Requests of the first rank other than stops, below every reason to stop; they add up.
constexpr std::int32_t save_due = 1;
constexpr std::int32_t peak_beaten = 2;
constexpr std::int32_t times_due = 4;
constexpr std::int32_t all_requests = save_due + peak_beaten + times_due;

/// Interval between looks for files in the run directory: shared file systems are slow.
constexpr double look_seconds = 1.0;

base::Failure lost_lock(const std::filesystem::path& run) {
  return {base::ExitCode::launch,
          base::format("'{}' was removed or taken over by another start (two at once would write "
                       "over each other's steps); nothing is saved any more",
                       (run / "lock").string())};
}

}  // namespace

std::string Stop::text() const {
  if (reason == time_limit) return "the nearing time limit of the job";
  if (reason == stop_file) return "the file STOP in the run directory";
  const int signal = reason - first_signal;
  return base::format("signal {} ({})", signal, record::signal_text(signal));
}

Requests::Requests(Sources sources)
    : sources_(std::move(sources)),
      schedule_(sources_.save_every_minutes, SaveSchedule::Clock::now()) {}

void Requests::look_for_files() {
  const auto now = SaveSchedule::Clock::now();
  if (looked_ && std::chrono::duration<double>(now - *looked_).count() < look_seconds) return;
  looked_ = now;
  std::error_code ignored;
  stop_file_ = std::filesystem::exists(sources_.directory / "STOP", ignored);
  const auto profile = sources_.directory / config::profile_request;
  if (!std::filesystem::exists(profile, ignored)) return;
  // A file that cannot be removed would ask again and again.
  const auto count = config::read_profile_request(profile);
  if (std::filesystem::remove(profile, ignored)) asked_profile_steps_ = count;
}

std::int32_t Requests::own_reason(bool is_first, double lead_seconds, const Wishes& wishes) {
  if (is_first && sources_.lock != nullptr && sources_.lock->is_lost()) return Stop::lost_lock;
  if (is_first) look_for_files();
  if (is_first && stop_file_) return Stop::stop_file;
  if (const int signal = StopSignal::received()) return Stop::first_signal + signal;
  if (is_first && lead_seconds > 0 && sources_.limit.is_near(lead_seconds)) return Stop::time_limit;
  if (!is_first) return 0;
  return (schedule_.is_due(SaveSchedule::Clock::now()) ? save_due : 0) +
         (wishes.measure_peak ? peak_beaten : 0) + (wishes.rank_times ? times_due : 0);
}

const Requests::Answer& Requests::ask(comm::ProcessGroup& world, double lead_seconds,
                                      const Wishes& wishes, const BusyThreads& busy) {
  if (answer_.stop) return answer_;
  std::int32_t words[] = {own_reason(world.rank() == 0, lead_seconds, wishes), busy.saving ? 1 : 0,
                          busy.draining ? 1 : 0, std::exchange(asked_profile_steps_, 0)};
  world.all_reduce(device::Tensor(words, device::DType::i32, {4}), comm::ReduceOp::max);
  profile_steps_ = std::max<std::int64_t>(profile_steps_, words[3]);
  const auto reason = words[0];
  if (reason == Stop::lost_lock) {
    throw comm::AgreedError(lost_lock(sources_.directory), world.ranks().front(), world.size());
  }
  answer_ = {};
  answer_.busy = {words[1] != 0, words[2] != 0};
  if (reason > all_requests) {
    answer_.stop = {reason};
  } else {
    answer_.save = (reason & save_due) != 0;
    answer_.wishes = {(reason & peak_beaten) != 0, (reason & times_due) != 0};
  }
  return answer_;
}

void Requests::check_lock() const {
  if (sources_.lock == nullptr || !sources_.lock->is_lost_by_now()) return;
  const auto lost = lost_lock(sources_.directory);
  throw base::Error(lost.code, lost.text);
}

void Requests::before_save(comm::ProcessGroup& world) const {
  comm::agree_after(world, [&] { check_lock(); });
}

}  // namespace trireme::train
