// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/records.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/comm/bytes.hpp"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace trireme::checkpoint {
namespace {

/// Numbers and texts as bytes for other ranks of the same run (never for files).
class Writer {
 public:
  void put(std::uint64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  void put(const HeldBox& held) {
    put(held.name);
    put(static_cast<std::uint64_t>(held.dtype));
    put(static_cast<std::uint64_t>(held.shape.size()));
    for (const auto* numbers : {&held.shape, &held.box.offset, &held.box.length}) {
      for (const auto number : *numbers) put(static_cast<std::uint64_t>(number));
    }
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number())); }
  HeldBox box() {
    HeldBox held;
    held.name = text();
    held.dtype = static_cast<device::DType>(number());
    const auto dimensions = static_cast<std::size_t>(number());
    for (auto* numbers : {&held.shape, &held.box.offset, &held.box.length}) {
      numbers->resize(dimensions);
      for (auto& each : *numbers) each = static_cast<std::int64_t>(number());
    }
    return held;
  }

 private:
  std::string_view take(std::uint64_t count) {
    TRIREME_EXPECT(count <= rest_.size(), "a message between ranks ends early");
    const auto part = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return part;
  }
  std::string_view rest_;
};

}  // namespace

std::vector<std::vector<HeldBox>> gather_held(comm::ProcessGroup& group,
                                              const std::vector<HeldBox>& mine) {
  Writer writer;
  for (const auto& held : mine) writer.put(held);
  std::vector<std::vector<HeldBox>> all;
  for (const auto& bytes : comm::all_gather_bytes(group, writer.bytes())) {
    auto& of_rank = all.emplace_back();
    for (Reader reader(bytes); !reader.done();) of_rank.push_back(reader.box());
  }
  return all;
}

std::vector<ShardRecord> gather_records(comm::ProcessGroup& group, const ShardRecord& mine) {
  Writer writer;
  if (!mine.boxes.empty()) {
    writer.put(mine.file.name);
    writer.put(mine.file.bytes);
    writer.put(static_cast<std::uint64_t>(mine.file.crc32c.size()));
    for (const auto checksum : mine.file.crc32c) writer.put(static_cast<std::uint64_t>(checksum));
    for (const auto& written : mine.boxes) {
      writer.put(written.box);
      writer.put(written.byte);
    }
  }
  std::vector<ShardRecord> records;
  for (const auto& bytes : comm::all_gather_bytes(group, writer.bytes())) {
    if (bytes.empty()) continue;
    Reader reader(bytes);
    auto& record = records.emplace_back();
    record.file = {reader.text(), reader.number(), {}};
    record.file.crc32c.resize(reader.number());
    for (auto& checksum : record.file.crc32c) {
      checksum = static_cast<std::uint32_t>(reader.number());
    }
    while (!reader.done()) {
      auto box = reader.box();
      record.boxes.push_back({std::move(box), reader.number()});
    }
  }
  return records;
}

}  // namespace trireme::checkpoint
