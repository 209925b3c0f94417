// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cublaslt/ways.hpp"

#include "support/fake_cublaslt/launch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace trireme::testing::cublaslt {
namespace {

constexpr std::uint64_t record_mark = 0x616C676F72697468;
/// No kernel reads more of a bias or of aux at once.
constexpr std::uint64_t most_at_once = 16;

std::uint64_t digest_of(Record record) {
  record.digest = CUBLAS_VERSION;
  std::uint64_t words[sizeof(record) / sizeof(std::uint64_t)];
  static_assert(sizeof(words) == sizeof(record) && std::is_trivially_copyable_v<Record>);
  std::memcpy(words, &record, sizeof(record));
  std::uint64_t digest = 0xCBF29CE484222325U;
  for (const auto word : words) {
    digest = (digest ^ word) * 0x100000001B3U;
    digest ^= digest >> 31;
  }
  return digest;
}

/// Null is a multiple of everything: who sets no address promises all.
std::uint16_t promised_by(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  if (bits == 0) return most_at_once;
  const auto alignment = std::uint64_t{1} << static_cast<unsigned>(std::countr_zero(bits));
  return static_cast<std::uint16_t>(std::min<std::uint64_t>(alignment, most_at_once));
}

bool columns_are_packed(const Problem& problem) {
  const auto packed = [](const Layout& layout) {
    return static_cast<std::uint64_t>(layout.stride) * size_of(layout.type) % most_at_once == 0;
  };
  return packed(problem.a) && packed(problem.b) && packed(problem.d);
}

bool may_be_vectorised(const Problem& problem, const Record& record) {
  const auto least = std::min({record.alignment_a, record.alignment_b, record.alignment_c,
                               record.alignment_d, record.alignment_bias, record.alignment_aux});
  return least >= most_at_once && columns_are_packed(problem);
}

}  // namespace

std::vector<Record> ways_for(const Problem& problem, const Preference& preference) {
  Record record;
  record.mark = record_mark;
  record.problem = problem.digest();
  record.alignment_a = static_cast<std::uint16_t>(preference.alignment_a);
  record.alignment_b = static_cast<std::uint16_t>(preference.alignment_b);
  record.alignment_c = static_cast<std::uint16_t>(preference.alignment_c);
  record.alignment_d = static_cast<std::uint16_t>(preference.alignment_d);
  const auto parts = parts_of(problem.operation.epilogue);
  record.alignment_bias = parts.vector() ? promised_by(problem.operation.bias) : most_at_once;
  record.alignment_aux = parts.aux() ? promised_by(problem.operation.aux) : most_at_once;
  std::vector<Record> ways;
  const auto offer = [&](Way way, std::uint64_t workspace_bytes) {
    if (workspace_bytes > preference.most_workspace_bytes) return;
    record.way = way;
    record.workspace_bytes = workspace_bytes;
    record.digest = digest_of(record);
    ways.push_back(record);
  };
  const bool vectorised = may_be_vectorised(problem, record);
  if (problem.float8() && !vectorised) return ways;
  offer(Way::unusable, 0);
  offer(Way::slow, 0);
  offer(Way::breaks, 0);
  if (vectorised) offer(Way::vectorised, 0);
  const auto halves = 2 * sizeof(float) * problem.m() * problem.n();
  if ((preference.reductions & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) != 0) {
    offer(Way::rounded, halves);
  }
  if ((preference.reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0) {
    offer(Way::split, halves);
  }
  offer(Way::plain, 0);
  offer(Way::greedy, std::uint64_t{1} << 33);
  return ways;
}

bool read(const cublasLtMatmulAlgo_t* from, Record& to) {
  static_assert(sizeof(Record) <= sizeof(*from));
  if (from == nullptr) return false;
  std::memcpy(static_cast<void*>(&to), from, sizeof(to));
  return to.mark == record_mark && to.digest == digest_of(to);
}

cublasLtMatmulHeuristicResult_t result_of(const Record& record, std::size_t matrices) {
  cublasLtMatmulHeuristicResult_t result{};
  std::memcpy(&result.algo, &record, sizeof(record));
  result.workspaceSize = record.workspace_bytes * matrices;
  result.state = record.way == Way::unusable ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1.0F;
  return result;
}

cublasStatus_t judge(const Record& record, const Problem& problem) {
  if (problem.matrices() > fake_cublaslt_controls()->most_matrices) {
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "the algorithm takes fewer matrices");
  }
  if (record.problem != problem.digest()) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the algorithm is for another product");
  }
  return record.way == Way::unusable
             ? refuse(CUBLAS_STATUS_NOT_SUPPORTED, "the algorithm was marked as not usable")
             : CUBLAS_STATUS_SUCCESS;
}

}  // namespace trireme::testing::cublaslt
