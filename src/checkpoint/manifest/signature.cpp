// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/signature.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/comm/agree.hpp"

#include "checkpoint/manifest/check.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace trireme::checkpoint {
namespace {

constexpr std::string_view member_begin = ",\n\"hmac_sha256\":\"";
constexpr std::string_view member_end = "\"";
constexpr std::size_t digits = 64;
constexpr std::size_t member_bytes = member_begin.size() + digits + member_end.size();
constexpr std::size_t min_key_bytes = 16;
constexpr std::size_t max_key_bytes = 4096;

}  // namespace

base::Result<std::string> read_key_file(const std::filesystem::path& path) {
  const auto file = base::open_file(path, O_RDONLY, 0, base::ExitCode::checkpoint);
  if (!file) {
    return base::checkpoint_failure(
        base::format("the key of checkpoints cannot be read: {} (nothing can be signed "
                     "without it); make one: head -c 32 /dev/urandom > FILE; chmod 600 "
                     "FILE",
                     file.failure().text));
  }
  struct stat facts {};
  if (::fstat(file->get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid() ||
      (facts.st_mode & 077U) != 0) {
    return base::checkpoint_failure(
        base::format("key file '{}' may be read by others, or is not this user's own "
                     "regular file (its key would be no secret); chmod 600 it",
                     path.string()));
  }
  const auto bytes = static_cast<std::uint64_t>(facts.st_size);
  if (bytes < min_key_bytes || bytes > max_key_bytes) {
    return base::checkpoint_failure(
        base::format("key file '{}' has {} bytes instead of {} to {}; make one: head -c "
                     "32 /dev/urandom > '{}'",
                     path.string(), bytes, min_key_bytes, max_key_bytes, path.string()));
  }
  std::string key(bytes, '\0');
  base::read_at(*file, std::as_writable_bytes(std::span(key.data(), key.size())), 0, path);
  if (key.back() == '\n') key.pop_back();
  return key;
}

std::string read_key_on_first_rank(const std::filesystem::path& path, comm::ProcessGroup& world) {
  std::string key;
  if (path.empty()) return key;
  comm::agree_after(world, [&] {
    if (world.rank() == 0) key = base::value_or_throw(read_key_file(path));
  });
  return key;
}

std::string signature_member(std::string_view content, std::string_view key) {
  const auto bytes = std::as_bytes(std::span(key.data(), key.size()));
  const std::span secret(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return base::format("{}{}{}", member_begin, base::hexadecimal(base::hmac_sha256(secret, content)),
                      member_end);
}

std::string not_covered_text(const std::filesystem::path& step_folder) {
  return base::format(
      "the signature of '{}' covers its manifest and not its values (an earlier version of trireme "
      "signed it: who may write its files can change them so that their checksums still match); "
      "trust it as far as its folder, and save another step to have all of it signed",
      step_folder.string());
}

base::Status check_signature(std::string_view text, std::string_view source, std::string_view key) {
  const auto without_digest = text.substr(0, text.size() - std::min(text.size(), digest_bytes));
  if (without_digest.size() >= member_bytes) {
    const auto content = without_digest.substr(0, without_digest.size() - member_bytes);
    const auto found = without_digest.substr(content.size());
    if (found.starts_with(member_begin)) {
      const auto expected = signature_member(content, key);
      if (base::equal_secrets(expected, found)) return {};
      return base::checkpoint_failure(
          base::format("{}: signed with another key, or changed since (the checkpoint is "
                       "not trusted); use another step, or the key it was saved with",
                       source));
    }
  }
  return base::checkpoint_failure(
      base::format("{}: not signed, and checkpoint.key_file demands it (anybody could "
                   "have written this checkpoint); use another step, or load it without "
                   "a key",
                   source));
}

}  // namespace trireme::checkpoint
