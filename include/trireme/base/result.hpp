// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/contract.hpp"
#include "trireme/base/exit_code.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace trireme::base {

/// Mistake of the user or the site: "problem (why it matters); what to do".
struct Failure {
  ExitCode code = ExitCode::usage;
  std::string text;
};

inline Failure usage_failure(std::string text) {
  return {ExitCode::usage, std::move(text)};
}

/// A failure of a file of the user's: a checkpoint, data, a tokenizer.
inline Failure checkpoint_failure(std::string text) {
  return {ExitCode::checkpoint, std::move(text)};
}

/// A value, or the reason in words why there is none. Mistakes of users travel as results;
/// failures of the system travel as base::Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Failure failure) : state_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    TRIREME_EXPECT(ok(), failure_text());
    return std::get<0>(state_);
  }
  const T& value() const& {
    TRIREME_EXPECT(ok(), failure_text());
    return std::get<0>(state_);
  }
  T&& value() && {
    TRIREME_EXPECT(ok(), failure_text());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Failure& failure() const {
    TRIREME_EXPECT(!ok(), "failure() of a result that holds a value");
    return std::get<1>(state_);
  }

 private:
  std::string failure_text() const { return ok() ? std::string{} : std::get<1>(state_).text; }

  std::variant<T, Failure> state_;
};

/// Success, or the reason why not.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : failure_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !failure_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Failure& failure() const {
    TRIREME_EXPECT(failure_.has_value(), "failure() of a success");
    return *failure_;
  }

 private:
  std::optional<Failure> failure_;
};

using Status = Result<void>;

}  // namespace trireme::base
