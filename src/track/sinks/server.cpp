// SPDX-License-Identifier: Apache-2.0
#include "server.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <span>

namespace trireme::track {

namespace {

std::string text_of(const base::Json& body) {
  return body.dump(-1, ' ', false, base::Json::error_handler_t::replace);
}

}  // namespace

base::Json Server::json_of(const std::string& path, const std::string& text) const {
  if (base::trimmed(text).empty()) return nullptr;
  auto answer = base::parse_json(text, url_ + path, base::ExitCode::checkpoint);
  return base::value_or_throw(std::move(answer));
}

base::Json Server::post(const std::string& path, const base::Json& body) {
  return json_of(path, *call("POST", path, text_of(body), Body::json, Absence::refused));
}

bool Server::offer(const std::string& path, const base::Json& body) {
  return call("POST", path, text_of(body), Body::json, Absence::answered).has_value();
}

base::Json Server::get(const std::string& path) {
  return json_of(path, *call("GET", path, "", Body::json, Absence::refused));
}

base::Json Server::find(const std::string& path) {
  const auto text = call("GET", path, "", Body::json, Absence::answered);
  return text ? json_of(path, *text) : nullptr;
}

void Server::put(const std::string& path, const std::string& bytes) {
  call("PUT", path, bytes, Body::bytes, Absence::refused);
}

std::optional<std::string> Server::call(const char* method, const std::string& path,
                                        const std::string& body, Body kind, Absence absence) {
  store::HttpRequest request{.method = method, .url = url_ + path, .headers = headers_};
  request.headers.emplace_back(kind == Body::json ? "Content-Type: application/json"
                                                  : "Content-Type: application/octet-stream");
  request.body = std::as_bytes(std::span(body));
  store::Backoff backoff(patience_);
  for (;;) {
    auto response = client_.perform(request);
    if (response.ok()) return std::move(response.text);
    if (absence == Absence::answered && response.status == 404) return std::nullopt;
    if (store::may_pass(response) && backoff.wait(request.url, response)) continue;
    constexpr std::size_t most_bytes = 300;
    const auto reason = base::printable(base::cut_utf8(response.text, most_bytes));
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("'{}' does not take the run: {}{} (what was sent until now is noted); call "
                     "again when it does",
                     request.url,
                     response.status == 0 ? "" : base::format("HTTP {}, ", response.status),
                     reason));
  }
}

}  // namespace trireme::track
