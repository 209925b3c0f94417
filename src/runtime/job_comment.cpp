// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/job_comment.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/launch/slurm_command.hpp"
#include "trireme/runtime/launcher_environment.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace trireme::runtime {
namespace {

constexpr std::string_view mark = "trireme: ";
constexpr std::size_t longest_text = 200;
constexpr std::chrono::seconds patience{5};
constexpr int most_refusals = 3;
/// Pause after the first comment, twice as long after each of the next: short jobs show a step too.
constexpr std::chrono::milliseconds first_interval = std::chrono::minutes(1);

}  // namespace

std::string comment_value(const std::string& text) {
  std::string value(mark);
  for (const char letter : text.substr(0, longest_text)) {
    const bool plain = letter >= ' ' && letter <= '~' && letter != '"' && letter != '\'';
    value += plain ? letter : '?';
  }
  return value;
}

class JobComment::Writer {
 public:
  Writer(std::string job, std::chrono::milliseconds interval)
      : job_(std::move(job)), interval_(interval), thread_([this] { run(); }) {}

  ~Writer() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void offer(const std::string& text) {
    {
      const std::lock_guard lock(mutex_);
      newest_ = text;
    }
    changed_.notify_one();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void run() {
    int refusals = 0;
    auto pause = std::min(interval_, first_interval);
    while (refusals < most_refusals) {
      const auto text = next();
      if (!text) return;
      if (refusals == 0 && !is_ours()) return;
      refusals = write(*text) ? 0 : refusals + 1;
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, pause, [this] { return ends_; })) return;
      pause = std::min(interval_, 2 * pause);
    }
    base::log::local::warning("runtime",
                              "Slurm does not take a comment for job {} (squeue will not show the "
                              "step); set run.job_comment = 0 to not try",
                              job_);
  }

  std::optional<std::string> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_ || newest_.has_value(); });
    if (ends_) return std::nullopt;
    return std::exchange(newest_, std::nullopt);
  }

  /// True if the comment is empty or was written by Trireme.
  bool is_ours() const {
    const std::array<std::string, 4> words{"squeue", "--noheader", "--format=%k", "--jobs=" + job_};
    const auto answer = launch::run_slurm_command(words, patience);
    if (!answer || answer->exit_code != 0) return true;
    const auto comment = answer->output.substr(0, answer->output.find('\n'));
    const bool ours = comment.empty() || comment == "(null)" || comment.starts_with(mark);
    if (!ours) {
      base::log::local::info("runtime", "job {} has a comment of its own, which is kept", job_);
    }
    return ours;
  }

  bool write(const std::string& text) const {
    const std::array<std::string, 4> words{"scontrol", "update", "JobId=" + job_,
                                           "Comment=" + comment_value(text)};
    const auto answer = launch::run_slurm_command(words, patience);
    return answer && answer->exit_code == 0;
  }

  std::string job_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> newest_;
  bool ends_ = false;
  std::thread thread_;
};

JobComment::JobComment(const base::Environment& environment, std::chrono::milliseconds interval) {
  const auto job = job_number(environment);
  if (job && interval.count() > 0) writer_ = std::make_unique<Writer>(*job, interval);
}

JobComment::~JobComment() = default;

void JobComment::offer(const std::string& text) {
  if (writer_) writer_->offer(text);
}

}  // namespace trireme::runtime
