// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// cuDNN's backend interface, the part that is used, as it has been since version 9.0 (device
/// properties since 9.8). Declared here because the library is opened when it is needed, not
/// linked: this is built with and without it. Where a build finds cudnn.h, tests/unit/device
/// compares the two.
namespace trireme::device::cudnn {

/// cudnnStatus_t: zero, or a reason that the library tells in words.
enum class Status : int { success = 0, bad_param = 2000, not_supported = 3000 };

/// cudnnBackendDescriptorType_t.
enum class Kind : int {
  pointwise = 0,
  engine = 2,
  engine_config = 3,
  engine_heuristics = 4,
  execution_plan = 5,
  operation_pointwise = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  operation_matmul = 19,
  reduction = 21,
  operation_reduction = 22,
  operation_reshape = 31,
  device_properties = 38,
};

/// cudnnBackendAttributeName_t.
enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_axis = 9,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  heuristics_device = 204,
  config_engine = 300,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace_size = 402,
  plan_device = 407,
  operation_pointwise_descriptor = 750,
  operation_pointwise_x = 751,
  operation_pointwise_b = 752,
  operation_pointwise_y = 753,
  operation_pointwise_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_dims = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_numerical_notes = 1303,
  matmul_precision = 1500,
  operation_matmul_a = 1520,
  operation_matmul_b = 1521,
  operation_matmul_c = 1522,
  operation_matmul_descriptor = 1523,
  reduction_mode = 1600,
  reduction_precision = 1601,
  operation_reduction_x = 1610,
  operation_reduction_y = 1611,
  operation_reduction_descriptor = 1612,
  operation_reshape_x = 2200,
  operation_reshape_y = 2201,
  device_json = 2702,
};

/// cudnnBackendAttributeType_t.
enum class Type : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  void_pointer = 6,
  heuristics_mode = 8,
  numerical_note = 11,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_mode = 18,
  character = 24,
};

/// cudnnDataType_t.
enum class DataType : int { f32 = 0, i32 = 4, bf16 = 9, boolean = 11 };

/// cudnnPointwiseMode_t.
enum class PointwiseMode : int {
  add = 0,
  multiply = 1,
  divide = 6,
  subtract = 9,
  exp = 13,
  log = 15,
  identity = 21,
  is_greater_or_equal = 303,
  index = 501,
  select = 601,
};

/// cudnnReduceTensorOp_t.
enum class ReductionMode : int { sum = 0, max = 3 };

/// cudnnBackendHeurMode_t.
enum class HeuristicsMode : int { fallback = 2, fastest_first = 3 };

/// cudnnBackendNumericalNote_t.
enum class NumericalNote : int { nondeterministic = 4 };

/// Upper bound of the number of notes, above that of any version so far.
inline constexpr std::int64_t most_notes = 64;

/// cudnnBackendDescriptor_t and cudnnHandle_t.
using RawDescriptor = void*;
using Handle = void*;

/// Version of the library that is in use: 9 * 10000 + 19 * 100 + 1 is 9.19.1.
inline constexpr std::size_t oldest_version = 90000;
inline constexpr std::size_t newer_than_known = 100000;

/// The library's functions. Streams are cudaStream_t.
struct Api {
  std::size_t (*version)() = nullptr;
  const char* (*status_text)(Status status) = nullptr;
  /// Last error of this thread; empties it.
  void (*last_message)(char* text, std::size_t size) = nullptr;
  Status (*create)(Handle* handle) = nullptr;
  Status (*destroy)(Handle handle) = nullptr;
  Status (*set_stream)(Handle handle, void* stream) = nullptr;
  Status (*create_descriptor)(Kind kind, RawDescriptor* descriptor) = nullptr;
  Status (*destroy_descriptor)(RawDescriptor descriptor) = nullptr;
  Status (*set_attribute)(RawDescriptor descriptor, Attribute attribute, Type type,
                          std::int64_t count, const void* values) = nullptr;
  Status (*get_attribute)(RawDescriptor descriptor, Attribute attribute, Type type,
                          std::int64_t most, std::int64_t* count, void* values) = nullptr;
  Status (*finalize)(RawDescriptor descriptor) = nullptr;
  Status (*execute)(Handle handle, RawDescriptor plan, RawDescriptor pack) = nullptr;
};

}  // namespace trireme::device::cudnn
