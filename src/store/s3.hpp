// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/store/object_store.hpp"
#include "trireme/web/http.hpp"

#include "store/signature.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::store {

/// Bucket of a server that speaks S3's protocol: AWS, or the one that AWS_ENDPOINT_URL_S3 (or
/// AWS_ENDPOINT_URL) names. Requests are signed with their bodies' SHA-256, so that a server takes
/// none that was damaged on the way.
class S3Store : public ObjectStore {
 public:
  /// Calls try again for so long what may pass. Throws Error (usage).
  S3Store(std::string bucket, const base::Environment& environment,
          std::chrono::milliseconds patience = std::chrono::minutes(1));

  Listing list(std::string_view prefix, Depth depth) override;
  std::optional<std::uint64_t> size(std::string_view name) override;
  void read(std::string_view name, std::span<std::byte> bytes, std::uint64_t offset) override;
  bool put(std::string_view name, std::span<const std::byte> bytes, Existing existing) override;
  std::unique_ptr<Upload> upload(std::string_view name) override;
  void remove(const std::vector<std::string>& names) override;
  void remove_unfinished(std::string_view prefix) override;

 private:
  friend class S3Upload;
  struct Call {
    std::string method;
    std::string name;                               ///< of the object; empty: the bucket
    std::map<std::string, std::string> query = {};  ///< not encoded
    std::map<std::string, std::string> headers = {};
    std::span<const std::byte> body = {};
    std::span<std::byte> destination = {};
  };

  /// Answer of a call, tried again for what may pass; any status but those.
  web::HttpResponse perform(const Call& call);
  web::HttpResponse perform_once(const Call& call);
  /// The same, which must succeed.
  web::HttpResponse demand(const Call& call, std::string_view doing);
  [[noreturn]] void refuse(std::string_view doing, std::string_view name,
                           const web::HttpResponse& response) const;
  std::string url_of(std::string_view name) const;
  void remove_some(std::span<const std::string> names);

  std::string bucket_;
  base::Environment environment_;
  std::chrono::milliseconds patience_;
  std::string region_;
  std::string scheme_;
  std::string host_;
  /// Before the object's name in the path: "/bucket" where it is not part of the host.
  std::string path_;
  web::HttpClient client_;
  std::mutex mutex_;
  Credentials credentials_;
};

}  // namespace trireme::store
