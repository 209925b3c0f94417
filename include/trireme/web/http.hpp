// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/library_version.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::web {

/// A body that is read while it is sent, again from any place if the connection asks for it.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  virtual std::size_t size() const = 0;
  /// Fills `to`, which lies within the body, from `offset` on. What it throws ends the request.
  virtual void read(std::size_t offset, std::span<std::byte> to) const = 0;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::span<const std::byte> body = {};
  /// Where the body of a success goes, which must have exactly this length; empty: into the text.
  std::span<std::byte> destination = {};
  /// For all of it; 0: as long as bytes come.
  std::chrono::milliseconds limit{0};
  /// Instead of `body`, for what shall not be in memory as a whole.
  const HttpBody* read_body = nullptr;
};

struct HttpResponse {
  /// 0 if there was no answer; then `text` says why, and names the variable of the proxy, if any.
  long status = 0;
  std::map<std::string, std::string> headers;  ///< by names in lower case
  std::string text;
  /// To ask again cannot help, as `text` says: the body is longer or shorter than what was asked
  /// for, or the server is not trusted.
  bool is_final = false;

  bool ok() const { return status >= 200 && status < 300 && !is_final; }
  /// Value of the header; empty without it.
  std::string header(const std::string& name) const;
};

/// Connections to servers, kept open between requests. Follows no redirects. Goes through the proxy
/// of http_proxy (lower case alone), https_proxy or HTTPS_PROXY, all_proxy or ALL_PROXY, unless
/// no_proxy or NO_PROXY names the server: libcurl's rules. Threads share it.
class HttpClient {
 public:
  /// `authorities` is a file of certificates; empty: the system's.
  explicit HttpClient(std::string authorities = {});
  ~HttpClient();

  HttpResponse perform(const HttpRequest& request);

 private:
  struct Connection;
  std::unique_ptr<Connection> take();

  std::string authorities_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

/// Text of a URL's path or query, each byte that is not a letter, digit or "-._~" as %XX; '/' stays
/// where `keep_slashes`.
std::string url_encoded(std::string_view text, bool keep_slashes = false);

/// Version of libcurl.
std::vector<base::LibraryVersion> library_versions();

/// True for answers that may be others later: none, 408, 429 and 5xx (but 501).
bool may_pass(const HttpResponse& response);

/// Wait that the header Retry-After asks for, in seconds or as a date; nothing without one.
std::optional<std::chrono::seconds> retry_after(const HttpResponse& response);

/// Times to try again after, until the patience ends: doubling from 50 ms to 5 s, each up to half
/// shorter, so that thousands of ranks do not come back together. What Retry-After asks for comes
/// before that, as far as the patience goes.
class Backoff {
 public:
  explicit Backoff(std::chrono::milliseconds patience) : patience_(patience) {}
  /// Sleeps; false if the patience has ended. Once, after seconds, it warns that `url` does not
  /// answer as it should.
  bool wait(std::string_view url, const HttpResponse& response);

 private:
  std::chrono::milliseconds patience_;
  std::chrono::milliseconds pause_{50};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool has_warned_ = false;
};

}  // namespace trireme::web
