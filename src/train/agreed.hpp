#pragma once

#include "trireme/base/error.hpp"
#include "trireme/base/result.hpp"
#include "trireme/runtime/agree.hpp"

#include <utility>

namespace trireme::train {

/// Collective over the group. The value, once all ranks have one; else everybody ends with the
/// text of the first that failed.
template <typename T>
T agreed(comm::ProcessGroup& world, base::Result<T> mine) {
  runtime::agree(world, mine.ok() ? base::Status{} : base::Status(mine.failure()));
  return std::move(mine).value();
}

/// What `action` throws, as a status for the ranks to agree on. No collectives inside it.
template <typename F>
base::Status attempt(F&& action) {
  try {
    std::forward<F>(action)();
    return {};
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  }
}

}  // namespace trireme::train
