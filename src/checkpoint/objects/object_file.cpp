// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/objects/object_file.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::checkpoint {

using store::part_bytes;

ObjectFile::ObjectFile(const std::filesystem::path& url, std::uint64_t bytes)
    : at_(store::locate(url)), bytes_(bytes) {
  if (bytes > store::max_parts * part_bytes) {
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format(
            "'{}' would have {} bytes, and an object has at most {}; save with more ranks, "
            "or to a file system",
            url.string(), bytes, store::max_parts * part_bytes));
  }
  if (bytes > part_bytes) upload_ = at_.store->upload(at_.name);
}

std::size_t ObjectFile::bytes_of(std::size_t part) const {
  return static_cast<std::size_t>(std::min<std::uint64_t>(part_bytes, bytes_ - part * part_bytes));
}

void ObjectFile::send(std::size_t part, std::span<const std::byte> bytes) {
  if (upload_) {
    upload_->write(part, bytes);
  } else {
    at_.store->put(at_.name, bytes, store::Existing::replace);
  }
}

void ObjectFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  TRIREME_EXPECT(offset + bytes.size() <= bytes_, "a file has its length from the beginning");
  while (!bytes.empty()) {
    const auto number = static_cast<std::size_t>(offset / part_bytes);
    const auto within = static_cast<std::size_t>(offset % part_bytes);
    const auto here = bytes.first(std::min(bytes.size(), bytes_of(number) - within));
    bytes = bytes.subspan(here.size());
    offset += here.size();
    if (here.size() == bytes_of(number)) {
      send(number, here);
      continue;
    }
    std::vector<std::byte> whole;
    {
      const std::lock_guard lock(mutex_);
      auto& part = parts_[number];
      part.memory.resize(bytes_of(number));
      std::memcpy(&part.memory[within], here.data(), here.size());
      part.filled += here.size();
      if (part.filled < part.memory.size()) continue;
      whole = std::move(part.memory);
      parts_.erase(number);
    }
    send(number, whole);
  }
}

void ObjectFile::abandon() {
  if (upload_) upload_->abandon();
}

void ObjectFile::finish() {
  TRIREME_EXPECT(parts_.empty(), "a file is finished when all its bytes are written");
  if (upload_) upload_->finish();
}

}  // namespace trireme::checkpoint
