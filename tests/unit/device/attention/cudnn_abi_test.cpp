// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/cudnn/abi.hpp"
#include "device/cuda/attention/cudnn/descriptor.hpp"

#include <catch2/catch.hpp>
#include <cudnn.h>

#include <type_traits>

using namespace trireme::device::cudnn;

namespace {

/// Enumerations are passed as what they are made of.
template <typename Theirs, typename Ours>
constexpr bool same(Theirs theirs, Ours ours) {
  static_assert(sizeof(Theirs) == sizeof(Ours));
  return static_cast<int>(theirs) == static_cast<int>(ours);
}

/// Functions whose arguments and results have the same sizes, one by one.
template <typename Theirs, typename Ours>
constexpr bool same_call = false;
// NOLINTBEGIN(bugprone-sizeof-expression,misc-redundant-expression): pointers have a size, too, and
// some types are the same on both sides.
template <typename A, typename B>
constexpr bool same_argument =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <typename R, typename... A, typename S, typename... B>
constexpr bool same_call<R (*)(A...), S (*)(B...)> = (same_argument<A, B> && ...);
// NOLINTEND(bugprone-sizeof-expression,misc-redundant-expression)

}  // namespace

static_assert(same(CUDNN_STATUS_SUCCESS, Status::success));
static_assert(same(CUDNN_STATUS_BAD_PARAM, Status::bad_param));
static_assert(same(CUDNN_STATUS_NOT_SUPPORTED, Status::not_supported));
static_assert(same(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, Kind::pointwise));
static_assert(same(CUDNN_BACKEND_ENGINE_DESCRIPTOR, Kind::engine));
static_assert(same(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, Kind::engine_config));
static_assert(same(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, Kind::engine_heuristics));
static_assert(same(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, Kind::execution_plan));
static_assert(same(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, Kind::operation_pointwise));
static_assert(same(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, Kind::operation_graph));
static_assert(same(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, Kind::variant_pack));
static_assert(same(CUDNN_BACKEND_TENSOR_DESCRIPTOR, Kind::tensor));
static_assert(same(CUDNN_BACKEND_MATMUL_DESCRIPTOR, Kind::matmul));
static_assert(same(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, Kind::operation_matmul));
static_assert(same(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, Kind::reduction));
static_assert(same(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, Kind::operation_reduction));
static_assert(same(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, Kind::operation_reshape));
static_assert(same(CUDNN_ATTR_POINTWISE_MODE, Attribute::pointwise_mode));
static_assert(same(CUDNN_ATTR_POINTWISE_MATH_PREC, Attribute::pointwise_precision));
static_assert(same(CUDNN_ATTR_POINTWISE_AXIS, Attribute::pointwise_axis));
static_assert(same(CUDNN_ATTR_ENGINEHEUR_MODE, Attribute::heuristics_mode));
static_assert(same(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, Attribute::heuristics_graph));
static_assert(same(CUDNN_ATTR_ENGINEHEUR_RESULTS, Attribute::heuristics_results));
static_assert(same(CUDNN_ATTR_ENGINECFG_ENGINE, Attribute::config_engine));
static_assert(same(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Attribute::plan_handle));
static_assert(same(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, Attribute::plan_config));
static_assert(same(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, Attribute::plan_workspace_size));
static_assert(same(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                   Attribute::operation_pointwise_descriptor));
static_assert(same(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, Attribute::operation_pointwise_x));
static_assert(same(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, Attribute::operation_pointwise_b));
static_assert(same(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, Attribute::operation_pointwise_y));
static_assert(same(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, Attribute::operation_pointwise_t));
static_assert(same(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, Attribute::graph_handle));
static_assert(same(CUDNN_ATTR_OPERATIONGRAPH_OPS, Attribute::graph_operations));
static_assert(same(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Attribute::tensor_alignment));
static_assert(same(CUDNN_ATTR_TENSOR_DATA_TYPE, Attribute::tensor_type));
static_assert(same(CUDNN_ATTR_TENSOR_DIMENSIONS, Attribute::tensor_dims));
static_assert(same(CUDNN_ATTR_TENSOR_STRIDES, Attribute::tensor_strides));
static_assert(same(CUDNN_ATTR_TENSOR_UNIQUE_ID, Attribute::tensor_id));
static_assert(same(CUDNN_ATTR_TENSOR_IS_VIRTUAL, Attribute::tensor_is_virtual));
static_assert(same(CUDNN_ATTR_TENSOR_IS_BY_VALUE, Attribute::tensor_is_by_value));
static_assert(same(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Attribute::pack_ids));
static_assert(same(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, Attribute::pack_pointers));
static_assert(same(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, Attribute::pack_workspace));
static_assert(same(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, Attribute::engine_numerical_notes));
static_assert(same(CUDNN_ATTR_MATMUL_COMP_TYPE, Attribute::matmul_precision));
static_assert(same(CUDNN_ATTR_OPERATION_MATMUL_ADESC, Attribute::operation_matmul_a));
static_assert(same(CUDNN_ATTR_OPERATION_MATMUL_BDESC, Attribute::operation_matmul_b));
static_assert(same(CUDNN_ATTR_OPERATION_MATMUL_CDESC, Attribute::operation_matmul_c));
static_assert(same(CUDNN_ATTR_OPERATION_MATMUL_DESC, Attribute::operation_matmul_descriptor));
static_assert(same(CUDNN_ATTR_REDUCTION_OPERATOR, Attribute::reduction_mode));
static_assert(same(CUDNN_ATTR_REDUCTION_COMP_TYPE, Attribute::reduction_precision));
static_assert(same(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, Attribute::operation_reduction_x));
static_assert(same(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, Attribute::operation_reduction_y));
static_assert(same(CUDNN_ATTR_OPERATION_REDUCTION_DESC, Attribute::operation_reduction_descriptor));
static_assert(same(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, Attribute::operation_reshape_x));
static_assert(same(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, Attribute::operation_reshape_y));
static_assert(same(CUDNN_TYPE_HANDLE, Type::handle));
static_assert(same(CUDNN_TYPE_DATA_TYPE, Type::data_type));
static_assert(same(CUDNN_TYPE_BOOLEAN, Type::boolean));
static_assert(same(CUDNN_TYPE_INT64, Type::int64));
static_assert(same(CUDNN_TYPE_VOID_PTR, Type::void_pointer));
static_assert(same(CUDNN_TYPE_HEUR_MODE, Type::heuristics_mode));
static_assert(same(CUDNN_TYPE_NUMERICAL_NOTE, Type::numerical_note));
static_assert(same(CUDNN_TYPE_POINTWISE_MODE, Type::pointwise_mode));
static_assert(same(CUDNN_TYPE_BACKEND_DESCRIPTOR, Type::descriptor));
static_assert(same(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, Type::reduction_mode));
static_assert(same(CUDNN_TYPE_CHAR, Type::character));
static_assert(same(CUDNN_DATA_FLOAT, DataType::f32));
static_assert(same(CUDNN_DATA_INT32, DataType::i32));
static_assert(same(CUDNN_DATA_BFLOAT16, DataType::bf16));
static_assert(same(CUDNN_DATA_BOOLEAN, DataType::boolean));
static_assert(same(CUDNN_POINTWISE_ADD, PointwiseMode::add));
static_assert(same(CUDNN_POINTWISE_MUL, PointwiseMode::multiply));
static_assert(same(CUDNN_POINTWISE_DIV, PointwiseMode::divide));
static_assert(same(CUDNN_POINTWISE_SUB, PointwiseMode::subtract));
static_assert(same(CUDNN_POINTWISE_EXP, PointwiseMode::exp));
static_assert(same(CUDNN_POINTWISE_LOG, PointwiseMode::log));
static_assert(same(CUDNN_POINTWISE_IDENTITY, PointwiseMode::identity));
static_assert(same(CUDNN_POINTWISE_CMP_GE, PointwiseMode::is_greater_or_equal));
static_assert(same(CUDNN_POINTWISE_GEN_INDEX, PointwiseMode::index));
static_assert(same(CUDNN_POINTWISE_BINARY_SELECT, PointwiseMode::select));
static_assert(same(CUDNN_REDUCE_TENSOR_ADD, ReductionMode::sum));
static_assert(same(CUDNN_REDUCE_TENSOR_MAX, ReductionMode::max));
static_assert(same(CUDNN_HEUR_MODE_FALLBACK, HeuristicsMode::fallback));
static_assert(same(CUDNN_HEUR_MODE_A, HeuristicsMode::fastest_first));
static_assert(same(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, NumericalNote::nondeterministic));
#if CUDNN_VERSION >= 90800
static_assert(same(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, Kind::device_properties));
static_assert(same(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, Attribute::heuristics_device));
static_assert(same(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, Attribute::plan_device));
static_assert(same(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, Attribute::device_json));
#endif
static_assert(same_call<decltype(&cudnnGetVersion), decltype(Api::version)>);
static_assert(same_call<decltype(&cudnnGetErrorString), decltype(Api::status_text)>);
static_assert(same_call<decltype(&cudnnGetLastErrorString), decltype(Api::last_message)>);
static_assert(same_call<decltype(&cudnnCreate), decltype(Api::create)>);
static_assert(same_call<decltype(&cudnnDestroy), decltype(Api::destroy)>);
static_assert(same_call<decltype(&cudnnSetStream), decltype(Api::set_stream)>);
static_assert(same_call<decltype(&cudnnBackendCreateDescriptor), decltype(Api::create_descriptor)>);
static_assert(
    same_call<decltype(&cudnnBackendDestroyDescriptor), decltype(Api::destroy_descriptor)>);
static_assert(same_call<decltype(&cudnnBackendSetAttribute), decltype(Api::set_attribute)>);
static_assert(same_call<decltype(&cudnnBackendGetAttribute), decltype(Api::get_attribute)>);
static_assert(same_call<decltype(&cudnnBackendFinalize), decltype(Api::finalize)>);
static_assert(same_call<decltype(&cudnnBackendExecute), decltype(Api::execute)>);
static_assert(sizeof(cudnnBackendDescriptor_t) == sizeof(RawDescriptor));
static_assert(sizeof(cudnnHandle_t) == sizeof(Handle));
static_assert(CUDNN_NUMERICAL_NOTE_TYPE_COUNT <= most_notes);

TEST_CASE("what is written down of cuDNN's interface is what its header says") {
  // The compiler has compared all but this: the version that a library tells.
  CHECK(CUDNN_VERSION >= oldest_version);
  CHECK(CUDNN_VERSION < newer_than_known);
}
