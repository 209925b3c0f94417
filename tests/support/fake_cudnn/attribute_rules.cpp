// SPDX-License-Identifier: Apache-2.0
#include "attribute_rules.hpp"

#include <map>

namespace trireme::testing {

using namespace device::cudnn;

namespace {

constexpr std::int64_t many = 1000;

using Rules = std::map<Kind, std::vector<AttributeRule>>;
using A = Attribute;

Rules rules_of_values() {
  return {
      {Kind::tensor,
       {{A::tensor_id, Type::int64, 1, true},
        {A::tensor_type, Type::data_type, 1, true},
        {A::tensor_alignment, Type::int64, 1, true},
        {A::tensor_dims, Type::int64, tensor_dimensions, true},
        {A::tensor_strides, Type::int64, tensor_dimensions, true},
        {A::tensor_is_virtual, Type::boolean, 1, false},
        {A::tensor_is_by_value, Type::boolean, 1, false}}},
      {Kind::pointwise,
       {{A::pointwise_mode, Type::pointwise_mode, 1, true},
        {A::pointwise_precision, Type::data_type, 1, true},
        {A::pointwise_axis, Type::int64, 1, false}}},
      {Kind::matmul, {{A::matmul_precision, Type::data_type, 1, true}}},
      {Kind::reduction,
       {{A::reduction_mode, Type::reduction_mode, 1, true},
        {A::reduction_precision, Type::data_type, 1, true}}},
  };
}

Rules rules_of_operations() {
  return {
      {Kind::operation_pointwise,
       {{A::operation_pointwise_descriptor, Type::descriptor, 1, true},
        {A::operation_pointwise_x, Type::descriptor, 1, true},
        {A::operation_pointwise_y, Type::descriptor, 1, true},
        {A::operation_pointwise_b, Type::descriptor, 1, false},
        {A::operation_pointwise_t, Type::descriptor, 1, false}}},
      {Kind::operation_matmul,
       {{A::operation_matmul_descriptor, Type::descriptor, 1, true},
        {A::operation_matmul_a, Type::descriptor, 1, true},
        {A::operation_matmul_b, Type::descriptor, 1, true},
        {A::operation_matmul_c, Type::descriptor, 1, true}}},
      {Kind::operation_reduction,
       {{A::operation_reduction_descriptor, Type::descriptor, 1, true},
        {A::operation_reduction_x, Type::descriptor, 1, true},
        {A::operation_reduction_y, Type::descriptor, 1, true}}},
      {Kind::operation_reshape,
       {{A::operation_reshape_x, Type::descriptor, 1, true},
        {A::operation_reshape_y, Type::descriptor, 1, true}}},
  };
}

Rules rules_of_plans() {
  return {
      {Kind::operation_graph,
       {{A::graph_handle, Type::handle, 1, true},
        {A::graph_operations, Type::descriptor, many, true}}},
      {Kind::engine_heuristics,
       {{A::heuristics_graph, Type::descriptor, 1, true},
        {A::heuristics_mode, Type::heuristics_mode, 1, true}}},
      {Kind::execution_plan,
       {{A::plan_handle, Type::handle, 1, true}, {A::plan_config, Type::descriptor, 1, true}}},
      {Kind::variant_pack,
       {{A::pack_ids, Type::int64, many, true},
        {A::pack_pointers, Type::void_pointer, many, true},
        {A::pack_workspace, Type::void_pointer, 1, true}}},
  };
}

}  // namespace

const std::vector<AttributeRule>& rules_of(Kind kind) {
  static const Rules rules = [] {
    auto all = rules_of_values();
    all.merge(rules_of_operations());
    all.merge(rules_of_plans());
    return all;
  }();
  static const std::vector<AttributeRule> none;
  const auto found = rules.find(kind);
  return found == rules.end() ? none : found->second;
}

}  // namespace trireme::testing
