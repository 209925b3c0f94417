// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/json.hpp"
#include "trireme/store/object_store.hpp"
#include "trireme/web/http.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::store {

/// Files of an HDFS by its REST interface (WebHDFS, of a NameNode or HttpFS): as user
/// HADOOP_USER_NAME, or with the delegation token in HADOOP_WEBHDFS_TOKEN. A file gets its name by
/// a rename, when it is whole.
class WebHdfsStore : public ObjectStore {
 public:
  /// `scheme` is "http://" or "https://". Calls try again for so long what may pass. Throws Error
  /// (usage).
  WebHdfsStore(std::string scheme, std::string host, const base::Environment& environment,
               std::chrono::milliseconds patience = std::chrono::minutes(1));

  Listing list(std::string_view prefix, Depth depth) override;
  std::optional<std::uint64_t> size(std::string_view name) override;
  void read(std::string_view name, std::span<std::byte> bytes, std::uint64_t offset) override;
  bool put(std::string_view name, std::span<const std::byte> bytes, Existing existing) override;
  std::unique_ptr<Upload> upload(std::string_view name) override;
  void remove(const std::vector<std::string>& names) override;
  void remove_unfinished(std::string_view prefix) override;

 private:
  friend class WebHdfsUpload;
  struct Call {
    std::string method;
    std::string operation;
    std::string name;
    std::map<std::string, std::string> query = {};
    /// Sent to, or filled by, the node that the first answer names.
    bool moves_data = false;
    std::span<const std::byte> body = {};
    std::span<std::byte> destination = {};
  };
  struct Answer {
    web::HttpResponse response;
    /// "FileNotFoundException"; empty of a success.
    std::string exception = {};
    std::string message = {};
  };

  /// Answer of a call, tried again for what may pass, which may then be done twice.
  Answer perform(const Call& call);
  Answer perform_once(const Call& call);
  web::HttpResponse send(const Call& call);
  /// The same as perform(), which must succeed.
  Answer demand(const Call& call, std::string_view doing);
  [[noreturn]] void refuse(std::string_view doing, std::string_view name,
                           const Answer& answer) const;
  std::string url_of(std::string_view name) const;
  /// Status of each entry of a folder; nothing if there is no such folder.
  std::optional<base::Json> entries(std::string_view folder);
  void list_into(Listing& listing, const std::string& folder, const std::string& below,
                 Depth depth);
  /// Name of a whole file of so many bytes, instead of the temporary one. False if it was taken.
  bool give_name(const std::string& temporary, std::string_view name, std::uint64_t bytes,
                 Existing existing);
  /// A name that replaces others was given to the file, though no answer said so.
  bool has_name(const std::string& temporary, std::string_view name, std::uint64_t bytes);
  /// Removes a folder that has nothing in it, and those above that have nothing else.
  void remove_empty(std::string folder);

  std::string scheme_;
  std::string host_;
  std::map<std::string, std::string> identity_;
  std::chrono::milliseconds patience_;
  web::HttpClient client_;
};

}  // namespace trireme::store
