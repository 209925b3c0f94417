// SPDX-License-Identifier: Apache-2.0
#include "server.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/text.hpp"

#include <fcntl.h>

#include <algorithm>
#include <span>

namespace trireme::track {

namespace {

/// Read block by block: weights are larger than memory.
class FileBody : public web::HttpBody {
 public:
  explicit FileBody(const std::filesystem::path& path)
      : path_(path),
        file_(base::value_or_throw(base::open_file(path, O_RDONLY, 0, base::ExitCode::checkpoint))),
        size_(std::filesystem::file_size(path)) {}
  std::size_t size() const override { return size_; }
  void read(std::size_t offset, std::span<std::byte> to) const override {
    base::read_at(file_, to, offset, path_, base::ExitCode::checkpoint);
  }

 private:
  std::filesystem::path path_;
  base::File file_;
  std::size_t size_;
};

/// At least a millisecond: 0 is no limit.
std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point end) {
  using std::chrono::milliseconds;
  // A deadline that is not set lies at the end of the clock.
  constexpr std::chrono::hours most{24};
  const auto left = end - std::chrono::steady_clock::now();
  return std::clamp<milliseconds>(std::chrono::duration_cast<milliseconds>(left), milliseconds(1),
                                  most);
}

/// Text of an answer whose absence is refused.
std::string wanted(std::optional<std::string> answer) {
  TRIREME_ENSURE(answer.has_value(), "absence is refused");
  return *std::move(answer);
}

}  // namespace

base::Json Server::json_of(const std::string& path, const std::string& text) const {
  if (base::trimmed(text).empty()) return nullptr;
  auto answer = base::parse_json(text, url_ + path, base::ExitCode::checkpoint);
  return base::value_or_throw(std::move(answer));
}

base::Json Server::post(const std::string& path, const base::Json& body) {
  return json_of(path,
                 wanted(call("POST", path, base::json_text(body), Body::json, Absence::refused)));
}

bool Server::offer(const std::string& path, const base::Json& body) {
  return call("POST", path, base::json_text(body), Body::json, Absence::answered).has_value();
}

base::Json Server::get(const std::string& path) {
  return json_of(path, wanted(call("GET", path, "", Body::json, Absence::refused)));
}

base::Json Server::find(const std::string& path) {
  const auto text = call("GET", path, "", Body::json, Absence::answered);
  return text ? json_of(path, *text) : nullptr;
}

void Server::put(const std::string& path, const std::string& bytes) {
  call("PUT", path, bytes, Body::bytes, Absence::refused);
}

void Server::put_file(const std::string& path, const std::filesystem::path& file) {
  const FileBody body(file);
  auto request = request_of("PUT", path, Body::bytes);
  request.read_body = &body;
  perform(request, Absence::refused);
}

web::HttpRequest Server::request_of(const char* method, const std::string& path, Body kind) const {
  web::HttpRequest request{.method = method, .url = url_ + path, .headers = headers_};
  request.headers.emplace_back(kind == Body::json ? "Content-Type: application/json"
                                                  : "Content-Type: application/octet-stream");
  return request;
}

std::optional<std::string> Server::call(const char* method, const std::string& path,
                                        const std::string& body, Body kind, Absence absence) {
  auto request = request_of(method, path, kind);
  request.body = std::as_bytes(std::span(body));
  return perform(request, absence);
}

Deadline::Clock::time_point Server::deadline() const {
  return deadline_ == nullptr ? Deadline::Clock::time_point::max() : deadline_->get();
}

void Server::give_up(const std::string& url, const web::HttpResponse& response,
                     Deadline::Clock::time_point end) const {
  constexpr std::size_t most_bytes = 300;
  const auto reason = base::printable(base::cut_utf8(response.text, most_bytes));
  const auto text = base::format(
      "'{}' does not take the run: {}{} (what was sent until now is noted); call again when it "
      "does",
      url, response.status == 0 ? "" : base::format("HTTP {}, ", response.status), reason);
  const auto asked = web::retry_after(response);
  const auto until = Deadline::Clock::now() + asked.value_or(std::chrono::seconds(0));
  if (asked && web::may_pass(response) && until > end) throw Busy(text, until);
  throw base::Error(base::ExitCode::checkpoint, text);
}

std::optional<std::string> Server::perform(const web::HttpRequest& request, Absence absence) {
  const auto begin = Deadline::Clock::now();
  const auto end = std::min(begin + patience_, deadline());
  if (begin >= deadline()) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("there was no time left for '{}' (what was sent until now is "
                                   "noted)",
                                   request.url));
  }
  web::Backoff backoff(std::chrono::duration_cast<std::chrono::milliseconds>(end - begin));
  // Files of any length may take longer; of a server that is silent they hear by what is asked
  // before them.
  const bool is_long = request.read_body != nullptr;
  auto limited = request;
  for (;;) {
    if (!is_long || deadline_ != nullptr) limited.limit = left_until(is_long ? deadline() : end);
    auto response = client_.perform(limited);
    if (response.ok()) return std::move(response.text);
    if (absence == Absence::answered && response.status == 404) return std::nullopt;
    const auto asked = web::retry_after(response).value_or(std::chrono::seconds(0));
    const bool may_help = web::may_pass(response) && Deadline::Clock::now() + asked < end &&
                          Deadline::Clock::now() < deadline();
    if (may_help && backoff.wait(request.url, response)) continue;
    give_up(request.url, response, end);
  }
}

}  // namespace trireme::track
