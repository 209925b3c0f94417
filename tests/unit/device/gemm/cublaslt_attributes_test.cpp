// SPDX-License-Identifier: Apache-2.0
// Values of cuBLASLt's descriptors, given to the real library: it takes and refuses values by their
// sizes without a GPU. The stand-in that other tests multiply with must do alike.
#include "trireme/base/cuda_libraries.hpp"
#include "trireme/base/format.hpp"

#include "support/fake_cublaslt/opened.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <iostream>
#include <optional>

using trireme::testing::OpenedCublaslt;

namespace {

/// The attributes that products set, with the types that the header's comments give.
struct Attribute {
  int number;
  std::size_t bytes;
};
constexpr Attribute operation_attributes[] = {
    {CUBLASLT_MATMUL_DESC_TRANSA, sizeof(cublasOperation_t)},
    {CUBLASLT_MATMUL_DESC_TRANSB, sizeof(cublasOperation_t)},
    {CUBLASLT_MATMUL_DESC_EPILOGUE, sizeof(cublasLtEpilogue_t)},
    {CUBLASLT_MATMUL_DESC_BIAS_POINTER, sizeof(const void*)},
    {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, sizeof(cudaDataType_t)},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, sizeof(const void*)},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, sizeof(std::int64_t)},
    {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, sizeof(const void*)},
    {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, sizeof(const void*)},
    {CUBLASLT_MATMUL_DESC_FAST_ACCUM, sizeof(std::int8_t)}};
constexpr Attribute preference_attributes[] = {
    {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, sizeof(std::uint64_t)},
    {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sizeof(std::uint32_t)},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, sizeof(std::uint32_t)},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, sizeof(std::uint32_t)},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, sizeof(std::uint32_t)},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, sizeof(std::uint32_t)}};
constexpr Attribute layout_attributes[] = {
    {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, sizeof(std::int32_t)},
    {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, sizeof(std::int64_t)}};
constexpr std::size_t sizes[] = {0, 1, 2, 4, 8, 16};

/// The toolkit's own first, which is the header's; nothing where there is none.
std::optional<std::string> path_of_real_library() {
  const auto file = trireme::base::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  std::string built_with = std::string(TRIREME_CUDA_LIBRARY_FOLDER) + "/" + file;
  if (std::filesystem::exists(built_with)) return built_with;
  const auto places = trireme::base::places_of_cuda_library(file);
  if (places.size() < 2) return std::nullopt;
  return places[1];
}

/// Verdicts of a library on values of each size for an attribute of an operation.
std::vector<cublasStatus_t> operation_verdicts(const OpenedCublaslt& library, int attribute) {
  auto* const init =
      library.find<decltype(cublasLtMatmulDescInit_internal)>("cublasLtMatmulDescInit_internal");
  auto* const set =
      library.find<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
  std::vector<cublasStatus_t> verdicts;
  for (const auto bytes : sizes) {
    cublasLtMatmulDescOpaque_t operation{};
    REQUIRE(init(&operation, sizeof(operation), CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
            CUBLAS_STATUS_SUCCESS);
    const std::uint64_t value[2]{};
    verdicts.push_back(
        set(&operation, static_cast<cublasLtMatmulDescAttributes_t>(attribute), value, bytes));
  }
  return verdicts;
}

std::vector<cublasStatus_t> preference_verdicts(const OpenedCublaslt& library, int attribute) {
  auto* const init = library.find<decltype(cublasLtMatmulPreferenceInit_internal)>(
      "cublasLtMatmulPreferenceInit_internal");
  auto* const set = library.find<decltype(cublasLtMatmulPreferenceSetAttribute)>(
      "cublasLtMatmulPreferenceSetAttribute");
  std::vector<cublasStatus_t> verdicts;
  for (const auto bytes : sizes) {
    cublasLtMatmulPreferenceOpaque_t preference{};
    REQUIRE(init(&preference, sizeof(preference)) == CUBLAS_STATUS_SUCCESS);
    const std::uint64_t value[2]{};
    verdicts.push_back(set(
        &preference, static_cast<cublasLtMatmulPreferenceAttributes_t>(attribute), value, bytes));
  }
  return verdicts;
}

std::vector<cublasStatus_t> layout_verdicts(const OpenedCublaslt& library, int attribute) {
  auto* const init = library.find<decltype(cublasLtMatrixLayoutInit_internal)>(
      "cublasLtMatrixLayoutInit_internal");
  auto* const set =
      library.find<decltype(cublasLtMatrixLayoutSetAttribute)>("cublasLtMatrixLayoutSetAttribute");
  std::vector<cublasStatus_t> verdicts;
  for (const auto bytes : sizes) {
    cublasLtMatrixLayoutOpaque_t layout{};
    REQUIRE(init(&layout, sizeof(layout), CUDA_R_32F, 4, 4, 4) == CUBLAS_STATUS_SUCCESS);
    const std::uint64_t value[2]{};
    verdicts.push_back(
        set(&layout, static_cast<cublasLtMatrixLayoutAttribute_t>(attribute), value, bytes));
  }
  return verdicts;
}

/// Success for the right size alone.
std::vector<cublasStatus_t> wanted_verdicts(std::size_t right) {
  std::vector<cublasStatus_t> verdicts;
  for (const auto bytes : sizes) {
    verdicts.push_back(bytes == right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE);
  }
  return verdicts;
}

void check_sizes(const OpenedCublaslt& library) {
  for (const auto& [number, bytes] : operation_attributes) {
    CAPTURE(number);
    CHECK(operation_verdicts(library, number) == wanted_verdicts(bytes));
  }
  for (const auto& [number, bytes] : preference_attributes) {
    CAPTURE(number);
    CHECK(preference_verdicts(library, number) == wanted_verdicts(bytes));
  }
  for (const auto& [number, bytes] : layout_attributes) {
    CAPTURE(number);
    CHECK(layout_verdicts(library, number) == wanted_verdicts(bytes));
  }
}

/// Value that an operation holds after `value` was set.
template <typename T>
T read_back(const OpenedCublaslt& library, cublasLtMatmulDescAttributes_t attribute, T value) {
  auto* const init =
      library.find<decltype(cublasLtMatmulDescInit_internal)>("cublasLtMatmulDescInit_internal");
  auto* const set =
      library.find<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
  auto* const get =
      library.find<decltype(cublasLtMatmulDescGetAttribute)>("cublasLtMatmulDescGetAttribute");
  cublasLtMatmulDescOpaque_t operation{};
  REQUIRE(init(&operation, sizeof(operation), CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
          CUBLAS_STATUS_SUCCESS);
  REQUIRE(set(&operation, attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS);
  T held{};
  std::size_t bytes = 0;
  REQUIRE(get(&operation, attribute, &held, sizeof(held), &bytes) == CUBLAS_STATUS_SUCCESS);
  CHECK(bytes == sizeof(held));
  return held;
}

}  // namespace

TEST_CASE("the stand-in of cuBLASLt takes attributes of the sizes that the header gives") {
  check_sizes(OpenedCublaslt(TRIREME_FAKE_CUBLASLT));
}

TEST_CASE("cuBLASLt itself takes attributes of these sizes and no others") {
  const auto path = path_of_real_library();
  if (!path) {
    std::cout << "there is no cuBLASLt here: its own word on attributes is not heard\n";
    return;
  }
  const OpenedCublaslt library(*path);
  check_sizes(library);
  CHECK(read_back(library, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T) == CUBLAS_OP_T);
  CHECK(read_back(library, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB) ==
        CUBLASLT_EPILOGUE_BGRADB);
  CHECK(read_back(library, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{3072}) == 3072);
  CHECK(read_back(library, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF) == CUDA_R_16BF);
}

TEST_CASE("cuBLASLt and its stand-in agree on every attribute that both know") {
  const auto path = path_of_real_library();
  if (!path) {
    std::cout << "there is no cuBLASLt here: the stand-in is compared with nothing\n";
    return;
  }
  const OpenedCublaslt library(*path);
  const OpenedCublaslt stand_in(TRIREME_FAKE_CUBLASLT);
  // 16 has no name in the header.
  constexpr int without_name = 16;
  for (int attribute = 0; attribute <= CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE; ++attribute) {
    if (attribute == without_name) continue;
    CAPTURE(attribute);
    CHECK(operation_verdicts(stand_in, attribute) == operation_verdicts(library, attribute));
  }
  for (int attribute = 0; attribute <= CUBLASLT_MATRIX_LAYOUT_BATCH_MODE; ++attribute) {
    CAPTURE(attribute);
    CHECK(layout_verdicts(stand_in, attribute) == layout_verdicts(library, attribute));
  }
  for (int attribute = 0; attribute <= CUBLASLT_MATMUL_PREF_IMPL_MASK; ++attribute) {
    CAPTURE(attribute);
    CHECK(preference_verdicts(stand_in, attribute) == preference_verdicts(library, attribute));
  }
}
