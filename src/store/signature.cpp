// SPDX-License-Identifier: Apache-2.0
#include "store/signature.hpp"

#include "trireme/base/format.hpp"

#include <array>

namespace trireme::store {
namespace {

constexpr std::string_view algorithm = "AWS4-HMAC-SHA256";

/// A moment in UTC as strftime() prints it.
std::string utc(const char* pattern, std::time_t now) {
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), pattern, &parts)};
}

}  // namespace

std::string query_text(const std::map<std::string, std::string>& query) {
  std::string text;
  for (const auto& [name, value] : query) {
    text += base::format("{}{}={}", text.empty() ? "" : "&", name, value);
  }
  return text;
}

void sign(SignedRequest& request, const Credentials& credentials, std::string_view region,
          std::time_t now) {
  const auto day = utc("%Y%m%d", now);
  const auto moment = utc("%Y%m%dT%H%M%SZ", now);
  const auto digest = base::hexadecimal(request.payload);
  request.headers["x-amz-date"] = moment;
  request.headers["x-amz-content-sha256"] = digest;
  if (!credentials.session_token.empty()) {
    request.headers["x-amz-security-token"] = credentials.session_token;
  }
  std::string names;
  std::string lines;
  for (const auto& [name, value] : request.headers) {
    names += base::format("{}{}", names.empty() ? "" : ";", name);
    lines += base::format("{}:{}\n", name, value);
  }
  const auto canonical = base::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                                      query_text(request.query), lines, names, digest);
  const auto scope = base::format("{}/{}/s3/aws4_request", day, region);
  const auto text = base::format("{}\n{}\n{}\n{}", algorithm, moment, scope,
                                 base::hexadecimal(base::sha256(canonical)));
  const auto secret = base::format("AWS4{}", credentials.secret);
  auto key = base::hmac_sha256(
      {reinterpret_cast<const unsigned char*>(secret.data()), secret.size()}, day);
  for (const auto part : {region, std::string_view("s3"), std::string_view("aws4_request")}) {
    key = base::hmac_sha256(key, part);
  }
  request.headers["authorization"] = base::format(
      "{} Credential={}/{},SignedHeaders={},Signature={}", algorithm, credentials.key_id, scope,
      names, base::hexadecimal(base::hmac_sha256(key, text)));
}

}  // namespace trireme::store
