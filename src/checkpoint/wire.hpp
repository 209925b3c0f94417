#pragma once

#include "trireme/base/contract.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace trireme::checkpoint {

/// Numbers and texts as bytes for other ranks of the same run (never for files).
class WireWriter {
 public:
  void put(std::uint64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void put_signed(std::int64_t value) { put(static_cast<std::uint64_t>(value)); }
  void put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::int64_t signed_number() { return static_cast<std::int64_t>(number()); }
  std::string text() { return std::string(take(number())); }

 private:
  std::string_view take(std::uint64_t count) {
    TRIREME_EXPECT(count <= rest_.size(), "a message between ranks ends early");
    const auto part = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return part;
  }
  std::string_view rest_;
};

}  // namespace trireme::checkpoint
