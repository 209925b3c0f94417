// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/track/sync.hpp"
#include "trireme/web/http.hpp"

#include <optional>
#include <string>
#include <vector>

namespace trireme::track {

/// A server asks to be left alone for longer than the patience (Retry-After).
class Busy : public base::Error {
 public:
  Busy(const std::string& text, Deadline::Clock::time_point end)
      : Error(base::ExitCode::checkpoint, text), until(end) {}
  Deadline::Clock::time_point until;
};

/// A server that takes JSON over HTTP. What may pass (no connection, 5xx, 429) is tried again for
/// as long as the patience, not beyond the deadline; then, and for any other refusal, calls throw
/// Error (checkpoint).
class Server {
 public:
  /// `headers`: of each request, "Authorization: ...".
  Server(std::string url, std::vector<std::string> headers, const Sync::Options& options)
      : url_(std::move(url)),
        headers_(std::move(headers)),
        patience_(options.patience),
        deadline_(options.deadline) {}

  const std::string& url() const { return url_; }
  /// Answer as JSON; null if it is empty.
  base::Json post(const std::string& path, const base::Json& body);
  /// False where the server answers 404.
  bool offer(const std::string& path, const base::Json& body);
  base::Json get(const std::string& path);
  /// The same; null where the server answers 404.
  base::Json find(const std::string& path);
  /// Stores bytes that are no JSON; those of a file are read while they go out.
  void put(const std::string& path, const std::string& bytes);
  void put_file(const std::string& path, const std::filesystem::path& file);

 private:
  enum class Body { json, bytes };
  enum class Absence { refused, answered };
  /// Text of a success; nothing where a 404 is answered.
  std::optional<std::string> call(const char* method, const std::string& path,
                                  const std::string& body, Body kind, Absence absence);
  std::optional<std::string> perform(const web::HttpRequest& request, Absence absence);
  web::HttpRequest request_of(const char* method, const std::string& path, Body kind) const;
  base::Json json_of(const std::string& path, const std::string& text) const;

  Deadline::Clock::time_point deadline() const;
  [[noreturn]] void give_up(const std::string& url, const web::HttpResponse& response,
                            Deadline::Clock::time_point end) const;

  std::string url_;
  std::vector<std::string> headers_;
  std::chrono::milliseconds patience_;
  const Deadline* deadline_;
  web::HttpClient client_;
};

}  // namespace trireme::track
