// SPDX-License-Identifier: Apache-2.0
#include "unit/checkpoint/one_value.hpp"

#include "trireme/checkpoint/background_save.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trireme::tests {
namespace {

constexpr std::int64_t rows = 600;
constexpr std::int64_t columns = 500;
const layout::Shape shape{rows, columns};

layout::Box half_of(int rank) {
  return {{rows / 2 * rank, 0}, {rows / 2, columns}};
}

/// The half that one of two ranks saves.
struct Half {
  Half(int rank, float value) : held("w", shape, device::DType::f32, half_of(rank)) {
    std::fill_n(held.data.f32(), rows / 2 * columns, value);
  }
  checkpoint::SaveRequest request(const std::filesystem::path& folder, std::int64_t step) const {
    auto contents = contents_of({{"w", shape, device::DType::f32, half_of(0), 0},
                                 {"w", shape, device::DType::f32, half_of(1), 1}});
    return {folder, step, 0, "test", {}, std::move(contents), {held.data}};
  }
  Held held;
};

}  // namespace

void save_value(const std::filesystem::path& folder, std::int64_t step, float value,
                checkpoint::FileSystem& files) {
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank(), value);
    checkpoint::save(half.request(folder, step), world, {1, files});
  });
}

void save_value_beside(const std::filesystem::path& folder, std::int64_t step, float value,
                       checkpoint::FileSystem& files) {
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank(), value);
    checkpoint::BackgroundSave save(half.request(folder, step), {}, world, {1, files});
    while (!save.poll(world)) {
    }
  });
}

FoundValue load_value(const std::filesystem::path& folder, checkpoint::FileSystem& files) {
  FoundValue found;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const Held all("w", shape, device::DType::f32, layout::whole(shape));
    const auto choose = [&](const checkpoint::Manifest&) { return std::vector{all.wanted()}; };
    const auto report =
        checkpoint::load_newest(folder, choose, world, {.threads = 1, .access = {.files = &files}});
    if (!report) throw std::runtime_error("no step is loaded");
    found = {report->step, all.data.f32()[0]};
    if (std::any_of(all.data.f32(), all.data.f32() + rows * columns,
                    [&](float value) { return value != found.value; })) {
      throw std::runtime_error("a mixture of two steps");
    }
  });
  return found;
}

std::size_t temporary_folders(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find(".tmp-") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace trireme::tests
