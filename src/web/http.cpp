// SPDX-License-Identifier: Apache-2.0
#include "trireme/web/http.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/text.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <ctime>
#include <exception>
#include <random>
#include <thread>
#include <utility>

namespace trireme::web {
namespace {

/// Longest text of an answer: a listing of 1,000 names of 1 KiB, XML around each.
constexpr std::size_t max_text_bytes = std::size_t{8} << 20;
constexpr std::size_t max_headers = 200;
constexpr long connect_seconds = 10;
/// A connection on which so long nothing moves is given up.
constexpr long silent_seconds = 30;

struct HeadersOf {
  explicit HeadersOf(const std::vector<std::string>& texts) {
    // Without this one, bodies wait a second for servers that do not answer "100 Continue".
    add("Expect:");
    for (const auto& text : texts) add(text);
  }
  ~HeadersOf() { curl_slist_free_all(list); }
  HeadersOf(const HeadersOf&) = delete;
  HeadersOf& operator=(const HeadersOf&) = delete;

  void add(const std::string& text) {
    auto* const longer = curl_slist_append(list, text.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list = longer;
  }

  curl_slist* list = nullptr;
};

class BodyInMemory : public HttpBody {
 public:
  explicit BodyInMemory(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t size() const override { return bytes_.size(); }
  void read(std::size_t offset, std::span<std::byte> to) const override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
  }

 private:
  std::span<const std::byte> bytes_;
};

/// State that the callbacks of one transfer share.
struct Transfer {
  CURL* handle;
  const HttpBody& body;
  std::span<std::byte> unfilled;
  bool has_destination;
  std::size_t sent = 0;
  std::exception_ptr failure = nullptr;
  bool too_long = false;
  HttpResponse response = {};
  /// Environment variable that names the proxy of this transfer; empty: none.
  std::string proxy_variable = {};

  bool succeeds() const {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
  }
};

std::size_t take_body(const char* bytes, std::size_t, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.has_destination && transfer.succeeds()) {
    transfer.too_long = count > transfer.unfilled.size();
    if (transfer.too_long) return 0;
    std::memcpy(transfer.unfilled.data(), bytes, count);
    transfer.unfilled = transfer.unfilled.subspan(count);
    return count;
  }
  auto& text = transfer.response.text;
  transfer.too_long = text.size() + count > max_text_bytes;
  if (transfer.too_long) return 0;
  text.append(bytes, count);
  return count;
}

std::size_t take_header(const char* bytes, std::size_t, std::size_t count, void* user) {
  auto& headers = static_cast<Transfer*>(user)->response.headers;
  const std::string_view line(bytes, count);
  // An interim answer's headers are not those of the answer.
  if (line.starts_with("HTTP/")) headers.clear();
  const auto colon = line.find(':');
  if (colon != std::string_view::npos && headers.size() < max_headers) {
    headers[base::lower_case(line.substr(0, colon))] = base::trimmed(line.substr(colon + 1));
  }
  return count;
}

std::size_t give_body(char* bytes, std::size_t, std::size_t room, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const auto count = std::min(room, transfer.body.size() - transfer.sent);
  try {
    transfer.body.read(transfer.sent, std::as_writable_bytes(std::span(bytes, count)));
  } catch (...) {
    // No exception may pass through a library in C.
    transfer.failure = std::current_exception();
    return CURL_READFUNC_ABORT;
  }
  transfer.sent += count;
  return count;
}

int rewind_body(void* user, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (origin != SEEK_SET || std::cmp_greater(offset, transfer.body.size())) {
    return CURL_SEEKFUNC_CANTSEEK;
  }
  transfer.sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

/// Takes from libcurl's own words which proxy it uses. The proxy's URL may hold a password, and is
/// not kept.
int take_words(CURL*, curl_infotype kind, char* bytes, std::size_t count, void* user) {
  constexpr std::string_view sign = "Uses proxy env variable ";
  const std::string_view words(bytes, count);
  if (kind != CURLINFO_TEXT || !words.starts_with(sign)) return 0;
  const auto rest = words.substr(sign.size());
  const auto variable = rest.substr(0, rest.find(' '));
  // It says of no_proxy likewise that it is obeyed.
  if (variable == "no_proxy" || variable == "NO_PROXY") return 0;
  static_cast<Transfer*>(user)->proxy_variable = variable;
  return 0;
}

/// Why there is no answer, with the way that was tried.
std::string reason_of(const char* text, const std::string& proxy_variable) {
  if (proxy_variable.empty()) return text;
  return base::format(
      "{} (through the proxy that {} names; a server that is reached without one "
      "belongs in no_proxy)",
      text, proxy_variable);
}

bool cannot_pass(CURLcode code) {
  switch (static_cast<int>(code)) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return true;
    default:
      return false;
  }
}

struct Library {
  Library() {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
      throw base::Error(base::ExitCode::internal, "libcurl does not start");
    }
  }
};

}  // namespace

struct HttpClient::Connection {
  Connection() : handle(curl_easy_init()) {
    if (handle == nullptr) throw std::bad_alloc();
  }
  ~Connection() { curl_easy_cleanup(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void prepare(const HttpRequest& request, const HeadersOf& headers, Transfer& transfer,
               const std::string& authorities) const {
    const auto set = [this](CURLoption option, auto value) {
      if (curl_easy_setopt(handle, option, value) != CURLE_OK) {
        throw base::Error(base::ExitCode::internal,
                          base::format("libcurl refuses option {}", static_cast<int>(option)));
      }
    };
    curl_easy_reset(handle);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, connect_seconds);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.limit.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, silent_seconds);
    set(CURLOPT_HTTPHEADER, headers.list);
    set(CURLOPT_HEADERFUNCTION, &take_header);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_DEBUGFUNCTION, &take_words);
    set(CURLOPT_DEBUGDATA, &transfer);
    set(CURLOPT_VERBOSE, 1L);
    set(CURLOPT_WRITEFUNCTION, &take_body);
    set(CURLOPT_WRITEDATA, &transfer);
    if (!authorities.empty()) set(CURLOPT_CAINFO, authorities.c_str());
    if (request.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET" && request.method != "DELETE") {
      set(CURLOPT_UPLOAD, 1L);
      set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(transfer.body.size()));
      set(CURLOPT_UPLOAD_BUFFERSIZE, 1L << 20);
      set(CURLOPT_READFUNCTION, &give_body);
      set(CURLOPT_READDATA, &transfer);
      set(CURLOPT_SEEKFUNCTION, &rewind_body);
      set(CURLOPT_SEEKDATA, &transfer);
    } else {
      set(CURLOPT_BUFFERSIZE, 1L << 19);
    }
  }

  CURL* handle;
};

HttpClient::HttpClient(std::string authorities) : authorities_(std::move(authorities)) {
  static const Library library;
}
HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Connection> HttpClient::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Connection>();
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

HttpResponse HttpClient::perform(const HttpRequest& request) {
  auto connection = take();
  const BodyInMemory in_memory(request.body);
  const HttpBody& body = request.read_body != nullptr ? *request.read_body : in_memory;
  Transfer transfer{connection->handle, body, request.destination, !request.destination.empty()};
  const HeadersOf headers(request.headers);
  connection->prepare(request, headers, transfer, authorities_);
  std::array<char, CURL_ERROR_SIZE> reason{};
  curl_easy_setopt(connection->handle, CURLOPT_ERRORBUFFER, reason.data());
  const auto code = curl_easy_perform(connection->handle);
  auto& response = transfer.response;
  curl_easy_getinfo(connection->handle, CURLINFO_RESPONSE_CODE, &response.status);
  if (transfer.too_long) {
    response.is_final = true;
    response.text = "the answer is longer than what was asked for";
  } else if (code != CURLE_OK) {
    const auto* const why = reason[0] != '\0' ? reason.data() : curl_easy_strerror(code);
    response = {0, {}, reason_of(why, transfer.proxy_variable)};
    response.is_final = cannot_pass(code);
  } else if (response.ok() && !transfer.unfilled.empty()) {
    response.is_final = true;
    response.text = base::format("the answer ends {} bytes too early", transfer.unfilled.size());
  }
  constexpr long wants_password = 407;
  long of_tunnel = 0;
  curl_easy_getinfo(connection->handle, CURLINFO_HTTP_CONNECTCODE, &of_tunnel);
  const bool is_asked = response.status == wants_password || of_tunnel == wants_password;
  if (is_asked && !transfer.proxy_variable.empty()) {
    response.is_final = true;
    response.text = base::format(
        "the proxy that {0} names wants a name and a password; write {0}=http://NAME:PASSWORD@...",
        transfer.proxy_variable);
  }
  curl_easy_setopt(connection->handle, CURLOPT_ERRORBUFFER, nullptr);
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
  return std::move(response);
}

std::string HttpResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::string url_encoded(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (byte < 0x80 && std::isalnum(byte) != 0) ||
                       std::string_view("-._~").find(letter) != std::string_view::npos;
    if (plain || (keep_slashes && letter == '/')) {
      encoded += letter;
    } else {
      encoded += base::format("%{:02X}", byte);
    }
  }
  return encoded;
}

std::vector<base::LibraryVersion> library_versions() {
  return {{"libcurl", curl_version_info(CURLVERSION_NOW)->version}};
}

bool may_pass(const HttpResponse& response) {
  const auto status = response.status;
  if (response.is_final) return false;
  return status == 0 || status == 408 || status == 429 || (status >= 500 && status != 501);
}

std::optional<std::chrono::seconds> retry_after(const HttpResponse& response) {
  const auto text = response.header("retry-after");
  constexpr std::int64_t most_seconds = 1'000'000;
  auto seconds = base::number_in<std::int64_t>(text);
  if (!seconds) {
    const auto date = text.empty() ? -1 : curl_getdate(text.c_str(), nullptr);
    if (date < 0) return std::nullopt;
    seconds = std::int64_t{date} - std::int64_t{std::time(nullptr)};
  }
  return std::chrono::seconds(std::clamp(*seconds, std::int64_t{0}, most_seconds));
}

bool Backoff::wait(std::string_view url, const HttpResponse& response) {
  constexpr std::chrono::seconds noticeable{5};
  const auto passed = std::chrono::steady_clock::now() - start_;
  if (passed + pause_ > patience_) return false;
  if (passed > noticeable && !has_warned_) {
    has_warned_ = true;
    base::log::local::warning(
        "store", "'{}' has not been served for {} ({}); trying again for {}", url,
        base::duration_text(std::chrono::duration<double>(passed).count()),
        response.status == 0 ? response.text : base::format("HTTP {}", response.status),
        base::duration_text(std::chrono::duration<double>(patience_ - passed).count()));
  }
  thread_local std::minstd_rand dice(std::random_device{}());
  using Milliseconds = std::chrono::duration<double, std::milli>;
  Milliseconds pause = pause_ * std::uniform_real_distribution(0.5, 1.0)(dice);
  // Beyond the patience nobody waits: the last try comes at its end.
  if (const auto asked = retry_after(response)) {
    pause = std::min(pause + Milliseconds(*asked), Milliseconds(patience_ - passed));
  }
  std::this_thread::sleep_for(pause);
  pause_ = std::min(2 * pause_, std::chrono::milliseconds(5000));
  return true;
}

}  // namespace trireme::web
