#pragma once

#include "trireme/base/error.hpp"
#include "trireme/base/result.hpp"
#include "trireme/runtime/agree.hpp"

#include <utility>

namespace trireme::train {

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
