// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/digest.hpp"

#include <ctime>
#include <map>
#include <string>
#include <string_view>

namespace trireme::store {

struct Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;
};

/// The parts of a request that are signed.
struct SignedRequest {
  std::string method;
  std::string path;                            ///< encoded, begins with '/'
  std::map<std::string, std::string> query;    ///< encoded names and values
  std::map<std::string, std::string> headers;  ///< by names in lower case; "host" among them
  base::Sha256 payload{};                      ///< digest of the body
};

/// "name=value&name=value" of a query.
std::string query_text(const std::map<std::string, std::string>& query);

/// Adds the headers that AWS Signature Version 4 of this moment needs, "authorization" among them
/// (docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
void sign(SignedRequest& request, const Credentials& credentials, std::string_view region,
          std::time_t now);

}  // namespace trireme::store
