// SPDX-License-Identifier: Apache-2.0
#include "store/s3.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/text.hpp"

#include "store/credentials.hpp"
#include "store/may_pass.hpp"
#include "store/s3_upload.hpp"
#include "store/s3_xml.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

namespace trireme::store {
namespace {

/// Most names of one request that removes (S3's limit).
constexpr std::size_t max_removed = 1000;

/// Error code of an answer, such as "NoSuchBucket"; some come with status 200.
std::string code_of(const web::HttpResponse& response) {
  constexpr std::size_t longest_beginning = 512;
  const auto beginning = std::string_view(response.text).substr(0, longest_beginning);
  if (beginning.find("<Error>") == std::string_view::npos) return {};
  return document_of(response.text).child("Error").child_value("Code");
}

/// "2026-01-31T12:00:00.000Z"; nothing if it is something else.
std::optional<std::chrono::system_clock::time_point> moment_of(const char* text) {
  std::tm parts{};
  if (::strptime(text, "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

/// "https://host:port" in its parts; nothing if it is something else.
std::optional<std::pair<std::string, std::string>> endpoint_parts(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!url.starts_with(scheme)) continue;
    const auto host = url.substr(scheme.size());
    if (host.empty() || host.find_first_of("/?#@ ") != std::string_view::npos) break;
    return std::pair{std::string(scheme), base::lower_case(host)};
  }
  return std::nullopt;
}

bool is_bucket(std::string_view name) {
  return name.size() >= 3 && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

}  // namespace

S3Store::S3Store(std::string bucket, const base::Environment& environment,
                 std::chrono::milliseconds patience)
    : bucket_(std::move(bucket)),
      environment_(environment),
      patience_(patience),
      client_(environment.get("AWS_CA_BUNDLE").value_or("")),
      credentials_(base::value_or_throw(find_credentials(environment))) {
  const auto first_of = [&](std::initializer_list<const char*> names) {
    for (const auto* name : names) {
      if (auto value = environment.get(name); value && !value->empty()) return *value;
    }
    return std::string();
  };
  if (!is_bucket(bucket_)) {
    throw base::Error(base::ExitCode::usage,
                      base::format("'s3://{}' names no bucket (3 to 63 lower-case letters, digits, "
                                   "'-' and '.'); write s3://BUCKET/NAME",
                                   base::printable(bucket_)));
  }
  region_ = first_of({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region_.empty()) region_ = "us-east-1";
  const auto endpoint = first_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (endpoint.empty()) {
    scheme_ = "https://";
    // A certificate for *.s3... does not hold for names with dots.
    const bool in_host = bucket_.find('.') == std::string::npos;
    host_ = base::format("{}s3.{}.amazonaws.com", in_host ? bucket_ + "." : "", region_);
    if (!in_host) path_ = "/" + bucket_;
    return;
  }
  const auto parts = endpoint_parts(endpoint);
  if (!parts) {
    throw base::Error(base::ExitCode::usage,
                      base::format("AWS_ENDPOINT_URL_S3 is '{}', which is no http://HOST:PORT or "
                                   "https://HOST:PORT; write it like that",
                                   base::printable(endpoint)));
  }
  std::tie(scheme_, host_) = *parts;
  path_ = "/" + bucket_;
}

std::string S3Store::url_of(std::string_view name) const {
  return base::format("s3://{}/{}", bucket_, name);
}

web::HttpResponse S3Store::perform_once(const Call& call) {
  SignedRequest request;
  request.method = call.method;
  request.path = path_ + "/" + web::url_encoded(call.name, true);
  for (const auto& [name, value] : call.query) {
    request.query[web::url_encoded(name)] = web::url_encoded(value);
  }
  request.headers = call.headers;
  request.headers["host"] = host_;
  request.payload = base::sha256(call.body);
  {
    const std::lock_guard lock(mutex_);
    sign(request, credentials_, region_, std::time(nullptr));
  }
  web::HttpRequest sent{
      call.method, scheme_ + host_ + request.path, {}, call.body, call.destination};
  if (!request.query.empty()) sent.url += "?" + query_text(request.query);
  for (const auto& [name, value] : request.headers) {
    sent.headers.push_back(base::format("{}: {}", name, value));
  }
  return client_.perform(sent);
}

web::HttpResponse S3Store::perform(const Call& call) {
  web::Backoff backoff(patience_);
  bool renewed = false;
  for (;;) {
    auto response = perform_once(call);
    const auto code = code_of(response);
    if (response.status == 403 && code == "ExpiredToken" && !renewed) {
      // Whoever renews them writes the file again.
      auto fresh = find_credentials(environment_);
      if (!fresh) throw StoreError(fresh.failure().text, false);
      const std::lock_guard lock(mutex_);
      credentials_ = *std::move(fresh);
      renewed = true;
    } else if (!may_pass(response, code) || !backoff.wait(url_of(call.name), response)) {
      return response;
    }
  }
}

web::HttpResponse S3Store::demand(const Call& call, std::string_view doing) {
  auto response = perform(call);
  if (!response.ok() || !code_of(response).empty()) refuse(doing, call.name, response);
  return response;
}

void S3Store::refuse(std::string_view doing, std::string_view name,
                     const web::HttpResponse& response) const {
  const auto document = document_of(response.text);
  const auto error = document.child("Error");
  const std::string code = error.child_value("Code");
  std::string reason;
  if (response.status == 0 || response.is_final) {
    reason = response.text;
  } else {
    reason = base::format("HTTP {}", response.status);
    if (!code.empty()) {
      reason += base::format(" {}, {}", base::printable(code),
                             base::printable(base::cut_utf8(error.child_value("Message"), 300)));
    }
  }
  std::string remedy = "try again later";
  if (const auto region = response.header("x-amz-bucket-region");
      !region.empty() && region != region_) {
    remedy = base::format("set AWS_REGION={}", base::printable(region));
  } else if (code == "NoSuchBucket") {
    remedy = "make the bucket, or name another";
  } else if (!may_pass(response, code) && (response.status == 401 || response.status == 403)) {
    remedy = "check the credentials, the clock of this node, and what they may do in this bucket";
  } else if (response.status == 0) {
    remedy = "check the network, AWS_ENDPOINT_URL_S3 and AWS_CA_BUNDLE";
  }
  throw StoreError(base::format("cannot {} '{}': {} from {}{}; {}", doing, url_of(name), reason,
                                scheme_, host_, remedy),
                   may_pass(response, code));
}

Listing S3Store::list(std::string_view prefix, Depth depth) {
  Call call{"GET", "", {{"list-type", "2"}, {"prefix", std::string(prefix)}}};
  if (depth == Depth::one) call.query["delimiter"] = "/";
  Listing listing;
  for (;;) {
    const auto response = perform(call);
    if (!response.ok()) refuse("list", prefix, response);
    const auto document = document_of(response.text);
    const auto result = document.child("ListBucketResult");
    if (result.empty()) refuse("list", prefix, response);
    const auto below = [&](std::string_view name) {
      return std::string(name.starts_with(prefix) ? name.substr(prefix.size()) : "");
    };
    for (const auto object : result.children("Contents")) {
      auto name = below(object.child_value("Key"));
      if (name.empty()) continue;
      listing.objects.push_back({name, object.child("Size").text().as_ullong()});
      listing.newest = std::max(listing.newest, moment_of(object.child_value("LastModified")));
    }
    for (const auto folder : result.children("CommonPrefixes")) {
      auto name = below(folder.child_value("Prefix"));
      if (name.ends_with('/')) name.pop_back();
      if (!name.empty()) listing.folders.push_back(std::move(name));
    }
    if (!result.child("IsTruncated").text().as_bool()) return listing;
    const std::string next = result.child_value("NextContinuationToken");
    if (next.empty()) refuse("list", prefix, response);
    call.query["continuation-token"] = next;
  }
}

std::optional<std::uint64_t> S3Store::size(std::string_view name) {
  const auto response = perform({"HEAD", std::string(name)});
  if (response.status == 404) return std::nullopt;
  const auto bytes = base::number_in<std::uint64_t>(response.header("content-length"));
  if (!response.ok() || !bytes) refuse("examine", name, response);
  return bytes;
}

void S3Store::read(std::string_view name, std::span<std::byte> bytes, std::uint64_t offset) {
  if (bytes.empty()) return;
  const auto range = base::format("bytes={}-{}", offset, offset + bytes.size() - 1);
  const auto response =
      demand({"GET", std::string(name), {}, {{"range", range}}, {}, bytes}, "read");
  // A server that knows no ranges has sent the object's first bytes.
  if (response.status == 206 || offset == 0) return;
  throw StoreError(
      base::format("cannot read '{}': {}{} answers requests of bytes {} on with bytes 0 "
                   "on; use a server that knows ranges",
                   url_of(name), scheme_, host_, offset),
      false);
}

bool S3Store::put(std::string_view name, std::span<const std::byte> bytes, Existing existing) {
  Call call{"PUT", std::string(name), {}, {}, bytes};
  if (existing == Existing::keep) {
    call.headers["if-none-match"] = "*";
    const auto response = perform(call);
    if (response.ok()) return true;
    if (response.status == 412 || response.status == 409) return false;
    if (response.status != 501) refuse("write", name, response);
    // Servers without conditional writes (Swift 2.30): between two requests another may write.
    call.headers.clear();
    if (size(name)) return false;
  }
  demand(call, "write");
  return true;
}

std::unique_ptr<Upload> S3Store::upload(std::string_view name) {
  return std::make_unique<S3Upload>(*this, std::string(name));
}

void S3Store::remove_some(std::span<const std::string> names) {
  pugi::xml_document list;
  auto root = list.append_child("Delete");
  root.append_child("Quiet").text().set("true");
  for (const auto& name : names) {
    root.append_child("Object").append_child("Key").text().set(name.c_str());
  }
  const auto text = text_of(list);
  const Call call{
      "POST", "", {{"delete", ""}}, {{"content-md5", base::md5_base64(text)}}, bytes_of(text)};
  const auto response = demand(call, "remove");
  const auto document = document_of(response.text);
  for (const auto error : document.child("DeleteResult").children("Error")) {
    if (std::string_view(error.child_value("Code")) == "NoSuchKey") continue;
    throw StoreError(base::format("cannot remove '{}': {}, {}", url_of(error.child_value("Key")),
                                  base::printable(error.child_value("Code")),
                                  base::printable(error.child_value("Message"))),
                     false);
  }
}

void S3Store::remove(const std::vector<std::string>& names) {
  for (std::size_t at = 0; at < names.size(); at += max_removed) {
    remove_some(std::span(names).subspan(at, std::min(max_removed, names.size() - at)));
  }
}

void S3Store::remove_unfinished(std::string_view prefix) {
  Call call{"GET", "", {{"uploads", ""}, {"prefix", std::string(prefix)}}};
  for (;;) {
    const auto response = demand(call, "list uploads of");
    const auto document = document_of(response.text);
    const auto result = document.child("ListMultipartUploadsResult");
    for (const auto upload : result.children("Upload")) {
      const std::string name = upload.child_value("Key");
      const auto removed =
          perform({"DELETE", name, {{"uploadId", upload.child_value("UploadId")}}});
      if (!removed.ok() && removed.status != 404) refuse("remove the upload of", name, removed);
    }
    if (!result.child("IsTruncated").text().as_bool()) return;
    call.query["key-marker"] = result.child_value("NextKeyMarker");
    call.query["upload-id-marker"] = result.child_value("NextUploadIdMarker");
  }
}

}  // namespace trireme::store
