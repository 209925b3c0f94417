// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <source_location>
#include <string_view>

namespace trireme::base {

[[noreturn]] void contract_broken(const char* kind, const char* condition, std::string_view text,
                                  std::source_location where = std::source_location::current());

}  // namespace trireme::base

/// Precondition, which the caller must meet. A breach is a defect of Trireme and ends in
/// ExitCode::internal.
#define TRIREME_EXPECT(condition, text) \
  ((condition) ? static_cast<void>(0)   \
               : ::trireme::base::contract_broken("expected", #condition, (text)))

/// Postcondition, which the callee must meet.
#define TRIREME_ENSURE(condition, text) \
  ((condition) ? static_cast<void>(0)   \
               : ::trireme::base::contract_broken("ensured", #condition, (text)))
