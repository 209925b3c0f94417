// SPDX-License-Identifier: Apache-2.0
#include "store/credentials.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <span>

namespace trireme::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_file_bytes = std::size_t{1} << 20;

base::Failure failure(std::string text) {
  return {base::ExitCode::usage, std::move(text)};
}

/// "name = value" lines of [section] in an INI file.
std::map<std::string, std::string> section_of(std::string_view text, std::string_view section) {
  std::map<std::string, std::string> values;
  bool inside = false;
  for (const auto each : base::split(text, '\n')) {
    const auto line = base::trimmed(each);
    if (line.starts_with('[')) {
      inside = line.ends_with(']') && base::trimmed(line.substr(1, line.size() - 2)) == section;
    } else if (const auto sign = line.find('='); inside && sign != std::string_view::npos) {
      values[std::string(base::trimmed(line.substr(0, sign)))] =
          base::trimmed(line.substr(sign + 1));
    }
  }
  return values;
}

/// Text of a file that is this user's alone.
base::Result<std::string> read_secret_file(const fs::path& path) {
  const auto file = base::open_file(path, O_RDONLY | O_NONBLOCK);
  if (!file) {
    return failure(
        base::format("there are no credentials for s3:// ({}); set AWS_ACCESS_KEY_ID and "
                     "AWS_SECRET_ACCESS_KEY, or write that file with mode 0600",
                     file.failure().text));
  }
  struct stat facts {};
  if (::fstat(file->get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid() ||
      (facts.st_mode & 077U) != 0) {
    return failure(
        base::format("'{}' may be read by others, or is not this user's own regular file "
                     "(its credentials would be no secret); chmod 600 it",
                     path.string()));
  }
  if (std::cmp_greater(facts.st_size, max_file_bytes)) {
    return failure(
        base::format("'{}' has {} bytes instead of at most {}; name a file of credentials "
                     "in AWS_SHARED_CREDENTIALS_FILE",
                     path.string(), facts.st_size, max_file_bytes));
  }
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  base::read_at(*file, std::as_writable_bytes(std::span(text.data(), text.size())), 0, path);
  return text;
}

}  // namespace

base::Result<Credentials> find_credentials(const base::Environment& environment) {
  const auto of = [&](std::string_view name) { return environment.get(name).value_or(""); };
  Credentials found{of("AWS_ACCESS_KEY_ID"), of("AWS_SECRET_ACCESS_KEY"), of("AWS_SESSION_TOKEN")};
  if (!found.key_id.empty() && !found.secret.empty()) return found;
  if (found.key_id.empty() != found.secret.empty()) {
    return failure(
        base::format("{} is not set, though {} is (both are needed); set both, or none to "
                     "use a file",
                     found.secret.empty() ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                     found.secret.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"));
  }
  const auto file = environment.get("AWS_SHARED_CREDENTIALS_FILE");
  const fs::path path = file ? fs::path(*file) : fs::path(of("HOME")) / ".aws" / "credentials";
  const auto text = read_secret_file(path);
  if (!text) return text.failure();
  const auto profile = environment.get("AWS_PROFILE").value_or("default");
  auto values = section_of(*text, profile);
  found = {values["aws_access_key_id"], values["aws_secret_access_key"],
           values["aws_session_token"]};
  if (!found.key_id.empty() && !found.secret.empty()) return found;
  return failure(
      base::format("'{}' has no aws_access_key_id and aws_secret_access_key in section "
                   "[{}]; add them, or name another in AWS_PROFILE",
                   path.string(), profile));
}

}  // namespace trireme::store
