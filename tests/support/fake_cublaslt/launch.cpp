// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cublaslt/launch.hpp"

#include "support/fake_cublaslt/runtime.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <type_traits>

namespace trireme::testing::cublaslt {
namespace {

constexpr auto invalid = CUBLAS_STATUS_INVALID_VALUE;
constexpr auto fine = CUBLAS_STATUS_SUCCESS;

/// A matrix or a vector in memory.
struct Extent {
  const char* name;
  const void* address;
  std::size_t column_bytes;
  std::size_t stride_bytes;
  std::size_t columns;
  bool written;
  std::uint16_t alignment;

  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(address); }
  std::uintptr_t end() const { return begin() + (columns - 1) * stride_bytes + column_bytes; }
};

Extent extent_of(const char* name, const void* address, const Layout& layout, bool written,
                 std::uint16_t alignment) {
  const auto size = size_of(layout.type);
  return {
      name,           address, layout.rows * size, static_cast<std::size_t>(layout.stride) * size,
      layout.columns, written, alignment};
}

/// Columns of one matrix may lie between those of another.
bool overlap(const Extent& one, const Extent& other) {
  if (one.end() <= other.begin() || other.end() <= one.begin()) return false;
  if (one.stride_bytes != other.stride_bytes || one.stride_bytes == 0) return true;
  const auto stride = one.stride_bytes;
  const auto apart = (std::max(one.begin(), other.begin()) - std::min(one.begin(), other.begin()));
  const auto& first = one.begin() <= other.begin() ? one : other;
  const auto& second = one.begin() <= other.begin() ? other : one;
  const auto shift = apart % stride;
  return shift < first.column_bytes || shift + second.column_bytes > stride;
}

/// Address of an operand of one matrix of a batch.
template <typename Address>
Address at_matrix(Address address, const Layout& layout, std::size_t matrix) {
  if (address == nullptr) return nullptr;
  const auto offset = static_cast<std::int64_t>(matrix) * layout.batch_stride *
                      static_cast<std::int64_t>(size_of(layout.type));
  using Byte = std::conditional_t<std::is_same_v<Address, void*>, std::byte, const std::byte>;
  return static_cast<Byte*>(address) + offset;
}

Addresses addresses_of(const Launch& launch, std::size_t matrix) {
  auto all = launch.addresses;
  all.a = at_matrix(all.a, launch.problem.a, matrix);
  all.b = at_matrix(all.b, launch.problem.b, matrix);
  all.c = at_matrix(all.c, launch.problem.c, matrix);
  all.d = at_matrix(all.d, launch.problem.d, matrix);
  return all;
}

std::vector<Extent> extents_of(const Launch& launch, std::size_t matrix) {
  const auto& problem = launch.problem;
  const auto addresses = addresses_of(launch, matrix);
  const auto& record = launch.record;
  const auto parts = parts_of(problem.operation.epilogue);
  std::vector<Extent> all{extent_of("A", addresses.a, problem.a, false, record.alignment_a),
                          extent_of("B", addresses.b, problem.b, false, record.alignment_b),
                          extent_of("D", addresses.d, problem.d, true, record.alignment_d)};
  if (launch.factors.beta != 0) {
    all.push_back(extent_of("C", addresses.c, problem.c, false, record.alignment_c));
  }
  if (parts.vector()) {
    const auto length = parts.bias ? problem.m() : problem.n();
    all.push_back({"bias", addresses.bias, length * size_of(problem.bias_type()), 0, 1,
                   parts.sums_of_b, record.alignment_bias});
  }
  if (parts.aux()) {
    const auto size = size_of(problem.aux_type());
    all.push_back({"aux", addresses.aux, problem.m() * size,
                   static_cast<std::size_t>(problem.operation.stride_aux) * size, problem.n(),
                   parts.gelu, record.alignment_aux});
  }
  return all;
}

/// D may lie where C does, if all of it does.
bool is_in_place(const Launch& launch, const Extent& one, const Extent& other) {
  const auto are = [&](char first, char second) {
    return one.name[0] == first && other.name[0] == second;
  };
  return (are('D', 'C') || are('C', 'D')) && one.address == other.address &&
         launch.problem.c == launch.problem.d;
}

cublasStatus_t judge_extents(const Launch& launch) {
  std::vector<Extent> all;
  for (std::size_t matrix = 0; matrix < launch.problem.matrices(); ++matrix) {
    const auto some = extents_of(launch, matrix);
    all.insert(all.end(), some.begin(), some.end());
  }
  for (const auto& each : all) {
    const std::string name = each.name;
    if (each.address == nullptr) return refuse(invalid, name + " is null");
    if (each.begin() % each.alignment != 0) {
      return refuse(invalid, name + " is not aligned to " + std::to_string(each.alignment) +
                                 " bytes, as was promised");
    }
  }
  if (launch.record.workspace_bytes > 0) {
    all.push_back({"the workspace", launch.workspace, launch.workspace_bytes, 0, 1, true, 1});
  }
  for (std::size_t one = 0; one < all.size(); ++one) {
    for (std::size_t other = one + 1; other < all.size(); ++other) {
      const bool matters = all[one].written || all[other].written;
      if (!matters || is_in_place(launch, all[one], all[other])) continue;
      if (!overlap(all[one], all[other])) continue;
      return refuse(invalid, std::string(all[one].name) + " and " + all[other].name + " overlap");
    }
  }
  return fine;
}

cublasStatus_t judge_workspace(const Launch& launch) {
  constexpr std::uintptr_t alignment = 256;
  if (launch.needed_bytes() > launch.workspace_bytes) {
    return refuse(invalid, "the algorithm needs more workspace");
  }
  if (launch.record.workspace_bytes > 0 && launch.workspace == nullptr) {
    return refuse(invalid, "the workspace is null");
  }
  return reinterpret_cast<std::uintptr_t>(launch.workspace) % alignment == 0
             ? fine
             : refuse(invalid, "the workspace is not aligned to 256 bytes");
}

/// Whoever keeps something there, or reads what nobody wrote, shall see it.
void poison(const Launch& launch) {
  constexpr int nan = 0xFF;
  constexpr std::size_t edge = 256;
  auto* const begin = static_cast<std::byte*>(launch.workspace);
  const auto bytes = std::min(launch.workspace_bytes, edge);
  if (begin == nullptr || bytes == 0) return;
  std::memset(begin, nan, std::max(bytes, std::size_t{launch.needed_bytes()}));
  std::memset(begin + (launch.workspace_bytes - bytes), nan, bytes);
}

bool is_rounded(const Launch& launch) {
  return launch.record.way == Way::rounded && launch.problem.d.type != CUDA_R_32F;
}

void count(const Launch& launch) {
  auto& controls = *fake_cublaslt_controls();
  switch (launch.record.way) {
    case Way::slow:
      ++controls.slow;
      break;
    case Way::vectorised:
      ++controls.vectorised;
      break;
    case Way::rounded:
    case Way::split:
      ++(is_rounded(launch) ? controls.rounded : controls.split);
      break;
    case Way::plain:
    case Way::greedy:
      ++controls.plain;
      break;
    case Way::unusable:
    case Way::breaks:
      break;
  }
  const auto& problem = launch.problem;
  if (problem.operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT) ++controls.with_epilogue;
  if (problem.matrices() > 1) ++controls.batches;
  controls.flops += 2 * problem.m() * problem.n() * problem.k() * problem.matrices();
}

void note(const OperandSizes& sizes) {
  static std::mutex one_at_a_time;
  const std::lock_guard guard(one_at_a_time);
  auto& controls = *fake_cublaslt_controls();
  controls.smallest_operand = std::min({controls.smallest_operand, sizes.a, sizes.b});
  controls.largest_operand = std::max({controls.largest_operand, sizes.a, sizes.b});
}

void run(void* data) {
  auto* const launch = static_cast<Launch*>(data);
  poison(*launch);
  if (launch->record.way == Way::slow) std::this_thread::sleep_for(std::chrono::microseconds(500));
  const auto type = is_rounded(*launch) ? launch->problem.d.type : CUDA_R_32F;
  const auto count = launch->record.workspace_bytes / sizeof(float);
  for (std::size_t matrix = 0; matrix < launch->problem.matrices(); ++matrix) {
    std::span<float> partial_sums;
    if (launch->record.way == Way::split || launch->record.way == Way::rounded) {
      partial_sums = {static_cast<float*>(launch->workspace) + matrix * count, count};
    }
    note(compute(launch->problem, addresses_of(*launch, matrix), launch->factors,
                 {partial_sums, type}));
  }
  if (launch->once) delete launch;
}

bool is_recorded(cudaStream_t stream) {
  const auto ask = runtime().is_capturing;
  auto state = cudaStreamCaptureStatusNone;
  // Where nobody says, it may be.
  return ask == nullptr || ask(stream, &state) != cudaSuccess ||
         state != cudaStreamCaptureStatusNone;
}

}  // namespace

cublasStatus_t judge(const Launch& launch) {
  if (const auto status = judge(launch.record, launch.problem); status != fine) return status;
  if (const auto status = judge_workspace(launch); status != fine) return status;
  return judge_extents(launch);
}

cublasStatus_t enqueue(Handle& handle, std::unique_ptr<Launch> launch, cudaStream_t stream) {
  const std::lock_guard guard(handle.one_at_a_time);
  launch->once = !is_recorded(stream);
  count(*launch);
  auto* const data = launch.release();
  if (!data->once) handle.recorded.emplace_back(data);
  if (runtime().launch_host_function(stream, run, data) == cudaSuccess) return fine;
  if (data->once) delete data;
  return refuse(CUBLAS_STATUS_EXECUTION_FAILED, "the stream takes no work");
}

}  // namespace trireme::testing::cublaslt
