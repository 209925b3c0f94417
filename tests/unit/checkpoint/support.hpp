// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/save.hpp"

#include "unit/checkpoint/thread_group.hpp"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::tests {

/// A folder of its own, removed at the end; in memory where the system offers that, because these
/// tests sync hundreds of times.
class ScratchFolder {
 public:
  ScratchFolder() {
    static std::atomic<int> count{0};
    const std::filesystem::path memory = "/dev/shm";
    path_ =
        (::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path()) /
        ("trireme-checkpoint-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Element `index` of a tensor as every layout must see it: a pattern that no other element of
/// this or another tensor repeats soon.
inline std::uint32_t pattern(const std::string& name, std::int64_t index) {
  auto hash = std::hash<std::string>{}(name) +
              0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(index + 1);
  hash = (hash ^ (hash >> 31)) * 0xBF58476D1CE4E5B9ULL;
  return static_cast<std::uint32_t>(hash >> 32);
}

/// Memory of one rank's box of a tensor.
struct Held {
  std::string name;
  layout::Shape shape;
  layout::Box box;
  std::vector<std::byte> memory;
  device::Tensor data;

  Held(std::string its_name, layout::Shape its_shape, device::DType dtype, layout::Box its_box)
      : name(std::move(its_name)),
        shape(std::move(its_shape)),
        box(std::move(its_box)),
        memory(static_cast<std::size_t>(layout::element_count(box)) * device::size_of(dtype)),
        data(memory.data(), dtype, {layout::element_count(box)}) {}
  ~Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  checkpoint::LoadItem wanted() const { return {name, shape, box, data}; }

  /// Calls visit(global index, local index) for every element of the box.
  template <typename Visit>
  void each(Visit visit) const {
    layout::Shape at(box.length.size(), 0);
    const auto count = layout::element_count(box);
    for (std::int64_t local = 0; local < count; ++local) {
      std::int64_t global = 0;
      for (std::size_t d = 0; d < at.size(); ++d) {
        global = global * shape[d] + box.offset[d] + at[d];
      }
      visit(global, local);
      for (std::size_t d = at.size(); d-- > 0 && ++at[d] == box.length[d];) at[d] = 0;
    }
  }
  void fill() {
    const auto size = device::size_of(data.dtype());
    each([&](std::int64_t global, std::int64_t local) {
      const auto value = pattern(name, global);
      std::memcpy(&memory[static_cast<std::size_t>(local) * size], &value, size);
    });
  }
  /// Elements that are not what fill() would put there.
  std::int64_t wrong_elements() const {
    std::int64_t wrong = 0;
    const auto size = device::size_of(data.dtype());
    each([&](std::int64_t global, std::int64_t local) {
      const auto value = pattern(name, global);
      if (std::memcmp(&memory[static_cast<std::size_t>(local) * size], &value, size) != 0) ++wrong;
    });
    return wrong;
  }
};

/// Box that one rank alone saves.
struct OwnedBox {
  std::string name;
  layout::Shape shape;
  device::DType dtype;
  layout::Box box;
  std::size_t rank;
};
/// Contents of which every box is a bucket of its own, in the order given.
inline checkpoint::Contents contents_of(const std::vector<OwnedBox>& boxes) {
  checkpoint::ContentsBuilder builder;
  for (const auto& [name, shape, dtype, box, rank] : boxes) {
    const auto bucket = builder.add_bucket(dtype, {rank, 1, 1}, layout::element_count(box));
    builder.add_part(name, shape, box, bucket, 0);
  }
  return builder.take();
}

/// Request for what one rank alone saves.
inline checkpoint::SaveRequest request_of(const std::filesystem::path& folder, std::int64_t step,
                                          const std::vector<const Held*>& held) {
  std::vector<OwnedBox> boxes;
  checkpoint::SaveRequest request{folder, step, 0, "test", {}, {}, {}};
  for (const auto* each : held) {
    boxes.push_back({each->name, each->shape, each->data.dtype(), each->box, 0});
    request.shards.push_back(each->data);
  }
  request.contents = contents_of(boxes);
  return request;
}

}  // namespace trireme::tests
