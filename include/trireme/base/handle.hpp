// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/log.hpp"
#include "trireme/base/result.hpp"

#include <optional>
#include <string>
#include <utility>

namespace trireme::base {

/// Owner of one foreign handle. Traits gives:
///   using raw_type; static raw_type null(); static const char* name();
///   static std::optional<std::string> close(raw_type);   // text of the failure, if any
/// Move-only; null after a move. close() reports failure; the destructor logs it, never throws.
template <typename Traits>
class UniqueHandle {
 public:
  using raw_type = typename Traits::raw_type;

  UniqueHandle() = default;
  UniqueHandle(UniqueHandle&& other) noexcept : raw_(std::exchange(other.raw_, Traits::null())) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      reset();
      raw_ = std::exchange(other.raw_, Traits::null());
    }
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  /// Takes over a handle that the caller owned.
  static UniqueHandle adopt(raw_type raw) {
    UniqueHandle handle;
    handle.raw_ = raw;
    return handle;
  }

  raw_type get() const { return raw_; }
  explicit operator bool() const { return raw_ != Traits::null(); }
  /// Gives the handle away without closing it.
  raw_type release() { return std::exchange(raw_, Traits::null()); }

  Status close() {
    if (raw_ == Traits::null()) return {};
    if (auto text = Traits::close(std::exchange(raw_, Traits::null()))) {
      std::string said(Traits::name());
      said.append(": ").append(*text);
      return Failure{ExitCode::internal, std::move(said)};
    }
    return {};
  }

 private:
  void reset() noexcept {
    try {
      if (auto status = close(); !status.ok()) {
        log::local::warning("base", "closing {}", status.failure().text);
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch): a destructor has nobody left to tell
    }
  }

  raw_type raw_ = Traits::null();
};

}  // namespace trireme::base
