// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

/// Parts that trackers' files are made of.
namespace trireme::track {

/// Message in Protocol Buffers' wire format: fields in the order of the calls.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value);
  Message& real(std::uint32_t field, double value);   ///< fixed64
  Message& single(std::uint32_t field, float value);  ///< fixed32
  /// UTF-8, as the format demands: ill-formed parts become U+FFFD.
  Message& text(std::uint32_t field, std::string_view value);
  Message& message(std::uint32_t field, const Message& value) { return bytes(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  Message& bytes(std::uint32_t field, std::string_view value);
  void varint(std::uint64_t value);
  void tag(std::uint32_t field, std::uint32_t type) { varint((std::uint64_t{field} << 3) | type); }

  std::string bytes_;
};

/// The number in `count` bytes, the lowest first.
std::string little_endian(std::uint64_t value, std::size_t count);

/// Appends to a file behind its first `bytes`, and returns its new length when all of it is on
/// disk. What stands behind them, left by a process that was killed, is cut off; 0 makes the file
/// anew. Throws Error (checkpoint), also if the file is shorter than `bytes`.
std::uint64_t append_behind(const std::filesystem::path& path, std::uint64_t bytes,
                            std::string_view text);

}  // namespace trireme::track
