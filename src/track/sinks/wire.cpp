// SPDX-License-Identifier: Apache-2.0
#include "wire.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/utf8.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <span>

namespace trireme::track {
namespace {

constexpr std::uint32_t varint_type = 0;
constexpr std::uint32_t fixed64_type = 1;
constexpr std::uint32_t length_type = 2;
constexpr std::uint32_t fixed32_type = 5;

}  // namespace

void Message::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
  bytes_ += static_cast<char>(value);
}

Message& Message::number(std::uint32_t field, std::uint64_t value) {
  tag(field, varint_type);
  varint(value);
  return *this;
}

Message& Message::real(std::uint32_t field, double value) {
  tag(field, fixed64_type);
  bytes_ += little_endian(std::bit_cast<std::uint64_t>(value), sizeof(value));
  return *this;
}

Message& Message::single(std::uint32_t field, float value) {
  tag(field, fixed32_type);
  bytes_ += little_endian(std::bit_cast<std::uint32_t>(value), sizeof(value));
  return *this;
}

Message& Message::text(std::uint32_t field, std::string_view value) {
  std::string repaired;
  return bytes(field, base::repair_utf8(value, repaired));
}

Message& Message::bytes(std::uint32_t field, std::string_view value) {
  tag(field, length_type);
  varint(value.size());
  bytes_ += value;
  return *this;
}

std::string little_endian(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t at = 0; at < count; ++at) {
    bytes += static_cast<char>((value >> (8 * at)) & 0xFF);
  }
  return bytes;
}

std::uint64_t append_behind(const std::filesystem::path& path, std::uint64_t bytes,
                            std::string_view text) {
  base::success_or_throw(base::make_folders_durably(path.parent_path()));
  const auto file = base::value_or_throw(
      base::open_file(path, O_WRONLY | O_CREAT, 0644, base::ExitCode::checkpoint));
  struct stat facts {};
  const auto fail = [&path](const char* what) {
    base::throw_errno(base::ExitCode::checkpoint,
                      base::format("cannot {} '{}'", what, path.string()), errno);
  };
  if (::fstat(file.get(), &facts) != 0) fail("look at");
  if (static_cast<std::uint64_t>(facts.st_size) < bytes) {
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("'{}' has {} bytes of the {} that were written (it was removed or cut, or the "
                     "run was moved or copied); to send all of the run again, remove its note in "
                     "RUN/track",
                     path.string(), facts.st_size, bytes));
  }
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) fail("cut");
  base::write_at(file, std::as_bytes(std::span(text)), bytes, path, base::ExitCode::checkpoint);
  if (::fsync(file.get()) != 0) fail("sync");
  if (bytes == 0) base::sync_folder(path.parent_path(), base::ExitCode::checkpoint);
  return bytes + text.size();
}

}  // namespace trireme::track
