// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <variant>

namespace trireme::device {

/// Use that an operation makes of an operand. An output is written everywhere and read only where
/// it has been written.
enum class Role { input, output, in_out };

/// Operations of one subject.
template <typename... Operations>
struct OperationList {
  /// A pointer to one of them.
  using Pointer = std::variant<const Operations*...>;
  template <typename Operation>
  static constexpr bool holds = (std::is_same_v<Operation, Operations> || ...);
};

namespace detail {
template <typename... Lists>
struct Join;
template <typename... A>
struct Join<OperationList<A...>> {
  using List = OperationList<A...>;
};
template <typename... A, typename... B, typename... Rest>
struct Join<OperationList<A...>, OperationList<B...>, Rest...> {
  using List = typename Join<OperationList<A..., B...>, Rest...>::List;
};
}  // namespace detail

/// All operations of some lists.
template <typename... Lists>
using Joined = typename detail::Join<Lists...>::List;

}  // namespace trireme::device
