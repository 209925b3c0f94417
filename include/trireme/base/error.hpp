// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/exit_code.hpp"
#include "trireme/base/result.hpp"

#include <source_location>
#include <stdexcept>
#include <string>

namespace trireme::base {

/// The system failed: MPI, a device, storage, a peer, a deadline. what() is the text alone.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text,
        std::source_location where = std::source_location::current())
      : std::runtime_error(text), code_(code), where_(where) {}
  explicit Error(const Failure& failure,
                 std::source_location where = std::source_location::current())
      : Error(failure.code, failure.text, where) {}

  ExitCode code() const { return code_; }
  /// Place of the failing call in the source.
  const std::source_location& where() const { return where_; }

 private:
  ExitCode code_;
  std::source_location where_;
};

/// The value, or its failure thrown as an Error: for places past the point of asking the user.
template <typename T>
T value_or_throw(Result<T> result, std::source_location where = std::source_location::current()) {
  if (!result.ok()) throw Error(result.failure(), where);
  return std::move(result).value();
}

inline void success_or_throw(const Status& status,
                             std::source_location where = std::source_location::current()) {
  if (!status.ok()) throw Error(status.failure(), where);
}

/// Error of a system call: "cannot open 'x': No such file or directory".
[[noreturn]] void throw_errno(ExitCode code, const std::string& doing, int error_number,
                              std::source_location where = std::source_location::current());

}  // namespace trireme::base
