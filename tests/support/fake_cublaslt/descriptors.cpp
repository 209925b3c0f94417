// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cublaslt/descriptors.hpp"

#include "support/fake_cublaslt/controls.hpp"

#include <cstring>
#include <iostream>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>

namespace trireme::testing::cublaslt {
namespace {

constexpr std::uint64_t operation_mark = 0x6F7065726174696F;
constexpr std::uint64_t layout_mark = 0x6C61796F75742E2E;
constexpr std::uint64_t preference_mark = 0x7072656665722E2E;

template <typename Opaque, typename Contents>
void write(Opaque* to, const Contents& contents) {
  static_assert(sizeof(Contents) <= sizeof(Opaque) && std::is_trivially_copyable_v<Contents>);
  std::memcpy(to, &contents, sizeof(contents));
}

template <typename Opaque, typename Contents>
bool read_marked(const Opaque* from, Contents& to, std::uint64_t mark) {
  if (from == nullptr) return false;
  std::memcpy(static_cast<void*>(&to), from, sizeof(to));
  return to.mark == mark;
}

/// Where a value goes. Its bytes are zero where there is no such attribute, its place is null where
/// the stand-in does not know what it means.
struct Field {
  std::size_t bytes = 0;
  void* place = nullptr;
};

/// Fields that the stand-in computes with.
Field field_of(Operation& operation, int attribute) {
  const auto of = [](auto& member) { return Field{sizeof(member), static_cast<void*>(&member)}; };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return of(operation.compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return of(operation.scale_type);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return of(operation.pointer_mode);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return of(operation.transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return of(operation.transpose_b);
    case CUBLASLT_MATMUL_DESC_TRANSC:
      return of(operation.transpose_c);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return of(operation.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return of(operation.bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return of(operation.aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return of(operation.stride_aux);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return of(operation.scale_a);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return of(operation.scale_b);
    case CUBLASLT_MATMUL_DESC_C_SCALE_POINTER:
      return of(operation.scale_c);
    case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
      return of(operation.scale_d);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return of(operation.aux_type);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return of(operation.fast_accumulation);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return of(operation.bias_type);
    default:
      return {};
  }
}

/// Bytes of what there is beside that, as the header tells them.
std::size_t bytes_beyond(int attribute) {
  static const std::set<int> four{CUBLASLT_MATMUL_DESC_FILL_MODE,
                                  CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
                                  CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
                                  CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
                                  CUBLASLT_MATMUL_DESC_C_SCALE_MODE,
                                  CUBLASLT_MATMUL_DESC_D_SCALE_MODE,
                                  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE,
                                  CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE};
  static const std::set<int> eight{CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
                                   CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
                                   CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE,
                                   CUBLASLT_MATMUL_DESC_AMAX_D_POINTER,
                                   CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER,
                                   CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER,
                                   CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER};
  if (four.contains(attribute)) return 4;
  return eight.contains(attribute) ? 8 : 0;
}

Field field_of(Layout& layout, int attribute) {
  const auto of = [](auto& member) { return Field{sizeof(member), static_cast<void*>(&member)}; };
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return of(layout.type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return of(layout.order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return of(layout.rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return of(layout.columns);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return of(layout.stride);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return of(layout.matrices);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return of(layout.batch_stride);
    case CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET:
      return {8, nullptr};
    case CUBLASLT_MATRIX_LAYOUT_BATCH_MODE:
      return {4, nullptr};
    default:
      return {};
  }
}

Field field_of(Preference& preference, int attribute) {
  const auto of = [](auto& member) { return Field{sizeof(member), static_cast<void*>(&member)}; };
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return of(preference.most_workspace_bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return of(preference.alignment_a);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return of(preference.alignment_b);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return of(preference.alignment_c);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return of(preference.alignment_d);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return of(preference.reductions);
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
    case CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT:
      return {4, nullptr};
    case CUBLASLT_MATMUL_PREF_IMPL_MASK:
      return {8, nullptr};
    default:
      return {};
  }
}

template <typename Opaque, typename Contents>
cublasStatus_t set(Opaque* descriptor, const Field& field, Contents& contents, const void* value,
                   std::size_t bytes) {
  if (value == nullptr) return refuse(CUBLAS_STATUS_INVALID_VALUE, "an attribute's value is null");
  if (field.bytes == 0) return refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no such attribute");
  if (bytes != field.bytes) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "an attribute of " + std::to_string(field.bytes) +
                                                   " bytes is set from " + std::to_string(bytes));
  }
  if (field.place == nullptr) contents.beyond = 1;
  if (field.place != nullptr) std::memcpy(field.place, value, bytes);
  write(descriptor, contents);
  return CUBLAS_STATUS_SUCCESS;
}

CublasltControls& controls() {
  static CublasltControls all;
  return all;
}

}  // namespace

cublasStatus_t refuse(cublasStatus_t status, const std::string& reason) {
  static std::mutex one_at_a_time;
  static std::set<std::string> said;
  const std::lock_guard guard(one_at_a_time);
  const auto [place, is_new] = said.insert(reason);
  controls().last_refusal = place->c_str();
  if (is_new) std::cerr << "stand-in of cuBLASLt: " << reason << '\n';
  return status;
}

bool read(const cublasLtMatmulDescOpaque_t* from, Operation& to) {
  return read_marked(from, to, operation_mark);
}
bool read(const cublasLtMatrixLayoutOpaque_t* from, Layout& to) {
  return read_marked(from, to, layout_mark);
}
bool read(const cublasLtMatmulPreferenceOpaque_t* from, Preference& to) {
  return read_marked(from, to, preference_mark);
}

std::size_t size_of(std::int32_t type) {
  if (type == CUDA_R_32F) return 4;
  if (type == CUDA_R_16BF) return 2;
  return type == CUDA_R_8F_E4M3 ? 1 : 0;
}

}  // namespace trireme::testing::cublaslt

// NOLINTBEGIN(readability-identifier-naming): the names are cuBLASLt's.
extern "C" {

using namespace trireme::testing::cublaslt;

trireme::testing::CublasltControls* fake_cublaslt_controls() {
  return &controls();
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t descriptor, std::size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  // A caller that was compiled with another header could bring less.
  if (size < sizeof(*descriptor)) {
    return refuse(CUBLAS_STATUS_ALLOC_FAILED, "too little memory for an operation");
  }
  Operation operation;
  operation.mark = operation_mark;
  operation.compute = compute;
  operation.scale_type = scale;
  write(descriptor, operation);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  Operation operation;
  if (!read(descriptor, operation)) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "an operation is set before it is initialised");
  }
  auto field = field_of(operation, attribute);
  if (field.bytes == 0) field.bytes = bytes_beyond(attribute);
  return set(descriptor, field, operation, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t descriptor,
                                                 std::size_t size, cudaDataType type,
                                                 std::uint64_t rows, std::uint64_t columns,
                                                 std::int64_t stride) {
  if (size < sizeof(*descriptor)) {
    return refuse(CUBLAS_STATUS_ALLOC_FAILED, "too little memory for a layout");
  }
  Layout layout;
  layout.mark = layout_mark;
  layout.type = type;
  layout.rows = rows;
  layout.columns = columns;
  layout.stride = stride;
  write(descriptor, layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t descriptor,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  Layout layout;
  if (!read(descriptor, layout)) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "a layout is set before it is initialised");
  }
  return set(descriptor, field_of(layout, attribute), layout, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t descriptor,
                                                     std::size_t size) {
  if (size < sizeof(*descriptor)) {
    return refuse(CUBLAS_STATUS_ALLOC_FAILED, "too little memory for preferences");
  }
  Preference preference;
  preference.mark = preference_mark;
  write(descriptor, preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t descriptor,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  Preference preference;
  if (!read(descriptor, preference)) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "preferences are set before they are initialised");
  }
  return set(descriptor, field_of(preference, attribute), preference, value, bytes);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
