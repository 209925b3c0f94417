// SPDX-License-Identifier: Apache-2.0
#include "trireme/record/run_lock.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/utc.hpp"

#include "run_holder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

namespace trireme::record {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Way = RunLock::Way;

RunHolder this_process(const std::string& job) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::random_device random;
  return {job,
          ::getpid(),
          host.data(),
          base::utc_text(),
          boot_of_this_node(),
          base::format("{:08x}{:08x}", random(), random())};
}

/// 12 of "12.0".
std::string job_of(const std::string& step) {
  return step.substr(0, step.find('.'));
}

base::Failure held(const fs::path& run, const std::optional<RunHolder>& holder) {
  std::string who = "another process";
  if (holder) {
    who = base::format("{}process {} on {} since {}",
                       holder->job.empty() ? "" : base::format("job {}, ", holder->job),
                       holder->process, holder->host, holder->since);
  }
  return {base::ExitCode::launch,
          base::format("run directory '{}' is held by {} (two at once would write over each "
                       "other's steps); wait for it or end it, or choose another run.directory",
                       run.string(), who)};
}

enum class Seen { free, held, unsupported };

/// Result of locking the file: visible to this kernel and those that share the file system's locks.
base::Result<Seen> try_lock(const base::File& file, const fs::path& path, Way way) {
  if (way == Way::heartbeat) return Seen::unsupported;
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  while (::fcntl(file.get(), F_OFD_SETLK, &whole) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EACCES) return Seen::held;
    if (errno == EINVAL || errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) {
      return Seen::unsupported;
    }
    return base::Failure{base::ExitCode::checkpoint,
                         base::format("cannot lock '{}': {}", path.string(), std::strerror(errno))};
  }
  return Seen::free;
}

/// Observes the heartbeat of a holder whose lock this node may not see.
bool is_alive(const fs::path& path, const RunHolder& holder, std::chrono::milliseconds heartbeat) {
  const auto first = time_of_change(path);
  if (!first) return false;
  const auto still = std::chrono::seconds(std::time(nullptr) - first->tv_sec);
  if (still > largest_skew + beats_of_a_dead_holder * heartbeat) return false;
  const auto end = Clock::now() + beats_of_a_dead_holder * heartbeat;
  base::log::info("runtime",
                  "'{}' is of process {} on {}, changed {} s ago: looking whether it "
                  "still lives",
                  path.string(), holder.process, holder.host, still.count());
  while (Clock::now() < end) {
    std::this_thread::sleep_for(heartbeat / 4);
    const auto now = time_of_change(path);
    if (!now || now->tv_sec != first->tv_sec || now->tv_nsec != first->tv_nsec) return true;
  }
  return false;
}

void write_holder(const base::File& file, const RunHolder& holder, const fs::path& path) {
  const auto text = text_of(holder);
  if (::ftruncate(file.get(), 0) != 0) {
    base::throw_errno(base::ExitCode::checkpoint, base::format("cannot write '{}'", path.string()),
                      errno);
  }
  base::write_at(file, std::as_bytes(std::span(text)), 0, path);
}

/// True if the file at this path is still the one that was opened.
bool is_at(const base::File& file, const fs::path& path) {
  struct stat own {};
  struct stat named {};
  return ::fstat(file.get(), &own) == 0 && ::stat(path.c_str(), &named) == 0 &&
         own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

}  // namespace

/// Open file, and the thread that updates its time of change.
class RunLock::Holding {
 public:
  Holding(base::File file, fs::path path, RunHolder self, std::chrono::milliseconds heartbeat)
      : file_(std::move(file)),
        path_(std::move(path)),
        self_(std::move(self)),
        heartbeat_(heartbeat),
        thread_([this] { beat(); }) {}
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  ~Holding() {
    {
      const std::lock_guard guard(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    thread_.join();
    look();
    if (!lost_ && ::ftruncate(file_.get(), 0) != 0) {
      base::log::local::debug("runtime", "'{}' keeps the name of this process", path_.string());
    }
  }

  bool is_lost() const { return lost_; }
  /// Checks the file; one that cannot be read now is not lost: the storage may answer again.
  void look() {
    std::error_code error;
    const bool gone = !fs::exists(path_, error) && !error;
    const auto holder = read_holder(path_);
    if (gone || (holder && holder->token != self_.token)) lost_ = true;
  }

 private:
  void beat() {
    std::unique_lock guard(mutex_);
    while (!wake_.wait_for(guard, heartbeat_, [this] { return ends_; })) {
      guard.unlock();
      look();
      if (!lost_) ::futimens(file_.get(), nullptr);
      guard.lock();
    }
  }

  base::File file_;
  fs::path path_;
  RunHolder self_;
  std::chrono::milliseconds heartbeat_;
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

namespace {

/// Result of one attempt: the locked file, else its holder.
struct Attempt {
  std::optional<base::File> file;
  std::optional<RunHolder> holder;
};

/// Check after writing: two starts that saw no lock may both have written; the last one wins.
bool is_ours_still(const fs::path& path, const RunHolder& self, Seen seen,
                   std::chrono::milliseconds settle) {
  if (seen == Seen::free) return true;
  std::this_thread::sleep_for(settle);
  const auto holder = read_holder(path);
  return holder && holder->token == self.token;
}

base::Result<Attempt> attempt(const fs::path& path, const RunHolder& self,
                              const RunLock::Options& options) {
  auto file =
      base::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0644, base::ExitCode::checkpoint);
  if (!file) return file.failure();
  const auto seen = try_lock(*file, path, options.way);
  if (!seen) return seen.failure();
  auto holder = read_holder(path);
  if (*seen == Seen::held) return Attempt{std::nullopt, holder};
  // File removed or taken over by another process meanwhile.
  if (!is_at(*file, path)) return Attempt{};
  const bool may_be_unseen = holder && (*seen == Seen::unsupported || holder->boot != self.boot);
  if (may_be_unseen && is_alive(path, *holder, options.heartbeat)) {
    return Attempt{std::nullopt, holder};
  }
  try {
    write_holder(*file, self, path);
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  }
  if (!is_ours_still(path, self, *seen, options.heartbeat / 10)) {
    return Attempt{std::nullopt, read_holder(path)};
  }
  return Attempt{std::move(*file), std::nullopt};
}

}  // namespace

base::Result<RunLock> RunLock::take(const fs::path& run, const std::string& job,
                                    const Options& options) {
  if (const auto made = base::make_folders_durably(run); !made.ok()) return made.failure();
  const auto self = this_process(job);
  const auto path = run / "lock";
  const auto begin = Clock::now();
  for (;;) {
    auto tried = attempt(path, self, options);
    if (!tried) return tried.failure();
    if (tried->file) {
      return RunLock(
          std::make_unique<Holding>(std::move(*tried->file), path, self, options.heartbeat));
    }
    const auto& holder = tried->holder;
    const bool same_job = holder && !job.empty() && job_of(holder->job) == job_of(job);
    const auto patience = same_job ? options.requeue_patience : options.patience;
    if (Clock::now() - begin >= patience) return held(run, holder);
    std::this_thread::sleep_for(std::min(options.heartbeat, std::chrono::milliseconds(50)));
  }
}

RunLock::RunLock(std::unique_ptr<Holding> holding) : holding_(std::move(holding)) {}
RunLock::RunLock(RunLock&&) noexcept = default;
RunLock& RunLock::operator=(RunLock&&) noexcept = default;
RunLock::~RunLock() = default;

bool RunLock::is_lost() const {
  return holding_->is_lost();
}

bool RunLock::is_lost_by_now() const {
  holding_->look();
  return holding_->is_lost();
}

}  // namespace trireme::record
