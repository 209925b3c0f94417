// SPDX-License-Identifier: Apache-2.0
#include "run_holder.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/record/steady_clock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace trireme::record {

namespace fs = std::filesystem;

std::string boot_of_this_node() {
  const auto boot = base::read_text_file("/proc/sys/kernel/random/boot_id");
  if (boot) return boot->substr(0, boot->find('\n'));
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::string steady_clock_name() {
  std::error_code ignored;
  const auto space = std::filesystem::read_symlink("/proc/self/ns/time", ignored);
  return base::format("{} {}", boot_of_this_node(), space.string());
}

std::string text_of(const RunHolder& holder) {
  return base::json_text(base::Json{{"job", holder.job},
                                    {"process", holder.process},
                                    {"host", holder.host},
                                    {"since", holder.since},
                                    {"boot", holder.boot},
                                    {"token", holder.token}},
                         2) +
         "\n";
}

namespace {

constexpr std::size_t largest_text = std::size_t{64} << 10;

std::optional<RunHolder> parse(const std::string& text) {
  const auto json = base::parse_json(text, "lock");
  if (!json.ok() || !json->is_object()) return std::nullopt;
  const auto word = [&](const char* key) {
    const auto found = json->find(key);
    return found != json->end() && found->is_string() ? found->get<std::string>() : std::string{};
  };
  RunHolder holder{word("job"), 0, word("host"), word("since"), word("boot"), word("token")};
  if (json->contains("process") && (*json)["process"].is_number_integer()) {
    holder.process = (*json)["process"].get<int>();
  }
  return holder;
}

}  // namespace

std::optional<RunHolder> read_holder(const fs::path& path) {
  const auto text = base::read_text_file(path, base::ExitCode::checkpoint, largest_text);
  return text ? parse(*text) : std::nullopt;
}

std::optional<timespec> time_of_change(const fs::path& path) {
  struct stat facts {};
  const auto file = base::open_file(path, O_RDONLY);
  if (!file || ::fstat(file->get(), &facts) != 0) return std::nullopt;
  return facts.st_mtim;
}

namespace {

/// Whether this kernel sees the file locked; nothing where the file system has no locks.
std::optional<bool> is_locked(const fs::path& path) {
  const auto file = base::open_file(path, O_RDONLY);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (!file || ::fcntl(file->get(), F_OFD_GETLK, &whole) != 0) return std::nullopt;
  return whole.l_type != F_UNLCK;
}

}  // namespace

std::optional<RunHolder> living_holder(const fs::path& run) {
  const auto path = run / "lock";
  auto holder = read_holder(path);
  if (!holder) return holder;
  const auto locked = is_locked(path);
  if (locked.value_or(false)) return holder;
  // Locks of this node's own processes are seen, if there are locks.
  if (locked && holder->boot == boot_of_this_node()) return std::nullopt;
  const auto changed = time_of_change(path);
  const auto silence = largest_skew + beats_of_a_dead_holder * RunLock::Options().heartbeat;
  const bool beats =
      changed && std::chrono::seconds(std::time(nullptr) - changed->tv_sec) < silence;
  return beats ? holder : std::nullopt;
}

}  // namespace trireme::record
